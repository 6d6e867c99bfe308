"""The page for Prometheus: `/metrics`. What is known anyhow is read for each page, what happened was counted.

It is gathered on the loop, some servers at a time, and written beside it.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
import trio
from quart import Response, request
from quart_trio import QuartTrio

from actors.catalogue.snapshot import Catalogue
from actors.launch import server_of
from actors.life.states import State
from actors.messages import ServerStatus
from actors.transport.stdio.figures import ProcessFigures
from supervisor.front.pages.api import ROWS_AT_ONCE, View
from supervisor.front.pages.shared_page import SharedPage
from supervisor.host.loop.workbench import beside
from supervisor.metrics import families
from supervisor.metrics.exposition import CONTENT_TYPES, FamilyValues, Format, expose, format_of
from supervisor.metrics.families import FAMILIES, Family
from supervisor.metrics.system import read_own
from supervisor.metrics.tables import Labels
from supervisor.tokens.counting import META_TOKENS

DISABLED: Final = "disabled"
STATES: Final = (*(state.value for state in State), DISABLED)
USABLE: Final = frozenset({State.READY, State.DORMANT})
KINDS: Final = {"tool": "tools", "resource": "resources", "template": "templates", "prompt": "prompts"}
ORDER: Final = {family.name: at for at, family in enumerate(f for part in FAMILIES.values() for f in part)}


class ServerFigures(msgspec.Struct):
    """What the servers do now, by the value of their label; `memory` is that of their processes, in bytes."""

    states: Counter[str] = msgspec.field(default_factory=Counter)
    usable: dict[Labels, float] = {}
    in_flight: Counter[Labels] = msgspec.field(default_factory=Counter)
    waiting: Counter[Labels] = msgspec.field(default_factory=Counter)
    memory: Counter[Labels] = msgspec.field(default_factory=Counter)

    def add(self, status: ServerStatus, labels: Labels, process: ProcessFigures | None) -> None:
        self.states[DISABLED if status.disabled else status.state.value] += 1
        usable = status.state in USABLE and not status.disabled
        self.usable[labels] = max(self.usable.get(labels, 0), int(usable))
        self.in_flight[labels] += status.in_flight
        self.waiting[labels] += status.waiting
        if process is not None:
            self.memory[labels] += process.memory_bytes


def add_metrics_routes(view: View, app: QuartTrio) -> None:
    pages = {each: SharedPage(partial(_page, view, each)) for each in CONTENT_TYPES}

    async def metrics() -> Response:
        """Show all metrics in the text format of Prometheus, or in that of OpenMetrics to whoever asks for that."""
        written_as = format_of(request.headers.get("Accept", ""))
        return Response(await pages[written_as].get(), content_type=CONTENT_TYPES[written_as])

    app.add_url_rule("/metrics", view_func=metrics)


async def _page(view: View, written_as: Format) -> bytes:
    began = time.perf_counter()
    servers = await _servers(view, await view.figures())
    view.history.settle()
    figures = [*view.meters.figures(), *_of_servers(servers), *_of_catalogue(view.visible_catalogue()), *_own(view)]
    if not view.deployment.value.settings.metrics_tools:
        figures = [each for each in figures if each.family is not families.TOOL_CALLS]
    figures.append(_gauge(families.SCRAPE_DURATION, time.perf_counter() - began))
    return await beside(lambda: _write(figures, written_as))


def _write(figures: list[FamilyValues], written_as: Format) -> bytes:
    """Return the page, with what the system has to be asked for."""
    every = [*figures, *_of_process()]
    return expose(sorted(every, key=lambda each: ORDER[each.family.name]), written_as)


async def _servers(view: View, processes: Mapping[int, ProcessFigures]) -> ServerFigures:
    rows, reports = ServerFigures(), view.reports()
    names = view.live.names(reports)
    view.meters.keep(dict.fromkeys(map(server_of, names)))
    for number, name in enumerate(names):
        if number % ROWS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if (status := view.status_of(name)) is not None:
            process = None if status.pid is None else processes.get(status.pid)
            rows.add(status, (view.meters.label_of(name),), process)
    return rows


def _of_servers(rows: ServerFigures) -> list[FamilyValues]:
    return [
        _by(families.SERVERS, {state: rows.states[state] for state in STATES}),
        FamilyValues(families.USABLE, rows.usable),
        FamilyValues(families.IN_FLIGHT, rows.in_flight),
        FamilyValues(families.WAITING, rows.waiting),
        FamilyValues(families.SERVER_MEMORY, rows.memory),
    ]


def _of_catalogue(catalogue: Catalogue) -> list[FamilyValues]:
    offers = [entry.offer for entry in catalogue.entries.values()]
    counts = {kind: sum(len(getattr(offer, name)) for offer in offers) for kind, name in KINDS.items()}
    return [
        _by(families.ENTRIES, counts),
        _by(families.TOKENS, {"all": catalogue.tokens, "meta": META_TOKENS}),
    ]


def _own(view: View) -> list[FamilyValues]:
    tracer, meters = view.tracer, view.meters
    sessions = {"http": meters.count_sessions(), "websocket": view.counters().sockets}
    versions: dict[Labels, float] = {(view.version, platform.python_version()): 1}
    return [
        FamilyValues(families.BUILD_INFO, versions),
        _gauge(families.LOOP_LAG, view.lag.seconds),
        _gauge(families.LOG_RECORDS_DROPPED, view.log_records_lost()),
        _gauge(families.SPANS_DROPPED, 0 if tracer is None else tracer.count_dropped()),
        _by(families.SESSIONS, sessions),
        _gauge(families.CONNECTIONS, view.counters().open),
        _gauge(families.QUESTIONS, len(view.elicitations)),
    ]


def _of_process() -> list[FamilyValues]:
    own = read_own()
    values: dict[Family, float | None] = {
        families.CPU: own.cpu_s,
        families.MEMORY: own.resident_bytes,
        families.OPEN_FDS: own.open_files,
        families.MAX_FDS: own.max_files,
        families.START_TIME: own.started,
    }
    return [_gauge(family, value) for family, value in values.items() if value is not None]


def _gauge(family: Family, value: float) -> FamilyValues:
    values: dict[Labels, float] = {(): value}
    return FamilyValues(family, values)


def _by(family: Family, values: Mapping[str, float]) -> FamilyValues:
    """Return the figures of a family with one label."""
    labelled: dict[Labels, float] = {(label,): value for label, value in values.items()}
    return FamilyValues(family, labelled)
