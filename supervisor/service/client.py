"""Who asks, and what a client is told beside its requests: of resources that changed, and of visits that are over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from actors.errors import CannotAsk, TooManyCalls
from actors.principal import LOCAL, ClientKey, Principal
from actors.protocol.agreement.versions import LATEST_LEGACY, Era

EMPTY_OBJECT = msgspec.Raw(b"{}")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: one legacy session, one modern request, or a legacy request without a session."""

    principal: Principal = LOCAL
    era: Era = "legacy"
    version: str = LATEST_LEGACY
    name: str = ""
    capabilities: msgspec.Raw = EMPTY_OBJECT
    session: str | None = None

    @property
    def program(self) -> ClientKey:
        """By what shared bounds count it, over all its sessions: a name that it chose itself, which proves nothing."""
        return self.principal, self.name


# The resources that one client is subscribed to, in its session or by one request, and which of them changed.
#
# In a session also which visits of its user to an address are over (`actors/protocol/asking/questions.py`).
#
# Nothing is queued: a resource that changed is owed once, however often it changed, so a client that does not read
# costs one entry for each of its subscriptions. What was taken is owed again to the next stream until it has arrived
# for certain.

MAX_SUBSCRIBED: Final = 1000
MAX_VISITED: Final = 256
"""Visits of which a client was not told that they are over."""


class Updates:
    """`used`: the client was subscribed to something. Names are those under which the client knows resources.

    `leave` is called when the session is over, and neither waits nor raises.
    """

    def __init__(self) -> None:
        self.used = False
        self._ended = False
        self._held: dict[str, Callable[[], None]] = {}
        self._owed: dict[str, None] = {}
        self._taken: dict[str, float] = {}
        self._visited: dict[str, None] = {}
        self._visited_taken: dict[str, float] = {}
        self._ring: Callable[[], None] | None = None
        self.leave: Callable[[], None] = lambda: None

    def __contains__(self, name: str) -> bool:
        return name in self._held

    @property
    def owed(self) -> bool:
        return bool(self._owed or self._visited)

    def hold(self, name: str, release: Callable[[], None]) -> None:
        """Begin a subscription; `release` ends it. Raises `TooManyCalls`, and `CannotAsk` if the client has gone."""
        if self._ended:
            raise CannotAsk("the client has gone")
        if len(self._held) >= MAX_SUBSCRIBED:
            raise TooManyCalls(f"the limit of {MAX_SUBSCRIBED} resources that one client is subscribed to is reached")
        self._held[name] = release

    def release(self, name: str) -> None:
        release = self._held.pop(name, None)
        self._owed.pop(name, None)
        self._taken.pop(name, None)
        if release is not None:
            release()

    def end(self) -> None:
        self._ended = True
        for name in list(self._held):
            self.release(name)
        self.leave()

    def note(self, name: str) -> None:
        first = not self.owed
        self._owed[name] = None
        if first and self._ring is not None:
            self._ring()

    def visited(self, id_: str) -> bool:
        """The visit of this id is over; False if the client has gone, or was not told of many."""
        if self._ended or len(self._visited) >= MAX_VISITED:
            return False
        first = not self.owed
        self._visited[id_] = None
        if first and self._ring is not None:
            self._ring()
        return True

    def resume(self, ring: Callable[[], None]) -> None:
        """A stream begins, in place of the one before: what that took may not have arrived.

        `ring`, which must neither wait nor raise, is called whenever anything is owed and nothing was.
        """
        self._ring = ring
        self._owed |= dict.fromkeys(name for name in self._taken if name in self._held)
        self._visited |= dict.fromkeys(self._visited_taken)
        self._taken, self._visited_taken = {}, {}

    def take(self) -> tuple[str, ...]:
        """Return the names that are owed, which are not any more."""
        names, self._owed = tuple(self._owed), {}
        self._taken |= dict.fromkeys(names, math.inf)
        return names

    def take_visited(self) -> tuple[str, ...]:
        """Return the ids of the visits that are over, like `take`; no more than were taken last may be owed again."""
        ids, self._visited = tuple(self._visited), {}
        self._visited_taken |= dict.fromkeys(ids, math.inf)
        while len(self._visited_taken) > MAX_VISITED:
            del self._visited_taken[next(iter(self._visited_taken))]
        return ids

    def mark_sent(self, now: float, by: float) -> None:
        """What was taken is sent `now`, at the latest; what was sent up to the moment `by` has arrived."""
        for taken in (self._taken, self._visited_taken):
            for name in [name for name, moment in taken.items() if moment <= by]:
                del taken[name]
            taken |= {name: now for name, moment in taken.items() if moment == math.inf}
