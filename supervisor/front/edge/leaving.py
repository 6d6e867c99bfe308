"""Whether a client has left: the kernel says so, whatever waits to be read before that.

Theory: while a request is worked on nobody reads its connection, so that what a client sends ahead stays where it costs
nothing: in the kernel. The end of a connection stands behind that, and would be read last. But the kernel can be asked
for it alone (EPOLLRDHUP). All connections are registered once with one epoll of their own, which a single task waits
for: a request costs no task and no system call for being watched. Who has sent more than the kernel holds, and leaves,
is noticed when that was read: the end is behind it.

Only Linux has that. Elsewhere nobody is told ahead: who leaves is noticed when its connection is read or written again.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

AT_ONCE: Final = 64
"""So many clients that left together are told of before others have their turn."""


class Leaving:
    """That one client leaves. `is_set` once it has: it may still read, but it says nothing any more."""

    def __init__(self) -> None:
        self.is_set = False
        self._scopes: list[trio.CancelScope] = []

    def set(self) -> None:
        """The client has left: whatever is bound to that ends."""
        self.is_set = True
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def ends(self, scope: trio.CancelScope) -> Iterator[None]:
        """During the block cancel `scope` when the client leaves, at once if it has."""
        if self.is_set:
            scope.cancel()
        self._scopes.append(scope)
        try:
            yield
        finally:
            self._scopes.remove(scope)

    async def wait(self) -> None:
        with trio.CancelScope() as scope, self.ends(scope):
            await trio.sleep_forever()


class Departures:
    """Tells the clients of one server apart that have left. `run` has to run."""

    def __init__(self) -> None:
        """Raises `OSError` for want of a descriptor."""
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._watched: dict[int, Leaving] = {}

    def watch(self, descriptor: int) -> Leaving:
        """Return what is set when the peer of this socket leaves; `forget` it before it is closed.

        Raises `OSError` for want.
        """
        leaving = Leaving()
        if self._epoll is not None:
            self._epoll.register(descriptor, select.EPOLLRDHUP | select.EPOLLONESHOT)
            self._watched[descriptor] = leaving
        return leaving

    def forget(self, descriptor: int) -> None:
        """The socket is about to be closed, which takes it out of the kernel's list, too."""
        self._watched.pop(descriptor, None)

    async def run(self) -> None:
        if (epoll := self._epoll) is None:
            await trio.sleep_forever()
        try:
            while True:
                await trio.lowlevel.wait_readable(epoll.fileno())
                for descriptor, _ in epoll.poll(0, AT_ONCE):
                    leaving = self._watched.get(descriptor)
                    if leaving is not None:
                        leaving.set()
        finally:
            trio.lowlevel.notify_closing(epoll.fileno())
            epoll.close()
