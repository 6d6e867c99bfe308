"""What is counted for the metrics, from the start of the daemon on, by those who are there when it happens.

Whatever is known anyhow (states, catalogue, sessions) is not counted here: it is read when somebody asks for the page.
Launches of people count for their server, and nothing here names a person.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Final, Literal, get_args

from prometheus_client.samples import Exemplar

from actors import facts
from actors.facts import ExitReason, InquiryVerdict
from actors.launch import server_of
from actors.life.breakers import BreakerScope
from supervisor.events.kinds import ElicitationEnded
from supervisor.metrics import families
from supervisor.metrics.collector import Counts, Durations, FamilyValues, Labels, forget
from supervisor.metrics.families import OTHER, SERVER, method_label
from supervisor.usage.records import OUTCOMES, UNKNOWN, CallRecord

MAX_SERVERS: Final = 500
"""So many servers have series of their own."""
MAX_TOOLS: Final = 500
_MAX_ROUTES: Final = 200
_RESULTS: Final = (("ok",), ("error",))
_FITTING: Final = (("hits",), ("none",))
_CAUSES: Final = (("queue",), ("wake",))
WarmUpOutcome = Literal["right", "wrong", "unused", "failed"]
_WARM_UPS: Final[tuple[WarmUpOutcome, ...]] = get_args(WarmUpOutcome)
"""The next call of its client went there, went elsewhere, did not come within a minute; or it could not be started."""
_REFUSALS: Final = ("host", "origin", "auth", "rate", "size", "malformed")


class Meters:
    """All that is counted. Implements `actors.facts.Projection`. Nothing here waits or raises.

    `clock` gives unix seconds. `counts_tools`: whether calls are counted by tool, too.
    """

    kinds = (facts.Measured, facts.ToolsChange, ElicitationEnded)

    def __init__(self, clock: Callable[[], float] = time.time, counts_tools: Callable[[], bool] = bool) -> None:
        self._clock = clock
        self._counts_tools = counts_tools
        self.count_sessions: Callable[[], int] = int
        """Says how many sessions there are over HTTP; set by whoever knows."""
        self._servers: dict[str, None] = {}
        self._tools: set[tuple[str, str]] = set()
        self._calls = Counts(families.CALLS)
        self._tool_calls = Counts(families.TOOL_CALLS)
        self._waits = Durations(families.WAITS, _CAUSES)
        self._to_servers = Durations(families.CLIENT_OPERATIONS)
        self.requests = Durations(families.SERVER_OPERATIONS, most=400)
        """Requests of clients that were answered; see `words.request_labels`."""
        self._restarts = Counts(families.RESTARTS)
        self._exits = Counts(families.EXITS)
        self._inquiries = Counts(families.INQUIRIES)
        self._left_alone = Counts(families.LEFT_ALONE)
        self._starts = Durations(families.STARTS, _RESULTS)
        self._warm_ups = Counts(families.WARM_UPS, [(outcome,) for outcome in _WARM_UPS])
        self._saved = Counts(families.WARM_UP_SAVED, [()])
        self._readings = Counts(families.DISCOVERIES, _RESULTS)
        self._reading_times = Durations(families.DISCOVERY_TIMES, _RESULTS)
        self._searches = Counts(families.SEARCHES, _FITTING)
        self._search_times = Durations(families.SEARCH_TIMES, _FITTING)
        self._changes = Counts(families.CHANGES, [("added",), ("removed",), ("changed",)])
        self._answers = Counts(families.ANSWERS, most=100)
        self.http = Durations(families.HTTP, most=_MAX_ROUTES)
        """Requests by HTTP: their method, route and status."""
        self._refused = Counts(families.REFUSED, [(reason,) for reason in _REFUSALS])

    # Servers ----------------------------------------------------------------------------------------------------------

    def keep(self, servers: Iterable[str]) -> None:
        """Take which servers there are now: those have series, at 0 until something happens; others have none."""
        now = dict.fromkeys(servers)
        removed = [name for name in self._servers if name not in now]
        for name in removed:
            del self._servers[name]
        forget(self._tables, SERVER, removed)
        self._tools = {each for each in self._tools if each[0] not in removed}
        names = [self.label_of(name) for name in now]
        self._calls.know(product(names, OUTCOMES))
        self._restarts.know((name,) for name in names)
        self._exits.know(product(names, get_args(ExitReason)))
        self._inquiries.know(product(names, get_args(InquiryVerdict)))
        self._left_alone.know(product(names, get_args(BreakerScope)))

    def label_of(self, launch: str) -> str:
        """Return the server of a launch, or where there are too many, that it is another one."""
        if launch in self._servers:
            return launch
        server = server_of(launch)
        if server not in self._servers:
            if len(self._servers) >= MAX_SERVERS:
                return OTHER
            self._servers[server] = None
        return server

    def fold(self, logged: facts.Logged) -> None:
        match logged.fact:
            case facts.StartEnded(seconds=seconds, good=good):
                self._starts.add(_RESULTS[not good], seconds)
            case facts.StartedAgain(launch=launch):
                self._restarts.add(self.label_of(launch))
            case facts.RunEnded(launch=launch, by=by):
                self._exits.add(self.label_of(launch), by)
            case facts.ReadingEnded(seconds=seconds, good=good):
                self._readings.add(*_RESULTS[not good])
                self._reading_times.add(_RESULTS[not good], seconds)
            case facts.InquiryEnded(launch=launch, verdict=verdict):
                self._inquiries.add(self.label_of(launch), verdict)
            case facts.RefusedByBreaker(launch=launch, breaker=breaker):
                self._left_alone.add(self.label_of(launch), breaker)
            case facts.ToolsChange(change=change):
                self._changes.add("added", by=len(change.added))
                self._changes.add("removed", by=len(change.removed))
                self._changes.add("changed", by=len(change.changed))
            case ElicitationEnded(kind=kind, action=action):
                self._answers.add(kind, action)

    def on_warm_up(self, outcome: WarmUpOutcome, saved_s: float = 0.0) -> None:
        self._warm_ups.add(outcome)
        self._saved.add(by=saved_s)

    def warm_ups(self) -> dict[str, float]:
        """Return how often each outcome was, and the seconds that calls did not wait."""
        counts: dict[str, float] = {name: self._warm_ups.values[name,] for name in _WARM_UPS}
        return {**counts, "saved_s": round(self._saved.values[()], 3)}

    # Calls ------------------------------------------------------------------------------------------------------------

    def take(self, records: Sequence[CallRecord]) -> None:
        """Count calls of tools of servers that have ended. Implements `supervisor.usage.totals.Take`."""
        ended = Counter([(record.server, record.tool, record.outcome) for record in records if record.server])
        for (launch, tool, outcome), count in ended.items():
            server = launch if launch == UNKNOWN else self.label_of(launch)
            self._calls.add(server, outcome, by=count)
            if self._counts_tools():
                self._tool_calls.add(server, self._tool_of(server, tool), outcome, by=count)

    def _tool_of(self, server: str, tool: str) -> str:
        if (server, tool) not in self._tools and tool != UNKNOWN:
            if len(self._tools) >= MAX_TOOLS:
                return OTHER
            self._tools.add((server, tool))
        return tool

    def on_answer(
        self, server: str, method: str, transport: str, seconds: float, error: str, trace_id: str = ""
    ) -> None:
        """Count a request that a server was sent; `seconds` without its wait before. `error` is a value of a label."""
        labels = server if server in self._servers else self.label_of(server), method_label(method), error, transport
        self._to_servers.add(labels, seconds)
        if trace_id:
            self._to_servers.note(labels, self._exemplar(trace_id, seconds))

    def on_wait(self, seconds: float, *, woke: bool) -> None:
        self._waits.add(_CAUSES[woke], seconds)

    def note_request(self, labels: Labels, seconds: float, trace_id: str) -> None:
        """Take a request of a client as an example, if its trace is sent to anybody."""
        if trace_id:
            self.requests.note(labels, self._exemplar(trace_id, seconds))

    def _exemplar(self, trace_id: str, seconds: float) -> Exemplar:
        return Exemplar({"trace_id": trace_id}, seconds, self._clock())

    def on_search(self, seconds: float, *, hits: bool) -> None:
        self._searches.add(*_FITTING[not hits])
        self._search_times.add(_FITTING[not hits], seconds)

    # The edge ---------------------------------------------------------------------------------------------------------

    def on_refusal(self, reason: str) -> None:
        self._refused.add(reason)

    # Reading ----------------------------------------------------------------------------------------------------------

    @property
    def _tables(self) -> tuple[Counts | Durations, ...]:
        return tuple(each for each in vars(self).values() if isinstance(each, Counts | Durations))

    def figures(self) -> Iterator[FamilyValues]:
        """Yield what was counted so far, as it is now."""
        for table in self._tables:
            if isinstance(table, Counts):
                yield FamilyValues(table.family, dict(table.values))
            else:
                yield FamilyValues(table.family, {labels: each.copy() for labels, each in table.values.items()})
