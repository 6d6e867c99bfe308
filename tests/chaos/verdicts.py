"""Whether a history is as it has to be: one function for each invariant, which gives witnesses against it. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from supervisor.front.admission import ANSWER_S
from tests.chaos.history import Disturbance, History, Request, Sample, Start

EXCUSED = frozenset({"gone", "left"})
REFUSING = "revoke user"
SLACK_S = 1.0
"""Until a connection is seen to end that had so long to be answered."""
SHAKING = ("kill daemon", "stop daemon")


class Bounds(Struct, frozen=True, kw_only=True):
    """What is allowed, in seconds, MiB and numbers. They are wider where the machine is busy with other things.

    `late_s`: an answer after its deadline. `converge_s`: until clients see a change. `slow_s`, `slow`: the 99th
    percentile of the healthy server, at most so long, or so many times what it was before there were faults. `of_each`:
    descriptors, and tasks, of each server that is up.
    """

    late_s: float = 1.0
    converge_s: float = 5.0
    slow_s: float = 0.25
    slow: float = 3.0
    rss_mib: float = 64.0
    descriptors: int = 16
    threads: int = 4
    tasks: int = 16
    of_each: int = 20
    zombie_s: float = 1.0

    def times(self, patience: float) -> Bounds:
        """Return the same with so many times the seconds, for a machine that is so much slower."""
        waits = ("late_s", "converge_s", "slow_s", "zombie_s")
        return replace(self, **{name: getattr(self, name) * patience for name in waits})


Invariant = Callable[[History, Bounds], Iterator[str]]


def one_answer(history: History, bounds: Bounds) -> Iterator[str]:
    """Each request has one answer, unless its client or its connection went away."""
    for each in history.requests:
        if each.answers > 1:
            yield f"{each.key} at {each.server}: {each.answers} answers"
        elif each.how not in EXCUSED and each.answers == 0:
            yield f"{each.key} at {each.server}: no answer"


def in_time(history: History, bounds: Bounds) -> Iterator[str]:
    """No answer is later than its deadline, but for the time in which there was no daemon to give it."""
    for each in history.requests:
        if each.ended_s is None or each.how in EXCUSED:
            continue
        took_s = each.ended_s - each.asked_s
        limit_s = each.limit_s + bounds.late_s + history.delayed_s(each.asked_s, each.ended_s)
        if took_s > limit_s:
            yield f"{each.key} at {each.server}: {each.how} {each.type} after {took_s:.2f} s, limit {limit_s:.2f} s"


def connections_last(history: History, bounds: Bounds) -> Iterator[str]:
    """No connection breaks but of a daemon that died, or of one whose rights have changed."""
    shaken = history.of_daemon(*SHAKING)
    for each in history.requests:
        if each.how == "gone" and not (_meets(each, shaken) or _revoked(each, history)):
            yield f"{each.key} at {each.server}: its connection broke: {each.text}"


def typed(history: History, bounds: Bounds) -> Iterator[str]:
    """An answer is a result, or an error that says what it is; only who may not come in is refused by HTTP."""
    for each in history.requests:
        if each.how == "untyped":
            yield f"{each.key} at {each.server}: {each.text}"
        elif each.how == "refused" and not _revoked(each, history):
            yield f"{each.key} at {each.server}: refused: {each.text}"


def once_at_most(history: History, bounds: Bounds) -> Iterator[str]:
    """No server runs a request twice."""
    for key, times in history.ran.items():
        if times > 1:
            yield f"{key}: ran {times} times"


def outcomes_true(history: History, bounds: Bounds) -> Iterator[str]:
    """What was not sent has not run; what is said to be completed, or has a result, has."""
    for each in history.requests:
        if each.server not in history.ledgered:
            continue
        ran = history.ran.get(each.key, 0)
        if ran and each.outcome == "not_sent":
            yield f"{each.key} at {each.server}: {each.type}, not sent, and ran"
        if not ran and (each.outcome == "completed" or each.how in ("result", "tool error")):
            yield f"{each.key} at {each.server}: {each.how} {each.outcome}, and has not run: {each.text}"


def nothing_foreign(history: History, bounds: Bounds) -> Iterator[str]:
    """Nobody hears of what is somebody else's; and a result is that of its request."""
    for each in history.requests:
        if each.foreign:
            yield f"{each.key} at {each.server}: was told {', '.join(each.foreign)}: {each.text}"
        elif each.how == "result" and not each.own and each.server in history.ledgered:
            yield f"{each.key} at {each.server}: the result of something else: {each.text}"
    yield from history.heard


def healthy_unharmed(history: History, bounds: Bounds) -> Iterator[str]:
    """The server that nothing is done to fails no call but of a daemon that is stopped or dies, and is not slower."""
    shaken = history.of_daemon(*SHAKING)
    calls = [each for each in history.requests if each.server == history.healthy and each.how not in EXCUSED]
    fair = [each for each in calls if not (_meets(each, shaken) or _revoked(each, history))]
    for each in fair:
        if each.how != "result":
            yield f"{each.key}: {each.how} {each.type} {each.text}"
    started = sum(each.server == history.healthy for each in history.starts)
    if started > max(1, len(history.lives)):
        yield f"it was started {started} times in {len(history.lives)} lives of the daemon"
    before = p99(each for each in fair if each.asked_s < history.quiet_s)
    since = p99(each for each in fair if each.asked_s >= history.quiet_s)
    if since > max(bounds.slow_s, bounds.slow * before):
        yield f"p99 was {before * 1000:.0f} ms without faults, {since * 1000:.0f} ms with them"


