"""What operations show of a daemon, and to whom: all that stands behind them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import trio

from actors.catalogue.criteria import Usage
from actors.catalogue.snapshot import Catalogue
from actors.kit import Degraded, Feed, Latest
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.registry.happening import Happening, StateChange
from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.figures import Figures, since_boot
from actors.transport.stdio.resources.room import Room
from supervisor.delivery.events import DaemonEvents
from supervisor.fleet.status import NO_FLEET, FleetView
from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.pages.metadata import Described
from supervisor.front.pages.rights import REQUESTER
from supervisor.host.turns import LoopLag, LoopTurns
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.operator_key import OperatorKey
from supervisor.identity.people import ConfirmRules, Person, user_of
from supervisor.identity.requester import Bearer, SignIns, Tickets
from supervisor.identity.tokens import TokenTable
from supervisor.metrics.meters import Meters
from supervisor.oauth.port import Accounts
from supervisor.phrases.port import DescribingStatus
from supervisor.plugins.running import PluginStatus
from supervisor.servers.control import Control
from supervisor.servers.deployment import Deployment
from supervisor.servers.instances import Statuses
from supervisor.servers.journals.keeper import LogReader
from supervisor.servers.launches.names import NO_LAUNCHES, LaunchFacts
from supervisor.servers.reloading.port import Configurator, Editor, Publisher
from supervisor.service.asking.confirmations import Consents
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.lookup.visible import Visible
from supervisor.service.port import Service
from supervisor.store import ReplacedDefinition
from supervisor.store.approvals import Approvals
from supervisor.store.audit_trail import AuditTrail
from supervisor.tracing.context import Tracer
from supervisor.usage.history import History
from supervisor.values.table import ValueTable


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """The present moment: `unix` time in seconds, and in seconds of the trio clock.

    What happened is known as a moment of the latter. On the clock of the wall it is as long ago as it is now, wherever
    that was set to in between.
    """

    unix: float
    elapsed: float

    def unix_of(self, moment: float) -> float:
        return self.unix - (self.elapsed - moment)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages show, and to whom. Functions are called for each page.

    `clock` gives unix time in seconds, `elapsed` the trio clock; `started` is a moment of the latter. Whoever has the
    `operator` key, which is in `token_file`, may change the configuration; forms have tokens that follow from `key`.
    `definitions` gives what a server\'s tool was defined as before, the oldest first. `seen_by` gives what somebody
    sees.
    """

    version: str
    started: float
    clock: Callable[[], float]
    elapsed: Callable[[], float] = trio.current_time
    catalogue: Latest[Catalogue]
    statuses: Latest[Mapping[str, ServerStatus]]
    live: Statuses = msgspec.field(default_factory=Statuses)
    feed: Feed[Happening]
    changes: Callable[[str], Sequence[StateChange]] = lambda server: ()
    """Gives the newest changes of state of a server, the oldest first."""
    events: DaemonEvents
    kept_events: Callable[..., Awaitable[Sequence[tuple[int, bytes]]]] = lambda *wanted: _none()
    closing: trio.Event
    deployment: Latest[Deployment] = msgspec.field(default_factory=lambda: Latest(Deployment()))
    store: Callable[[], Any] = dict
    degraded: Callable[[], list[Degraded]] = list
    part_restarts: Mapping[str, int] = msgspec.field(default_factory=dict)
    usage: Callable[[Principal], Any] = lambda principal: {}
    counters: Callable[[], ConnectionCounters] = ConnectionCounters
    log_records_lost: Callable[[], int] = int
    totals: Callable[[Principal | None], Usage] = lambda principal: {}
    history: History
    arguments: Callable[[int], str | None] = lambda number: None
    control: Control
    configurator: Configurator
    editor: Editor
    key: bytes = b""
    token_file: str = ""
    bench: Workbench = msgspec.field(default_factory=Workbench)
    """Reads bodies of pages beside the loop."""
    operator: OperatorKey = msgspec.field(default_factory=lambda: OperatorKey(b"", b"", time.monotonic))
    tokens: TokenTable
    tickets: Tickets = msgspec.field(default_factory=Tickets)
    sign_ins: SignIns = msgspec.field(default_factory=SignIns)
    values: ValueTable
    seen_by: Callable[[Person], Awaitable[Visible]]
    service_for: Callable[[Person], Awaitable[Service]]
    """Gives the door of the meta-tools for somebody."""
    trail: AuditTrail | None = None
    bearer: Bearer | None = None
    accounts: Callable[[], Accounts | None] = lambda: None
    launches: LaunchFacts = NO_LAUNCHES
    fleet: FleetView = NO_FLEET
    publisher: Publisher | None = None
    elicitations: Elicitations
    consents: Consents = msgspec.field(default_factory=lambda: Consents(time.time))
    logs: LogReader
    approvals: Approvals | None = None
    definitions: Callable[[str, str], Awaitable[Sequence[ReplacedDefinition]]] = lambda server, tool: _none()
    plugins: Callable[[], list[PluginStatus]] = list
    describing: Callable[[], DescribingStatus | None] = lambda: None
    """Says how far a model is that is asked for sentences."""
    meters: Meters = msgspec.field(default_factory=Meters)
    tracer: Tracer | None = None
    lag: LoopLag = msgspec.field(default_factory=LoopLag)
    turns: LoopTurns = msgspec.field(default_factory=LoopTurns)
    described: Described = msgspec.field(default_factory=Described)
    room: Room = msgspec.field(default_factory=Room)
    figures: Callable[[], Awaitable[Mapping[int, ProcessFigures]]] = msgspec.field(
        default_factory=lambda: Figures(since_boot).get
    )

    @property
    def audit(self) -> Audit:
        return NO_AUDIT if self.trail is None else self.trail

    @property
    def principal(self) -> Principal:
        """Who asks for the page that is being made."""
        return REQUESTER.get().principal

    def confirm_rules(self) -> ConfirmRules:
        """Return what whoever asks for the page has to say yes to besides what everybody has."""
        return self.deployment.value.settings.identity.confirm_rules(user_of(self.principal))

    def now(self) -> Now:
        return Now(unix=self.clock(), elapsed=self.elapsed())

    def visible_catalogue(self) -> Catalogue:
        return self.catalogue.value.view(self.principal)

    def reports(self) -> Mapping[str, ServerStatus]:
        """Return what was last reported of servers: of all of them, until identities are configured."""
        return self.statuses.value

    def status_of(self, server: str, *, stderr: bool = False) -> ServerStatus | None:
        """Return how a server is doing now, or did when it reported last; None if nothing is known of it."""
        return self.live.of(server, self.reports(), stderr=stderr)


async def _none() -> Sequence[Any]:
    await trio.lowlevel.checkpoint()
    return ()
