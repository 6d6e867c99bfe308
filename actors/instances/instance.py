"""One of several instances of a launch, as those see it who choose among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.errors import SupervisorError, TooManyCalls
from actors.instances.choice import Candidate
from actors.kit import ClientQuota
from actors.kit.reporter import Reporter
from actors.life.states import State
from actors.messages import InstanceStatus, ServerStatus
from actors.principal import ClientKey
from actors.protocol.agreement.versions import Era
from actors.server.actor import ServerActor
from actors.server.inbox import Lead
from actors.server.parts.context import Profile

COMING = frozenset({State.SPAWNING, State.HANDSHAKING, State.DISCOVERING})
STARTABLE = frozenset({State.DORMANT, State.FAILED})
_DOWN: Final = frozenset({State.RESPAWNING, State.FAILED, State.STOPPED})
BUSY_RETRY_S = 5.0


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


class Leading:
    """Which instance of a launch leads: what it lists is what the launch offers, and it tells of resources. No I/O.

    `leader` is the one that leads. It leads until it is down while another one is up, or until it leaves.
    """

    def __init__(self, instances: Mapping[int, Instance], first: Instance) -> None:
        self.leader = first
        self._instances = instances

    def follow(self) -> None:
        """Look whether another one has to lead, and tell each whether others can take what it could not send."""
        leaves = self.leader.leaving
        if leaves or self.leader.actor.life.state in _DOWN:
            staying = [each for each in self._of_all() if not each.leaving]
            following = next((each for each in staying if each.up), staying[0] if leaves and staying else None)
            if following is not None:
                self.lead(following)
        able = {each.number for each in self._of_all() if each.up or each.coming}
        for each in self._instances.values():
            each.seat.replaceable = each.client is None and bool(able - {each.number})

    def lead(self, instance: Instance, *, reads: bool = True) -> None:
        """Have an instance lead. `reads`: what it lists is not known yet."""
        self.leader.seat.leads = False
        self.leader, instance.seat.leads = instance, True
        with suppress(SupervisorError):  # gone: then another one leads soon
            instance.post.tell_nowait(Lead(reads=reads))

    def _of_all(self) -> Iterator[Instance]:
        return (each for each in self._instances.values() if each.client is None)


class ClientInstances:
    """Instances of a launch that are one client's alone: made with its first call, gone with its session or its sleep.

    They are shared by people first (`actors.kit.fairness.quota`): sessions are opened as one likes.

    At most `limit` at a time. `make` makes one, `retire` has one end; the instance that leads is nobody's.
    """

    def __init__(
        self,
        server: str,
        instances: Mapping[int, Instance],
        limit: int,
        make: Callable[[], Instance],
        retire: Callable[[Instance], None],
    ) -> None:
        self._server = server
        self._instances = instances
        self.limit = limit
        self._make = make
        self._retire = retire

    def of(self, client: ClientKey) -> Instance:
        """Return the instance of a client. Raises `TooManyCalls` where others have all of them."""
        known = self.find(client)
        if known is not None:
            return known
        taken = [each for each in self._instances.values() if each.client is not None and not self._is_over(each)]
        shared, own = ClientQuota(self.limit), list[Instance]()
        for each in taken:
            assert each.client is not None
            shared.add(each.client)
            own += [each] if each.client[0] == client[0] else []
        if not shared.has_room(client):
            others = taken if len(taken) >= self.limit else []
            unused = next((each for each in (*own, *others) if not each.leaving and self._is_unused(each)), None)
            if unused is None:
                raise TooManyCalls(self._why_not(len(own)), server=self._server, retry_after_s=BUSY_RETRY_S)
            self._retire(unused)
        made = self._make()
        made.client = client
        return made

    def find(self, client: ClientKey) -> Instance | None:
        """Return the instance that a client has."""
        return next((each for each in self._instances.values() if each.client == client and not each.leaving), None)

    def leave(self, client: ClientKey) -> None:
        """A client is gone, and so is what it had."""
        if (known := self.find(client)) is not None:
            self._retire(known)

    def look(self, instance: Instance) -> None:
        """Have an instance end that fell asleep: its client gets a fresh one."""
        asleep = instance.actor.life.state is State.DORMANT and self._is_unused(instance)
        if asleep and instance.client is not None and not instance.leaving:
            self._retire(instance)

    def _why_not(self, own: int) -> str:
        text = f"server {self._server!r} has an instance for each client, "
        if not own:
            return f"{text}and others have all {self.limit}"
        return f"{text}and of the {self.limit} {own} are of clients of yours: end the session of one of them"

    def _is_over(self, instance: Instance) -> bool:
        return instance.leaving and instance.actor.life.resting

    def _is_unused(self, instance: Instance) -> bool:
        return instance.actor.life.resting and not instance.open and not instance.starting