def restarts_bounded(history: History, bounds: Bounds) -> Iterator[str]:
    """A server that fails is started ever more rarely, and then no more; each daemon counts for itself."""
    starts: dict[tuple[str, int], list[Start]] = defaultdict(list)
    for each in sorted(history.starts, key=lambda each: each.at_s):
        life = sum(begin <= each.at_s for begin in history.lives)
        starts[each.server, life].append(each)
    for (server, _), row in starts.items():
        if (budget := history.budgets.get(server)) is None:
            continue
        lasted_s = row[-1].at_s - row[0].at_s
        most = 1 + budget.max_restarts + math.ceil(lasted_s / budget.probe_s)
        if len(row) > most:
            yield f"{server}: {len(row)} starts in {lasted_s:.0f} s, {most} are allowed"
        for number, (one, other) in enumerate(pairwise(row[: 1 + budget.max_restarts])):
            least_s = min(budget.most_s, budget.initial_s * 2.0**number) / 2
            if other.at_s - one.at_s < least_s:
                yield f"{server}: restart {number + 1} after {other.at_s - one.at_s:.2f} s, not {least_s:.2f} s"


def one_process(history: History, bounds: Bounds) -> Iterator[str]:
    """A server never has two processes, and who ended is reaped."""
    yield from (f"at {each.at_s:.1f} s: two processes of {name}" for each in history.samples for name in each.doubles)
    since: dict[int, float] = {}
    for each in history.samples:
        since = {pid: since.get(pid, each.at_s) for pid in each.zombies}
        for pid, first_s in since.items():
            if each.at_s - first_s - history.delayed_s(first_s, each.at_s) > bounds.zombie_s:
                yield f"process {pid} was a zombie for {each.at_s - first_s:.1f} s"


def catalogue_converges(history: History, bounds: Bounds) -> Iterator[str]:
    """Clients see a change soon, counted without the time in which there was no daemon."""
    for each in history.changes:
        if each.took_s is None:
            yield f"{each.what}: never seen"
        elif each.took_s - history.delayed_s(each.at_s, each.at_s + each.took_s) > bounds.converge_s:
            yield f"{each.what}: seen after {each.took_s:.1f} s"


def bounded(history: History, bounds: Bounds) -> Iterator[str]:
    """Memory, descriptors, threads and tasks of the last daemon are at the end what they were, for as much at work."""
    of_last = [each for each in history.samples if not history.lives or each.at_s >= history.lives[-1]]
    if len(of_last) < 2:
        return
    first, last = of_last[0], of_last[-1]
    more = max(0, last.awake - first.awake) * bounds.of_each
    for what, allowed in (
        ("rss_mib", bounds.rss_mib),
        ("descriptors", bounds.descriptors + more),
        ("threads", bounds.threads),
        ("tasks", bounds.tasks + more),
    ):
        before, after = _figure(first, what), _figure(last, what)
        if after > before + allowed:
            yield f"{what}: {before:.0f}, and {after:.0f} at the end"


def nothing_left(history: History, bounds: Bounds) -> Iterator[str]:
    """No process is left, no call is open, and no daemon ended that was not ended."""
    yield from (f"left: {each}" for each in history.end.left)
    yield from (f"{name} is {value:g} at the end" for name, value in history.end.gauges.items() if value)
    yield from (f"a daemon ended by itself, with {code}" for code in history.end.deaths)


def log_clean(history: History, bounds: Bounds) -> Iterator[str]:
    """The log has no word of a bug."""
    yield from history.end.complaints


def no_secret(history: History, bounds: Bounds) -> Iterator[str]:
    """No secret is where it can be read."""
    yield from history.end.leaks


INVARIANTS: dict[str, Invariant] = {
    "one answer to each request": one_answer,
    "no answer after its deadline": in_time,
    "no connection breaks by itself": connections_last,
    "every error says what it is": typed,
    "no request runs twice": once_at_most,
    "outcomes are true": outcomes_true,
    "nothing of anybody else": nothing_foreign,
    "the healthy server is unharmed": healthy_unharmed,
    "restarts keep to their budget": restarts_bounded,
    "one process a server, and no zombie": one_process,
    "clients see each change": catalogue_converges,
    "memory, descriptors, threads, tasks": bounded,
    "nothing is left": nothing_left,
    "no bug in the log": log_clean,
    "no secret anywhere": no_secret,
}


def judge(history: History, bounds: Bounds) -> dict[str, list[str]]:
    """Return the witnesses against each invariant."""
    return {name: list(holds(history, bounds)) for name, holds in INVARIANTS.items()}


def p99(requests: Iterable[Request]) -> float:
    """Return the 99th percentile of how long they took, in seconds; 0 for none."""
    took = sorted(each.ended_s - each.asked_s for each in requests if each.ended_s is not None)
    return took[math.ceil(len(took) * 0.99) - 1] if took else 0.0


def _meets(request: Request, disturbances: list[Disturbance]) -> bool:
    ended_s = math.inf if request.ended_s is None else request.ended_s
    return any(each.from_s <= ended_s and request.asked_s <= each.to_s for each in disturbances)


def _revoked(request: Request, history: History) -> bool:
    """Whether its user was nobody then, or had been just before: what is under way has a moment to be answered."""
    done = [each for each in history.disturbances if each.what == REFUSING and each.whom == request.user]
    return _meets(request, [replace(each, to_s=each.to_s + ANSWER_S + SLACK_S) for each in done])


def _figure(sample: Sample, what: str) -> float:
    figure: float = getattr(sample, what)
    return figure
