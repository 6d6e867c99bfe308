"""What all connections share: whether a client has left, whose turn it is, what waits too long, and what is counted.

Theory: while a request is worked on nobody reads its connection, so that what a client sends ahead stays where it costs
nothing: in the kernel. The end of a connection stands behind that, and would be read last. But the kernel can be asked
for it alone (EPOLLRDHUP). All connections are registered once with one epoll of their own, which a single task waits
for (`Departures`): a request costs no task and no system call for being watched. Who has sent more than the kernel
holds, and leaves, is noticed when that was read: the end is behind it. Only Linux has that. Elsewhere nobody is told
ahead: who leaves is noticed when its connection is read or written again.

Deadlines of many things that all wait for the same time need no timer each and no order by time: the oldest is always
the first one due, and one task looks after all (`Timeouts`).
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

import msgspec
import trio

from actors.kit import Conditions, Turnstile
from actors.kit.fairness.share import Who
from supervisor.config import Settings
from supervisor.front.edge.budget import Budget

_EVENTS_PER_TURN = 16
"""Frames, chunks or requests of one connection in a row: about a millisecond of the loop."""


class Turns:
    """Counts the events of one connection. One that sends without pause has so many of them, then everybody else."""

    def __init__(self, events: int = _EVENTS_PER_TURN) -> None:
        self._events = events
        self._left = events

    def used_up(self) -> bool:
        """Count one event; True, each time a turn is used up: then a checkpoint is due."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._events
        return True


class Allowance:
    """So many in a second; what was not used adds up to one second's worth."""

    def __init__(self, per_s: float, now: float) -> None:
        """`now` in seconds, of any clock that only goes forward."""
        self._per_s = per_s
        self._left = per_s
        self._at = now

    def spend(self, now: float) -> bool:
        """Use one; False if there is none left."""
        self._left = min(self._per_s, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


T = TypeVar("T")


class Timeouts(Generic[T]):
    """What waits, each for `timeout_s`; `expire` is called for what has waited that long, and must not raise.

    What waits may be looked at and taken out at any time.
    """

    def __init__(self, timeout_s: float, expire: Callable[[T], None]) -> None:
        self._timeout_s = timeout_s
        self._expire = expire
        self._deadlines: dict[T, float] = {}
        self._bell = trio.lowlevel.ParkingLot()

    def add(self, item: T) -> None:
        self._deadlines[item] = trio.current_time() + self._timeout_s
        if len(self._deadlines) == 1:
            self._bell.unpark()

    def discard(self, item: T) -> bool:
        """It waits no more; return whether it did."""
        return self._deadlines.pop(item, None) is not None

    def expire_all(self) -> None:
        while self._deadlines:
            self._expire_first()

    def _expire_first(self) -> None:
        item = next(iter(self._deadlines))
        del self._deadlines[item]
        self._expire(item)

    async def run(self) -> None:
        while True:
            while not self._deadlines:
                await self._bell.park()
            # Nothing that is added later can be due sooner, so nobody has to wake us before.
            await trio.sleep_until(next(iter(self._deadlines.values())))
            now = trio.current_time()
            while self._deadlines and next(iter(self._deadlines.values())) <= now:
                self._expire_first()


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


class ConnectionCounters(msgspec.Struct, kw_only=True):
    """What happened on the connections of one `serve`; read by whoever reports it."""

    open: int = 0
    sockets: int = 0
    """WebSockets that speak MCP."""
    accepted: int = 0
    refused: int = 0
    """Over the limit of connections."""
    errors: int = 0
    """Connections that ended with an exception: malformed input, or a bug."""
    stalled: int = 0
    """Connections whose peer took nothing for the send deadline."""


class EdgeState(msgspec.Struct, frozen=True, eq=False):
    """What others read of the connections of one server: counts, bytes that are held, what is wanting."""

    counters: ConnectionCounters = msgspec.field(default_factory=ConnectionCounters)
    budget: Budget = msgspec.field(default_factory=Budget)
    conditions: Conditions = msgspec.field(default_factory=Conditions)
    opened: trio.Event = msgspec.field(default_factory=trio.Event)
    """Set when whoever connects may be served."""


class ConnectionContext(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What all connections of one server have in common."""

    settings: Settings
    budget: Budget
    counters: ConnectionCounters
    departures: Departures
    turnstile: Turnstile = msgspec.field(default_factory=Turnstile)
    closing: trio.Event
    """Set when each answer is the last one of its connection."""


class Wire(Protocol):
    """A connection, as those see it who speak on it."""

    socket: trio.socket.SocketType
    address: str
    """Where it comes from; empty if that was not known."""
    context: ConnectionContext
    who: Who
    """Which client is there, as far as is known: what comes from it is read in turn with that of others."""
    leaving: Leaving

    @property
    def behind(self) -> bytes: ...

    def take(self) -> bool:
        """Take the next part of the body under way from what was read; False if there is none.

        Raises `HttpProtocolError`.
        """
        ...

    async def more(self) -> None:
        """Wait for the next part of the body of the request under way. Raises `ClientGone` and `HttpProtocolError`."""
        ...

    async def read(self) -> bytes: ...

    async def write(self, *parts: bytes) -> None: ...
