"""How many bytes of requests the daemon holds at the same time, over all connections. Pure.

Rules of this file:
- Bytes count as they arrive, not as they are announced, and until the request is answered.
- Small requests are free: nobody's large bodies can keep them out.
- Where there is no room, whoever has been sending for the longest gives way. A body that comes at once is never that
  one, so that clients who send slowly on purpose hurt nobody but themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from actors.errors import MailboxFull

FREE_BYTES = 64 * 1024
"""What each request may hold without being counted."""

_DEFAULT_BYTES = 128 * 1024 * 1024
RETRY_S = 1.0


def no_room() -> MailboxFull:
    text = "the daemon holds as many bytes of unfinished requests as it may; retry shortly"
    return MailboxFull(text, retry_after_s=RETRY_S)


class Budget:
    """The bytes of all requests that are being read or worked on."""

    def __init__(self, limit_bytes: int = _DEFAULT_BYTES) -> None:
        self._limit = limit_bytes
        self._arriving: dict[Share, None] = {}  # in the order in which they began to count
        self.used = 0
        self.refused = 0
        """Requests that were given up for want of room."""

    def share(self, give_up: Callable[[], None] = lambda: None) -> Share:
        """Return the share of one request; to be closed. `give_up` is called if it is taken away while it arrives."""
        return Share(self, give_up)

    def hold(self, size: int) -> Share | None:
        """Return the share of a request that has arrived; None if it is free. Raises `MailboxFull`."""
        if size <= FREE_BYTES:
            return None
        share = self.share()
        share.grow(size)
        share.complete()
        return share

    def add(self, share: Share, size: int) -> None:
        """Count more bytes of a share that arrives. Raises `MailboxFull` if there is no room to be made."""
        while self.used + size > self._limit:
            oldest = next(iter(self._arriving), share)
            self.refused += 1
            if oldest is share:
                raise no_room()
            oldest.take_away()
        self._arriving.setdefault(share)
        self.used += size

    def settle(self, share: Share) -> None:
        """The share does not grow any more."""
        self._arriving.pop(share, None)

    def remove(self, share: Share, size: int) -> None:
        self.settle(share)
        self.used -= size


class Share(msgspec.Struct, eq=False):
    """The bytes of one request. A context manager that gives them back at the end.

    `give_up` is called if it is taken away while it arrives.
    """

    budget: Budget
    give_up: Callable[[], None]
    taken_away: bool = False
    _size: int = 0
    _counted: int = 0

    def grow(self, size: int) -> None:
        """Count bytes that have arrived. Raises `MailboxFull` if there is no room, or is none any more."""
        if self.taken_away:
            raise no_room()
        self._size += size
        more = self._size - FREE_BYTES - self._counted
        if more > 0:
            self.budget.add(self, more)
            self._counted += more

    def complete(self) -> None:
        """All of it has arrived: it is not taken away any more."""
        if self._counted:
            self.budget.settle(self)

    def take_away(self) -> None:
        self.taken_away = True
        self.close()
        self.give_up()

    def close(self) -> None:
        """Give back what is held; closing twice does no harm."""
        if self._counted:
            self.budget.remove(self, self._counted)
        self._size = self._counted = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
