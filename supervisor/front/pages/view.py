"""What operations show of a daemon, and to whom: all that stands behind them.

What is known of every tool is computed in a thread, and kept until a server lists something else (`Described`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from actors.catalogue.criteria import Usage
from actors.catalogue.lookalikes import Doubles
from actors.catalogue.metadata import Metadata, describe_all
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.facts import FactLog
from actors.kit import Degraded, Latest, is_want
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.figures import Figures, since_boot
from actors.transport.stdio.resources.room import Room
from supervisor.audit_trail import AuditTrail
from supervisor.delivery.events import DaemonEvents
from supervisor.fleet.peers import NO_FLEET, FleetView
from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.pages.requests import REQUESTER
from supervisor.host.turns import LoopLag, LoopTurns
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.identity.operator_key import OperatorKey
from supervisor.identity.people import ConfirmRules, Person, user_of
from supervisor.identity.requester import Bearer, SignIns, Tickets
from supervisor.identity.tokens import TokenTable
from supervisor.metrics.meters import Meters
from supervisor.phrases.asking import DescribingStatus
from supervisor.plugins.running import PluginStatus
from supervisor.servers.approvals import Approvals
from supervisor.servers.control import Control
from supervisor.servers.deployment import Deployment
from supervisor.servers.instances import Statuses
from supervisor.servers.journals.keeper import LogReader
from supervisor.servers.launches.running import Launches
from supervisor.servers.reloading.reload import Reload, ServerEdits
from supervisor.service.asking.confirmations import Consents
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.lookup.visible import Visible
from supervisor.service.port import Service
from supervisor.store import ReplacedDefinition
from supervisor.tracing.context import Tracer
from supervisor.usage.history import History
from supervisor.values.table import ValueTable

if TYPE_CHECKING:  # imported where a daemon needs them
    from supervisor.oauth.accounts import OAuthAccounts
    from supervisor.servers.fleet.configuration import SharedConfiguration

_MAX_FINDINGS = 100
"""Of each server, on the page that lists them."""


class _Kept(msgspec.Struct, frozen=True):
    tools: tuple[Tool, ...]
    metadata: Mapping[str, Metadata]
    warnings: int
    lookalikes: Doubles


class Described:
    """The metadata of the newest catalogue that was asked about, by server and tool."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._one = trio.CapacityLimiter(1)

    async def of(self, catalogue: Catalogue) -> dict[str, Mapping[str, Metadata]]:
        """Return what is known of each tool, less for want of resources: pages must be there above all then."""
        return {name: kept.metadata for name, kept in (await self._of(catalogue)).items()}

    async def warnings(self, catalogue: Catalogue) -> dict[str, int]:
        """Return how many warnings the tools of each server have together. A checkpoint, like `of`."""
        return {name: kept.warnings for name, kept in (await self._of(catalogue)).items()}

    async def _of(self, catalogue: Catalogue) -> dict[str, _Kept]:
        async with self._one:
            stale = [entry for name, entry in catalogue.entries.items() if not self._fresh(name, entry)]
            if stale:
                try:
                    made = await trio.to_thread.run_sync(lambda: {entry.server: _describe(entry) for entry in stale})
                except (OSError, RuntimeError, MemoryError) as error:
                    if not is_want(error):
                        raise
                    made = {}
                self._kept = {name: kept for name, kept in {**self._kept, **made}.items() if name in catalogue.entries}
            return {name: self._kept[name] for name in catalogue.entries if name in self._kept}

    def _fresh(self, server: str, entry: Entry) -> bool:
        kept = self._kept.get(server)
        return kept is not None and kept.tools is entry.offer.tools and kept.lookalikes == entry.standing.lookalikes


def _describe(entry: Entry) -> _Kept:
    lookalikes = entry.standing.lookalikes
    metadata = describe_all(entry.server, entry.offer.tools, lookalikes)
    return _Kept(entry.offer.tools, metadata, sum(known.warnings for known in metadata.values()), lookalikes)


def findings(described: Mapping[str, Mapping[str, Metadata]]) -> dict[str, list[dict[str, Any]]]:
    """Return the first 100 findings of each server that has any, warnings first, then by tool."""
    rows = {
        server: [
            {"tool": tool, **msgspec.to_builtins(finding)}
            for severity in ("warning", "note")
            for tool in sorted(metadata)
            for finding in metadata[tool].findings
            if finding.severity == severity
        ][:_MAX_FINDINGS]
        for server, metadata in described.items()
    }
    return {server: listed for server, listed in rows.items() if listed}


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
    facts: FactLog
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
    launches: Launches
    configurator: Reload
    editor: ServerEdits
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
    accounts: Callable[[], OAuthAccounts | None] = lambda: None
    fleet: FleetView = NO_FLEET
    publisher: SharedConfiguration | None = None
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

    def reports(self) -> Mapping[str, ServerStatus]:
        """Return what was last reported of servers: of all of them, until identities are configured."""
        return self.statuses.value

    def status_of(self, server: str, *, stderr: bool = False) -> ServerStatus | None:
        """Return how a server is doing now, or did when it reported last; None if nothing is known of it."""
        return self.live.of(server, self.reports(), stderr=stderr)


async def _none() -> Sequence[Any]:
    await trio.lowlevel.checkpoint()
    return ()
