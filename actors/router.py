"""The router: admission, lookup, forward. It is not in the way of an answer: the reply travels with the message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from actors import server
from actors.errors import ActorStopped, MailboxFull, ShuttingDown, Starved, SupervisorError, TooManyCalls
from actors.kit import Actor, Address, Ask, Reply, Shares
from actors.kit.directory import Directory
from actors.messages import CallServer, RefreshServer, RestartServer, SleepServer, WakeServer
from actors.principal import Principal


class BeginShutdown(Ask[None], frozen=True):
    """Refuse what comes; answered when the last call in flight has settled."""


class CallSettled(msgspec.Struct, frozen=True):
    """A call has settled while somebody waits for the last one."""


ForServer = CallServer | WakeServer | RestartServer | RefreshServer | SleepServer
Message = ForServer | BeginShutdown | CallSettled
LaunchOf = Callable[[str, Principal], str]
"""Returns the launch that a server's name means to somebody. Raises `SupervisorError` where none can be started."""


class Sleepers(Protocol):
    """Launches that have no actor as long as nobody calls them."""

    def has(self, launch: str) -> bool:
        """Say whether that is one of them."""

    def call_up(self, launch: str, then: Callable[[], None]) -> None:
        """Have one be made an actor; `then` is called once it has one, or cannot have one."""


class NoSleepers:
    """Implements `Sleepers` where there are none."""

    def has(self, launch: str) -> bool:
        del launch
        return False

    def call_up(self, launch: str, then: Callable[[], None]) -> None:
        del launch
        then()


NO_SLEEPERS: Final = NoSleepers()


class InFlight:
    """How many calls are in flight over all servers, and whose: the cell of the router that the tasks of others write.

    The router reads it with each of its messages. Only while it is `awaited` a settled call sends one of its own: most
    of the time nobody has to hear of it at once, and a message for each call would cost each call a turn of the loop.
    Nothing is lost where the mailbox is full, as the messages in it are still to be handled.
    """

    __slots__ = ("_address", "awaited", "shares")

    def __init__(self, address: Address[Message], limit: int) -> None:
        self._address = address
        self.awaited = False
        self.shares = Shares(limit)

    @property
    def calls(self) -> int:
        return self.shares.used

    def on_settled(self, principal: Principal) -> None:
        self.shares.remove(principal)
        if self.awaited:
            with suppress(MailboxFull, ActorStopped):
                self._address.tell_nowait(CallSettled())


class Router(Actor[Message]):
    """One per daemon. At most `max_in_flight` calls are in flight over all servers, of which each has a share.

    `overload` says why no call may begin now; empty if it may.
    """

    def __init__(
        self,
        directory: Directory[server.ServerMessage],
        max_in_flight: int,
        launch_of: LaunchOf = lambda server, principal: server,
        sleepers: Sleepers = NO_SLEEPERS,
        overload: Callable[[], str] = str,
    ) -> None:
        super().__init__(max_in_flight + 64)
        self._directory = directory
        self._launch_of = launch_of
        self._sleepers = sleepers
        self._overload = overload
        self.in_flight = InFlight(self.address, max_in_flight)
        self._closing: list[Reply[Any]] = []

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        match message:
            case CallServer() | WakeServer() | RestartServer() | RefreshServer() | SleepServer():
                assert reply is not None
                self._forward(message, reply)
            case BeginShutdown():
                assert reply is not None
                self.in_flight.awaited = True
                self._closing.append(reply)
        if self._closing:
            self._report_drained()

    def _forward(self, message: ForServer, reply: Reply[Any]) -> None:
        if reply.settled:  # nobody waits any more
            return
        if self.in_flight.awaited:
            reply.fail(ShuttingDown())
            return
        try:
            launch = self._launch_of(message.server, message.principal)
        except SupervisorError as error:
            reply.fail(error)
            return
        address = self._directory.find(launch)
        if address is None and not self._sleepers.has(launch):
            reply.fail(self._directory.why_not(launch))
            return
        if isinstance(message, (CallServer, WakeServer)) and (why := self._overload()):
            reply.fail(Starved(f"the daemon is short of memory: {why}", outcome="not_sent"))
            return
        # Who waits for a server takes as much as who calls it; a stream is no call that ends by itself.
        if isinstance(message, WakeServer) or (isinstance(message, CallServer) and not message.lasts):
            shares, principal = self.in_flight.shares, message.principal
            if not shares.has_place(principal):
                reply.fail(TooManyCalls(f"the daemon is busy: {shares.why_not(principal, 'calls')}"))
                return
            shares.add(principal)
            reply.on_settled(partial(self.in_flight.on_settled, principal))
        if address is not None:
            address.forward(message, reply)
        else:
            self._sleepers.call_up(launch, partial(self._forward_late, launch, message, reply))

    def _forward_late(self, launch: str, message: ForServer, reply: Reply[Any]) -> None:
        """Forward what has waited for its launch to have an actor."""
        address = self._directory.find(launch)
        if address is None:
            reply.fail(self._directory.why_not(launch))
        elif not reply.settled:
            address.forward(message, reply)

    def _report_drained(self) -> None:
        if self.in_flight.calls == 0:
            for reply in self._closing:
                reply.answer(None)
            self._closing.clear()
