"""The page for Prometheus: `/metrics`. What is known anyhow is read for each page, what happened was counted.

It is gathered on the loop, some servers at a time, and written beside it, in one format after another: with Python's
lock, so that two threads would only hold up each other and the loop.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final, get_args

import msgspec
import trio
from quart import Response, request

from actors.catalogue.offer import LISTS
from actors.catalogue.snapshot import Catalogue
from actors.installation import DISABLED, InstallationStatus
from actors.launch import server_of
from actors.life.breakers import BreakerScope
from actors.life.states import State
from actors.messages import ServerStatus
from actors.transport.stdio.resources.allotment import ProcessFigures
from supervisor import operations
from supervisor.front.pages.performing import SharedPage, performs
from supervisor.front.pages.status import ROWS_AT_ONCE, word_of
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside
from supervisor.metrics import families
from supervisor.metrics.collector import ENCODERS, Encoder, FamilyValues, FigureCollector, Labels, content_type_for
from supervisor.metrics.families import FAMILIES, Family
from supervisor.tokens.counting import META_TOKENS

STATES: Final = (*(state.value for state in State), DISABLED)
_STATUSES: Final = (*get_args(InstallationStatus), DISABLED)
_KINDS: Final = {name.removesuffix("s"): name for name in LISTS}
_ORDER: Final = {family.name: at for at, family in enumerate(f for part in FAMILIES.values() for f in part)}


class ServerFigures(msgspec.Struct):
    """What the servers do now, by the value of their label; `memory` is that of their processes, in bytes."""

    states: Counter[str] = msgspec.field(default_factory=Counter)
    statuses: Counter[str] = msgspec.field(default_factory=Counter)
    usable: dict[Labels, float] = {}
    in_flight: Counter[Labels] = msgspec.field(default_factory=Counter)
    waiting: Counter[Labels] = msgspec.field(default_factory=Counter)
    breakers: Counter[Labels] = msgspec.field(default_factory=Counter)
    memory: Counter[Labels] = msgspec.field(default_factory=Counter)
    instances: Counter[Labels] = msgspec.field(default_factory=Counter)

    def add(
        self, status: ServerStatus, word: str | None, labels: Labels, processes: Mapping[int, ProcessFigures]
    ) -> None:
        self.states[DISABLED if status.disabled else status.state.value] += 1
        self.statuses[word or DISABLED] += 1
        self.usable[labels] = max(self.usable.get(labels, 0), int(word == "online"))
        self.in_flight[labels] += status.in_flight
        self.waiting[labels] += status.waiting
        self.breakers.update({(*labels, scope): 0 for scope in get_args(BreakerScope)})
        self.breakers.update((*labels, each.breaker) for each in status.breakers)
        for pid in [each.pid for each in status.instances] or [status.pid]:
            if pid is not None and pid in processes:
                self.memory[labels] += processes[pid].memory_bytes
        for each in status.instances:
            self.instances[*labels, "yes" if each.state is State.READY else "no"] += 1


class MetricsPages:
    """The page in each format, made for many at once, one at a time."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._turn = trio.Lock()
        self.pages = {kind: SharedPage(partial(self._make, encode)) for kind, encode in ENCODERS.items()}

    async def _make(self, encode: Encoder) -> bytes:
        async with self._turn:
            figures = FigureCollector(await _figures(self._view))
            return await beside(lambda: encode(figures))


@performs(operations.METRICS)
async def metrics(made: MetricsPages) -> Response:
    """Show all metrics in the text format of Prometheus, or in that of OpenMetrics to whoever asks for that."""
    kind = content_type_for(request.headers.get("Accept", ""))
    return Response(await made.pages[kind].get(), content_type=kind)


async def _figures(view: View) -> list[FamilyValues]:
    began = time.perf_counter()
    servers = await _servers(view, await view.figures())
    view.history.settle()
    figures = [*view.meters.figures(), *_of_servers(servers), *_of_catalogue(view.catalogue.value), *_own(view)]
    if not view.deployment.value.settings.metrics_tools:
        figures = [each for each in figures if each.family is not families.TOOL_CALLS]
    figures.append(_alone(families.SCRAPE_DURATION, time.perf_counter() - began))
    return sorted(figures, key=lambda each: _ORDER[each.family.name])


async def _servers(view: View, processes: Mapping[int, ProcessFigures]) -> ServerFigures:
    rows, reports, catalogue = ServerFigures(), view.reports(), view.catalogue.value
    names = view.live.names(reports)
    view.meters.keep(dict.fromkeys(map(server_of, names)))
    for number, name in enumerate(names):
        if number % ROWS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if (status := view.status_of(name)) is not None:
            rows.add(status, word_of(status, catalogue), (view.meters.label_of(name),), processes)
    return rows


def _of_servers(rows: ServerFigures) -> list[FamilyValues]:
    return [
        _by(families.SERVERS, {state: rows.states[state] for state in STATES}),
        _by(families.STATUSES, {word: rows.statuses[word] for word in _STATUSES}),
        FamilyValues(families.USABLE, rows.usable),
        FamilyValues(families.IN_FLIGHT, rows.in_flight),
        FamilyValues(families.WAITING, rows.waiting),
        FamilyValues(families.BREAKERS, rows.breakers),
        FamilyValues(families.SERVER_MEMORY, rows.memory),
        FamilyValues(families.INSTANCES, rows.instances),
    ]


def _of_catalogue(catalogue: Catalogue) -> list[FamilyValues]:
    offers = [entry.offer for entry in catalogue.entries.values()]
    counts = {kind: sum(len(getattr(offer, name)) for offer in offers) for kind, name in _KINDS.items()}
    return [
        _by(families.ENTRIES, counts),
        _by(families.TOKENS, {"all": catalogue.tokens, "meta": META_TOKENS}),
    ]


def _own(view: View) -> list[FamilyValues]:
    tracer, meters = view.tracer, view.meters
    fleet = view.fleet.status()
    node = [fleet.node] if fleet.node else []
    sessions = {"http": meters.count_sessions(), "websocket": view.counters().sockets}
    versions: dict[Labels, float] = {(view.version, platform.python_version()): 1}
    return [
        FamilyValues(families.BUILD_INFO, versions),
        _alone(families.LOOP_LAG, view.lag.seconds),
        _alone(families.LOOP_STALLS, view.turns.stalls),
        _alone(families.LONGEST_STALL, view.turns.longest_s),
        _alone(families.STANDSTILLS, view.turns.standstills),
        _alone(families.TASKS, trio.lowlevel.current_statistics().tasks_living),
        _by(families.PART_RESTARTS, view.part_restarts),
        _alone(families.LOG_RECORDS_DROPPED, view.log_records_lost()),
        _alone(families.SPANS_DROPPED, 0 if tracer is None else tracer.count_dropped()),
        _by(families.FLEET_MEMBER, dict.fromkeys(node, int(fleet.member))),
        _by(families.FLEET_NODES, dict.fromkeys(node, len(fleet.nodes))),
        _by(families.FLEET_OWNED, dict.fromkeys(node, len(fleet.owns))),
        _by(families.SESSIONS, sessions),
        _alone(families.CONNECTIONS, view.counters().open),
        _alone(families.QUESTIONS, len(view.elicitations)),
    ]


def _alone(family: Family, value: float) -> FamilyValues:
    values: dict[Labels, float] = {(): value}
    return FamilyValues(family, values)


def _by(family: Family, values: Mapping[str, float]) -> FamilyValues:
    """Return the figures of a family with one label."""
    labelled: dict[Labels, float] = {(label,): value for label, value in values.items()}
    return FamilyValues(family, labelled)
