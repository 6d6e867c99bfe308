"""The session of the legacy era that a server which speaks both eras has beside its conversation in the modern one.

A modern server asks by its results, a legacy one by requests within a session (MCP 2025-11-25, client/elicitation,
client/sampling, client/roots), and a tool of a server that speaks both may be written for one way only. So a call of a
legacy client that can be asked something goes to a legacy session, and all other calls to the modern conversation.

Rules:
- Only remote servers have one: for a process it would be a second process.
- Nobody says that a server speaks both, so the first such call finds out: whoever refuses `initialize` is not asked for
  a session again before it is restarted, and the call goes on in the modern conversation.
- It is an actor of its own with a life, bounds and timers of its own: it closes its session where that is idle, and its
  failures are those of its calls. One that broke is opened again by the next call; where none can be opened, calls go
  on in the modern conversation, and none is asked for in `PAUSE_S`. It reads no lists and reports nothing: the
  catalogue is that of the modern conversation. Only of resources that change both tell, as a change may be known in one
  session alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import trio
from msgspec.structs import replace

from actors.catalogue.trust import PinKeeper
from actors.errors import LoginRequired, ServerGaveUp, ServerStarting, Starved, SupervisorError
from actors.kit import Address, Ask, Reply, StartSoon
from actors.life.states import Life, State
from actors.messages import CallServer, Departure, Result, ServerStatus, SleepServer, StopServer
from actors.principal import LOCAL
from actors.protocol.agreement.capabilities import NOBODY
from actors.protocol.asking.input_required import METHODS as ASKING
from actors.protocol.changes import OF_RESOURCES
from actors.protocol.exchanges import NOTHING
from actors.server.inbox import Seat, ServerMessage, SessionEnded
from actors.server.parts.context import Profile
from actors.server.parts.discovery import Discovery

PAUSE_S: Final = 60.0
"""For so long no session is asked for where there was no connection for one."""
_NOT_UP: Final = (ServerGaveUp, ServerStarting, Starved, LoginRequired)
"""What a call gets that waited for a server which did not come up. It was not sent."""


class SessionActor(Protocol):
    """What the actor of a session is to the actor of its server."""

    address: Address[ServerMessage]

    @property
    def life(self) -> Life:
        """The present state and what is wanted."""

    def status(self) -> ServerStatus:
        """Return how the session is doing now."""

    async def run(self) -> None:
        """Handle messages until the end."""


class LegacySession:
    """The session of one server, made when a call needs it.

    `discovery` has what is known of the server, `make` makes the actor, `main` is the mailbox of the server's own.
    `possible`: it is no process, and not pinned to an era. Where the `keeper` has calls wait until lists are read, all
    go on in the modern conversation, as do those that name the definition they are for: a session reads no lists, so
    what its tools are would not be known.
    """

    def __init__(
        self,
        server: Profile,
        discovery: Discovery,
        keeper: PinKeeper,
        make: Callable[[Profile], SessionActor],
        main: Address[ServerMessage],
        start_soon: StartSoon,
    ) -> None:
        self._keeper = keeper
        self.possible = server.transport.kind != "stdio" and server.settings.terms.only is None
        self._server = server
        self._discovery = discovery
        self._make = make
        self._main = main
        self._start_soon = start_soon
        self._actor: SessionActor | None = None
        self._open = 0
        self._served = False
        self._refused = False
        self._left = False
        self._not_before = 0.0

    @property
    def over(self) -> bool:
        """Whether no session is open, or ending."""
        return self._open == 0

    def take(self, message: CallServer, reply: Reply[Result], life: Life) -> bool:
        """Take a call that goes there; False for all others. `life` is that of the modern conversation."""
        if taken := self._is_for(message, life):
            self._send(message, reply)
        elif message.method in OF_RESOURCES:
            self._follow(message)
        return taken

    def _is_for(self, message: CallServer, life: Life) -> bool:
        if not message.by_requests or message.interest.capabilities == NOBODY or message.method not in ASKING:
            return False
        if message.retry or message.as_task or message.run or life.state not in (State.READY, State.DORMANT):
            return False
        if self._refused or not self.possible or self._keeper.holds(self._server.name) or message.definition:
            return False
        known = self._discovery.offer
        return known is not None and known.era == "modern" and trio.current_time() >= self._not_before

    def _send(self, message: CallServer, reply: Reply[Result]) -> None:
        """Send a call there; one for which there is no session comes back to the mailbox of the server's actor."""
        actor = self._actor
        if actor is None:
            actor = self._actor = self._begin()
        arrived = trio.current_time()
        reply.release()  # who settles it is the actor of the session
        try:
            sent = actor.address.request(message)
        except SupervisorError as error:
            reply.fail(error)
            return
        reply.on_abandon(lambda: sent.abandon(reply.abandoned_for))
        sent.on_settled(lambda: self._on_settled(actor, sent, message, reply, arrived))

    def _begin(self) -> SessionActor:
        server = self._server
        terms = replace(server.settings.terms, only="legacy", reads_lists=False)
        settings = replace(server.settings, terms=terms, catalogue_max_age_s=0.0)
        self._served = False
        self._open += 1
        profile = replace(
            server,
            settings=settings,
            restarts=server.restarts.without_restarts(),
            journal=server.journal.fresh(),
            known=self._discovery.offer,
            era="legacy",
            seat=Seat(),
        )
        actor = self._make(profile)
        self._start_soon(self._run, actor)
        return actor

    async def _run(self, actor: SessionActor) -> None:
        await actor.run()
        self._open -= 1
        await self._main.tell(SessionEnded())

    def _on_settled(
        self, actor: SessionActor, sent: Reply[Result], message: CallServer, reply: Reply[Result], arrived: float
    ) -> None:
        error, given = sent.failure, sent.value
        if reply.settled:  # the client went away
            return
        if not isinstance(error, _NOT_UP):
            self._served = True
        if given is not None:
            reply.answer(given)
        elif isinstance(error, _NOT_UP) and not self._left:  # else it is what the successor says
            if actor is self._actor:
                self._close(actor, error)
            self._main.forward(message.passed_on(arrived + message.deadline_s - trio.current_time()), reply)
        elif error is not None:
            reply.fail(error)

    def _close(self, actor: SessionActor, error: SupervisorError) -> None:
        """There is no session any more, or none could be opened: now, or for good where it was refused."""
        self.end()
        if self._served:
            return
        self._refused = actor.life.permanent and not actor.life.barred
        self._not_before = trio.current_time() + PAUSE_S
        self._server.journal.note(f"no session of the legacy era: {error.message}")

    def _follow(self, message: CallServer) -> None:
        """Subscribe the session to what the modern conversation is subscribed to: each tells of what happens in it.

        A session that is to be opened subscribes to everything by itself.
        """
        if self._actor is None:
            return
        if self._actor.life.resting:
            self.end()
        else:
            self._order(replace(message, interest=NOTHING, exchange=None, by_requests=False))

    def sleep(self) -> None:
        self._order(SleepServer(server=self._server.name, principal=LOCAL))

    def end(self, departure: Departure | None = None) -> None:
        self._left = self._left or departure is not None
        self._order(StopServer(departure))
        self._actor = None

    def restart(self) -> None:
        """End it; the next call finds out anew whether the server speaks both eras."""
        self.end()
        self._refused, self._not_before = False, 0.0

    def _order(self, order: Ask[Any]) -> None:
        if self._actor is not None:
            try:
                self._actor.address.request(order)
            except SupervisorError:  # full or gone: it ends when it is idle, or with its server
                return

    def counted_in(self, status: ServerStatus) -> ServerStatus:
        if self._actor is None:
            return status
        session = self._actor.status()
        return replace(
            status,
            legacy_session=self._actor.life.serving,
            in_flight=status.in_flight + session.in_flight,
            waiting=status.waiting + session.waiting,
            calls=status.calls + session.calls,
            failures=status.failures + session.failures,
        )
