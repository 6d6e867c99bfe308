"""One of several instances of a launch, as those see it who choose among them."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.instance_status import InstanceStatus
from actors.instances.choice import Candidate
from actors.kit.reporter import Reporter
from actors.life.states import State
from actors.messages import ServerStatus
from actors.principal import ClientKey
from actors.protocol.agreement.versions import Era
from actors.server.actor import ServerActor
from actors.server.context import Profile

COMING = frozenset({State.SPAWNING, State.HANDSHAKING, State.DISCOVERING})
STARTABLE = frozenset({State.DORMANT, State.FAILED})


class InstanceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance is made of beside its launch: what is known of that, and the `address` of a replica."""

    number: int
    address: str = ""
    known: Offer | None = None
    era: Era | None = None


class Instance:
    """An actor with a life of its own, and what it has to do.

    `address` is that of a replica; empty for the address of the server, and for a process. `shown` is the address as it
    may be shown. `open` counts its calls, until they settle. `starting`: it was woken, and has not answered. `leaving`:
    it gets no more calls. `proven`: it was up once. Before `not_before`, a moment of the trio clock, it is not tried
    again. `post` is the mailbox of its actor. `client` is whose alone it is. `known` is what was known of it at first.
    """

    __slots__ = (
        *("actor", "address", "breakers", "client", "known", "last", "leaving", "not_before", "number", "open", "post"),
        *("proven", "reporter", "seat", "shown", "starting"),
    )

    def __init__(
        self,
        number: int,
        actor: ServerActor,
        profile: Profile,
        reporter: Reporter,
        *,
        address: str = "",
        shown: str = "",
    ) -> None:
        self.number = number
        self.actor, self.post = actor, actor.address
        self.breakers = actor.breakers
        self.seat, self.known = profile.seat, profile.known
        self.last = actor.status()
        self.reporter = reporter
        self.address = address
        self.shown = shown
        self.open = 0
        self.starting = self.leaving = False
        self.proven = actor.life.serving
        self.not_before = 0.0
        self.client: ClientKey | None = None

    @property
    def up(self) -> bool:
        return self.actor.life.state is State.READY and not self.leaving

    @property
    def coming(self) -> bool:
        return self.starting or self.actor.life.state in COMING

    def candidate(self, now: float, refused_by: Collection[str] = ()) -> Candidate:
        """Return it as a call finds it. A run that gave the call back may not have heard yet that it has ended."""
        state = self.actor.life.state
        return Candidate(
            number=self.number,
            up=state is State.READY and self.seat.run not in refused_by,
            coming=self.starting or state in COMING,
            startable=not self.starting and state in STARTABLE and now >= self.not_before,
            fit=self.proven or bool(self.address),
            open=self.open,
        )

    def refuses(self, tool: str, now: float) -> bool:
        """Return whether one of its breakers would refuse a call of a tool; empty for other calls."""
        return self.breakers.troubled and self.breakers.refusal(tool, now) is not None

    def status(self, stderr: bool = False) -> ServerStatus:
        """Return how it is doing now; of one that has ended, that."""
        if not self.actor.life.over:
            self.last = self.actor.status(stderr)
            return self.last
        return replace(self.last, state=State.STOPPED, wanted="stopped", pid=None, in_flight=0, waiting=0)

    def note(self, status: ServerStatus) -> None:
        """Take to heart how its life goes on."""
        if status.state is State.READY:
            self.proven, self.not_before = True, 0.0
        elif status.state is State.FAILED:
            self.not_before = float("inf") if status.retry_at is None else status.retry_at

    def row(self, status: ServerStatus) -> InstanceStatus:
        """Return how it is doing, for operators. What its mailbox has not read yet counts as waiting."""
        return InstanceStatus(
            number=self.number,
            state=status.state,
            since=status.since,
            pid=status.pid,
            leads=self.seat.leads,
            address=self.shown,
            leaving=self.leaving,
            in_flight=status.in_flight,
            waiting=max(status.waiting, self.open - status.in_flight),
            calls=status.calls,
            failures=status.failures,
            restarts=status.restarts,
            last_error=status.last_error,
        )


MakeInstance = Callable[[InstanceSpec], Instance]
"""Makes an instance, whose actor does not run yet."""
