"""What the actor of a server is made of: what is known of that server, what all of them share, what its parts share."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.offer import Offer
from actors.catalogue.trust import TRUSTING, PinKeeper
from actors.facts import FactLog
from actors.kit import Address, Starts, StartSoon
from actors.kit.timers import Timers
from actors.life.breakers import Breakers
from actors.life.lifecycle import Effect, Event, step
from actors.life.policy import RestartLog
from actors.life.states import Life, Timer
from actors.protocol.agreement.era import Identity
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import FIRST_IDS
from actors.protocol.wire.mirrors import MirrorsOf
from actors.server.calls.calls import CallBreakers, Calls
from actors.server.inbox import Seat, ServerMessage
from actors.server.operators.journal import Journal
from actors.server.operators.orders import Handover, Orders
from actors.server.operators.record import Record
from actors.server.parts.recovery import Recovery
from actors.server.settings import ServerSettings
from actors.subscribers import OnlyUpdates, Subscribers
from actors.transport.base import Transport


def request_ids() -> Iterator[int]:
    """Return the ids of the requests of one daemon to all of its servers, each given once.

    Behind an address there may be several conversations at a time: of both eras, of several users, of a daemon before
    this one, also where a local program only passes on. Some servers without sessions find whose an answer is by its
    id alone (CVE-2026-25536): with equal ids one user would get what another one asked for. Hence one count for all,
    which begins where nobody can tell. Nor is a large number likely to be the `id` of something in a broken result.
    """
    return itertools.count(secrets.choice(FIRST_IDS))


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a server, or one instance of it, by the name of the launch; texts have that of the server.

    `known` is what the catalogue already has of it, `era` what it spoke before.
    `hide` takes secrets out of what the server says of itself. `journal` is what is kept of it for its operator.
    `breakers` are those of its launch, where another actor has made them.
    `predecessor` is set once nothing is left of the process that was there before this configuration: two of them could
    want the same file or port, so no process starts before that. None if there was none. `seat`: among its instances.
    """

    name: str
    transport: Transport
    settings: ServerSettings
    restarts: RestartLog
    journal: Journal
    known: Offer | None = None
    era: Era | None = None
    hide: Callable[[str], str] = str
    breakers: Breakers | None = None
    predecessor: trio.Event | None = None
    seat: Seat = msgspec.field(default_factory=Seat)


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What all servers of a daemon share. `starts` bounds how many start at once, `identity` is who we say we are.

    `clock` gives unix time in seconds; deadlines run by the trio clock. `desk` is where large pages of lists are read.
    `subscribers` are who is told of changes of resources. `keeper` knows which tools may be called. `facts` are
    told starts, ends and readings. `request_ids` gives each id once.
    """

    starts: Starts
    clock: Callable[[], float]
    identity: Identity
    subscribers: Subscribers
    desk: trio.CapacityLimiter | None = None
    keeper: PinKeeper = TRUSTING
    facts: FactLog = msgspec.field(default_factory=lambda: FactLog(time.time))
    request_ids: Iterator[int] = msgspec.field(default_factory=request_ids)

    def beside(self) -> Shared:
        """Return what an actor gets that works beside the one of its server: clients miss nothing when it ends."""
        return replace(self, subscribers=OnlyUpdates(self.subscribers))


class Course:
    """The course of a server's life, and the one place where `lifecycle.step` is called.

    `perform` does what follows from an event; it may let further events happen.
    """

    def __init__(self, perform: Callable[[Effect], None], orders: Orders) -> None:
        self.life = Life()
        self._perform = perform
        self._orders = orders

    def end(self) -> None:
        """Forget who performs: nothing follows from anything any more."""
        del self._perform

    def step(self, event: Event) -> None:
        """Let one event happen, do what follows from it, and answer those whose order is done with it."""
        self.life, effects = step(self.life, event)
        for effect in effects:
            self._perform(effect)
        self._orders.settle(self.life)


class ServerContext(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What every part of one server may use; nothing in it knows the parts.

    `post` is the mailbox of the actor. `mirrors_of` and `needs_task` know the server's tools as they were listed last.
    """

    server: Profile
    shared: Shared
    post: Address[ServerMessage]
    start_soon: StartSoon
    timers: Timers[Timer]
    course: Course
    calls: Calls
    orders: Orders
    breakers: CallBreakers
    record: Record
    recovery: Recovery
    handover: Handover
    mirrors_of: MirrorsOf
    needs_task: Callable[[str], bool]
