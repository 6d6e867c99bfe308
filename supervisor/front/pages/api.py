"""The pages for operators and programs: health, readiness, status.

Nothing here carries a payload of a call, a value of the configuration's `env` or `headers`, or text of an exception.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import trio
from quart import Response
from quart_trio import QuartTrio

from actors.catalogue.criteria import Usage
from actors.catalogue.snapshot import Catalogue
from actors.installation import DISABLED, DOWN, installation_status
from actors.kit import Degraded, Feed, Latest
from actors.launch import is_own, server_of
from actors.life.states import State
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.registry.happening import Happening, StateChange
from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.figures import Figures, since_boot
from actors.transport.stdio.resources.room import Room
from supervisor.delivery.events import DaemonEvents
from supervisor.fleet.links.peers import Peers
from supervisor.fleet.status import NO_FLEET, FleetView
from supervisor.front.edge.wire import ConnectionCounters
from supervisor.front.pages.app import json_response
from supervisor.front.pages.metadata import Described
from supervisor.front.pages.rights import REQUESTER
from supervisor.front.pages.server_rows import (
    OF_LISTS,
    SUMMED,
    Now,
    figures_row,
    holders_row,
    limits_row,
    row_of,
    sandbox_row,
    token_savings,
    tool_names_row,
)
from supervisor.front.pages.shared_page import SharedPage
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
from supervisor.tracing.port import Tracer
from supervisor.usage.history import History
from supervisor.values.table import ValueTable

ROWS_AT_ONCE = 16
"""A row takes some 50 us."""


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


def add_routes(view: View, app: QuartTrio) -> None:
    status_page = SharedPage(partial(_status, view))

    async def healthz() -> Response:
        """Say that the daemon lives: 200 as long as anything answers."""
        return json_response({"status": "ok"})

    async def readyz() -> Response:
        """Say whether every server was tried once: 200, or 503 before.

        It names the servers that are still on their way, and those that failed, to whoever may see them.
        """
        body, ready = _readiness(view)
        return json_response(body, 200 if ready else 503)

    async def status() -> Response:
        """Show every server, the totals and the tokens."""
        return json_response(await status_page.get())

    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)
    app.add_url_rule("/api/status", view_func=status)


def _readiness(view: View) -> tuple[dict[str, Any], bool]:
    """Ready: the index is built and every server was tried once. Those that fail hold nothing up."""
    statuses = view.reports()
    known = view.visible_catalogue().entries
    words = {name: installation_status(status, listed=name in known) for name, status in statuses.items()}
    failed = sorted(name for name, word in words.items() if word in DOWN)
    discovering = sorted(name for name, status in statuses.items() if name not in known and _is_untried(status))
    reason = ""
    if view.closing.is_set():
        reason = "the daemon is shutting down"
    elif not view.visible_catalogue().indexed:
        reason = "the catalogue of earlier runs is being read"
    elif discovering:
        who = "server is" if len(discovering) == 1 else "servers are"
        reason = f"{len(discovering)} {who} being discovered for the first time"
    body = {"ready": not reason, "servers": len(statuses), "discovering": discovering, "failed": failed}
    if not REQUESTER.get().person.may("auditor"):
        body = {"ready": not reason}
        reason = reason and "servers are being tried for the first time, or the daemon ends"
    return ({**body, "reason": reason} if reason else body), not reason


def _is_untried(status: ServerStatus) -> bool:
    over = status.state in (State.FAILED, State.RESPAWNING, State.STOPPED)
    ending = status.state is State.DRAINING  # a failed try is over when its process is
    return not over and status.restarts == 0 and (ending or status.last_error is None)


async def server_row(view: View, server: str) -> dict[str, Any]:
    status = view.status_of(server)
    if status is None:
        return {"server": server}
    catalogue = view.visible_catalogue()
    row = row_of(status, catalogue, view.now(), token_savings(catalogue)["exposed_tokens"])
    row |= figures_row(row, await view.figures()) | tool_names_row(catalogue, server)
    row |= sandbox_row(view.deployment.value.entries, server)
    warnings = await view.described.warnings(catalogue)
    row |= limits_row(view.deployment.value, server, view.room)
    return {**row, **holders_row(view.launches, server), "warnings": warnings.get(server, 0)}


async def _status(view: View) -> bytes:
    """Return the page about all servers: their rows are made and encoded some at a time, others have their turns."""
    catalogue = view.visible_catalogue()
    now = view.now()
    tokens = token_savings(catalogue)
    warnings = await view.described.warnings(catalogue)
    figures = await view.figures()
    entries = view.deployment.value.entries
    rows: list[msgspec.Raw] = []
    servers: set[str] = set()
    states, words, sums = Counter[str](), Counter[str](), Counter[str]()
    for number, name in enumerate(view.live.names(view.reports())):
        if number % ROWS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if (status := view.status_of(name)) is not None:
            row = {**row_of(status, catalogue, now, tokens["exposed_tokens"]), "warnings": warnings.get(name, 0)}
            row |= holders_row(view.launches, name) | figures_row(row, figures) | sandbox_row(entries, name)
            servers.add(server_of(name))
            states[row["state"]] += 1
            words[row["status"] or DISABLED] += 1
            sums.update({each: row.get(each) or 0 for each in SUMMED if not (is_own(name) and each in OF_LISTS)})
            rows.append(msgspec.Raw(msgspec.json.encode(row)))
    return msgspec.json.encode(
        {
            "version": view.version,
            "started": now.unix_of(view.started),
            "uptime_s": round(max(0.0, now.elapsed - view.started), 1),
            "catalog_revision": catalogue.revision,
            "servers": rows,
            "totals": {
                "servers": len(servers),
                "states": states,
                "statuses": words,
                **{name: sums[name] for name in SUMMED},
            },
            "tokens": tokens,
            "configuration": msgspec.to_builtins(view.configurator.source.value),
            "configuration_problems": [str(problem) for problem in view.deployment.value.problems],
            "degraded": view.degraded(),
            "plugins": view.plugins(),
            "store": view.store(),
            "audit": None if view.trail is None else view.trail.status(),
            "loop": view.turns.status(),
            "log_records_lost": view.log_records_lost(),
            "events": view.events.status(),
            "questions": len(view.elicitations.of(view.principal)),
            "questions_at": view.elicitations.address(),
            **_node(view.fleet.peers),
        }
    )


def _node(peers: Peers | None) -> dict[str, Any]:
    """Return of which node the page is, and which others there are; nothing where the daemon is alone."""
    return (
        {} if peers is None else {"fleet": {"node": peers.name, "others": sorted(each.name for each in peers.others())}}
    )
