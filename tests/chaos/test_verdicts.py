"""The checker of a history: a good one passes, and each violation that is planted in it is seen, and no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.chaos.answers import refuse, settle
from tests.chaos.history import USERS, Budget, Change, Disturbance, History, Request, Sample, Start, foreign_in
from tests.chaos.report import progress, report
from tests.chaos.schedule import CALM, KINDS, QUIET, schedule
from tests.chaos.verdicts import INVARIANTS, Bounds, judge, p99

BOUNDS = Bounds()
SERVERS = ("healthy", "mortal")
LIFE_S = 100.0


def request(key: str, server: str = "mortal", asked_s: float = 50.0, took_s: float = 0.01, **more: object) -> Request:
    ended = {"ended_s": asked_s + took_s, "how": "result", "answers": 1}
    return Request(**{"key": key, "server": server, "asked_s": asked_s, "limit_s": 4.0, **ended, **more})  # type: ignore[arg-type]  # by name


def sample(at_s: float, **more: object) -> Sample:
    figures = {"at_s": at_s, "rss_mib": 100.0, "descriptors": 50, "threads": 10, "tasks": 200}
    return Sample(**{**figures, **more})  # type: ignore[arg-type]  # by name


def good() -> History:
    """A history in which some calls failed, each as it may, and the daemon was stopped and killed once."""
    history = History(
        healthy="healthy",
        ledgered=frozenset(SERVERS),
        budgets={"looping": Budget()},
        quiet_s=10.0,
        lives=[0.0, 80.0],
        disturbances=[
            Disturbance(what="stop daemon", whom="", from_s=60.0, to_s=63.0),
            Disturbance(what="kill daemon", whom="", from_s=79.0, to_s=82.0),
            Disturbance(what="revoke user", whom="dan", from_s=30.0, to_s=33.0),
        ],
        starts=[
            *(Start("looping", 100 + number, at_s) for number, at_s in enumerate((0.0, 1.0, 2.5, 5.0, 10.0, 19.0))),
            Start("looping", 200, 81.0),
            Start("healthy", 1, 0.5),
            Start("healthy", 2, 81.0),
        ],
        samples=[sample(1.0), sample(20.0, zombies=(7,)), sample(20.5), sample(83.0), sample(99.0)],
        changes=[Change("a tool came", 40.0, 0.5), Change("a tool went", 79.5, 6.0)],
    )
    history.end.gauges = {"in flight": 0.0}
    for number in range(50):
        user, server = USERS[number % 3], SERVERS[number % 2]
        history.requests.append(request(f"{user}/legacy0/{number}", server, asked_s=number))
    history.requests += [
        request("ana/modern1/1", how="error", type="crashed", outcome="unknown"),
        request("ana/modern1/2", how="error", type="starting", outcome="not_sent"),
        request("ana/modern1/3", how="error", type="protocol", outcome="completed"),
        request("ana/modern1/4", how="left", answers=0),
        request("dan/modern1/5", how="refused", asked_s=31.0),
        request("dan/socket2/8", how="gone", answers=0, asked_s=33.5, took_s=0.2),
        request("ana/modern1/6", "healthy", how="gone", answers=0, asked_s=79.5),
        request("ana/modern1/7", "healthy", asked_s=59.0, took_s=6.9),
    ]
    not_run = {"ana/modern1/2", "dan/modern1/5", "dan/socket2/8", "ana/modern1/6"}
    history.ran = {each.key: 1 for each in history.requests if each.key not in not_run}
    return history


def violated(history: History) -> set[str]:
    return {name for name, witnesses in judge(history, BOUNDS).items() if witnesses}


def test_a_good_history_violates_nothing() -> None:
    assert judge(good(), BOUNDS) == {name: [] for name in INVARIANTS}


def asked(history: History, key: str = "ana/legacy0/3") -> Request:
    return next(each for each in history.requests if each.key == key)


def settled(**fields: object) -> Callable[[History], None]:
    """Change how a call of the server that is not the healthy one ended."""

    def plant(history: History) -> None:
        for name, value in fields.items():
            setattr(asked(history, "ana/legacy0/3"), name, value)

    return plant


def with_ran(key: str, times: int) -> Callable[[History], None]:
    return lambda history: history.ran.update({key: times})


def with_start(*starts: Start) -> Callable[[History], None]:
    return lambda history: history.starts.extend(starts)


def with_samples(*samples: Sample) -> Callable[[History], None]:
    return lambda history: history.samples.extend(samples)


def with_end(**fields: object) -> Callable[[History], None]:
    def plant(history: History) -> None:
        history.end = replace(history.end, **fields)

    return plant


def slow_since(history: History) -> None:
    for each in history.requests:
        if each.server == "healthy" and each.asked_s >= history.quiet_s and each.how == "result":
            each.ended_s = each.asked_s + 0.5


PLANTED: dict[str, tuple[str, Callable[[History], None]]] = {
    "a duplicate answer": ("one answer to each request", settled(answers=2)),
    "a lost answer": ("one answer to each request", settled(answers=0, how="", ended_s=None)),
    "a late answer": ("no answer after its deadline", settled(ended_s=3.0 + 5.1)),
    "a broken connection": ("no connection breaks by itself", settled(how="gone", answers=0)),
    "no type": ("every error says what it is", settled(how="untyped")),
    "a refusal of who may come in": ("every error says what it is", settled(how="refused")),
    "a double execution": ("no request runs twice", with_ran("ana/legacy0/3", 2)),
    "not sent, and ran": ("outcomes are true", settled(how="error", type="starting", outcome="not_sent")),
    "completed, and has not run": (
        "outcomes are true",
        lambda history: (settled(how="error", outcome="completed")(history), history.ran.pop("ana/legacy0/3"))[0],
    ),
    "a result of nothing": ("outcomes are true", lambda history: history.ran.update({"ana/legacy0/3": 0})),
    "foreign bytes": ("nothing of anybody else", settled(foreign=("ben/legacy0/3",))),
    "another result": ("nothing of anybody else", settled(own=False)),
    "a foreign event": ("nothing of anybody else", lambda history: history.heard.append("ben heard of annex")),
    "a failed call": (
        "the healthy server is unharmed",
        lambda history: setattr(asked(history, "cem/legacy0/2"), "how", "error"),
    ),
    "a slow server": ("the healthy server is unharmed", slow_since),
    "a restart of the healthy server": ("the healthy server is unharmed", with_start(Start("healthy", 3, 90.0))),
    "too many restarts": (
        "restarts keep to their budget",
        with_start(Start("looping", 300, 50.0), Start("looping", 301, 70.0)),
    ),
    "a restart too soon": ("restarts keep to their budget", with_start(Start("looping", 300, 81.3))),
    "two processes": ("one process a server, and no zombie", with_samples(sample(99.1, doubles=("mortal",)))),
    "a zombie": (
        "one process a server, and no zombie",
        with_samples(*(sample(99.1 + number, zombies=(7,)) for number in range(3))),
    ),
    "a change that nobody sees": (
        "clients see each change",
        lambda history: history.changes.append(Change("a tool came", 40.0, None)),
    ),
    "a change that is seen late": (
        "clients see each change",
        lambda history: history.changes.append(Change("a tool came", 40.0, 5.1)),
    ),
    "memory": ("memory, descriptors, threads, tasks", with_samples(sample(99.1, rss_mib=165.0))),
    "descriptors": ("memory, descriptors, threads, tasks", with_samples(sample(99.1, descriptors=87, awake=1))),
    "threads": ("memory, descriptors, threads, tasks", with_samples(sample(99.1, threads=15))),
    "tasks": ("memory, descriptors, threads, tasks", with_samples(sample(99.1, tasks=217))),
    "a process": ("nothing is left", with_end(left=("7 outlived the daemon",))),
    "an open call": ("nothing is left", with_end(gauges={"in flight": 1.0})),
    "a death": ("nothing is left", with_end(deaths=(70,))),
    "a traceback": ("no bug in the log", with_end(complaints=("Traceback",))),
    "a secret": ("no secret anywhere", with_end(leaks=("sk-can... in the log",))),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_seen_and_nothing_else(planted: str) -> None:
    name, plant = PLANTED[planted]
    history = good()
    plant(history)
    assert violated(history) == {name}
    assert name in report(history, judge(history, BOUNDS), "again")


def test_on_a_slow_machine_everything_may_take_longer_and_nothing_else_is_forgiven() -> None:
    history = good()
    asked(history).ended_s = 3.0 + 8.0
    assert violated(history) == {"no answer after its deadline"}
    assert not any(judge(history, BOUNDS.times(10)).values())
    history.ran["ana/legacy0/3"] = 2
    assert judge(history, BOUNDS.times(10))["no request runs twice"]


def test_every_invariant_can_be_violated() -> None:
    assert {name for name, _ in PLANTED.values()} == set(INVARIANTS)


@given(st.lists(st.floats(0.0, 10.0), max_size=300))
def test_one_of_a_hundred_may_be_slower_than_the_99th_percentile(took: list[float]) -> None:
    requests = [request(f"ana/legacy0/{number}", took_s=each) for number, each in enumerate(took)]
    limit = p99(requests)
    slower = [each for each in requests if each.ended_s is not None and each.ended_s - each.asked_s > limit]
    assert len(slower) <= len(took) // 100


@given(st.sampled_from(USERS), st.sampled_from(USERS), st.integers(0, 10**6), st.text(max_size=20))
def test_a_key_is_foreign_to_everybody_else(user: str, other: str, number: int, around: str) -> None:
    key, theirs = f"{user}/legacy0/{number}", f"{other}/socket1/{number}"
    assert foreign_in(f"{around} {key} {around}", key, ()) == ()
    assert foreign_in(f"{around} {key} {theirs} {around}", key, ()) == (theirs,)


TEXT = [{"type": "text", "text": "ana/legacy0/1"}]
ANSWERS: dict[str, tuple[object, str, str, str]] = {
    "result": ({"result": {"content": TEXT}}, "result", "", ""),
    "error of the tool": ({"result": {"content": TEXT, "isError": True}}, "tool error", "", ""),
    "error of the server": (
        {"result": {"isError": True, "structuredContent": {"error": {"type": "server_error"}}}},
        "tool error",
        "server_error",
        "",
    ),
    "ours": (
        {"result": {"isError": True, "structuredContent": {"error": {"type": "crashed", "outcome": "unknown"}}}},
        "error",
        "crashed",
        "unknown",
    ),
    "ours without a type": ({"result": {"isError": True, "structuredContent": {"error": {}}}}, "untyped", "None", ""),
    "of the protocol": ({"error": {"code": -32600, "message": "no"}}, "error", "-32600", ""),
    "of the daemon": (
        {"error": {"code": -31500, "message": "no", "data": {"type": "overloaded", "outcome": "not_sent"}}},
        "error",
        "overloaded",
        "not_sent",
    ),
    "of nobody": ({"error": {"code": -31500, "message": "no"}}, "untyped", "-31500", ""),
    "without a message": ({"error": {"code": -31500}}, "untyped", "", ""),
    "no answer": ([], "untyped", "", ""),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_says_how_its_request_ended(name: str) -> None:
    answer, *expected = ANSWERS[name]
    asked = Request(key="ana/legacy0/1", server="mortal", asked_s=0.0, limit_s=4.0)
    settle(asked, answer, 1.0, ())
    assert [asked.how, asked.type, asked.outcome, asked.answers] == [*expected, 1]
    settle(asked, {"result": {}}, 2.0, ())
    assert (asked.answers, asked.ended_s) == (2, 1.0)


def test_a_status_of_http_is_a_refusal_or_says_nothing() -> None:
    for status, how in ((401, "refused"), (403, "refused"), (500, "untyped")):
        asked = Request(key="ana/legacy0/1", server="mortal", asked_s=0.0, limit_s=4.0)
        refuse(asked, status, "no", 1.0)
        assert (asked.how, asked.answers) == (how, 1)


@given(st.integers(), st.floats(1.0, 1000.0), st.floats(0.05, 3.0))
def test_a_seed_gives_the_same_faults_in_the_middle_of_the_run(seed: int, seconds: float, per_s: float) -> None:
    faults = schedule(seed, seconds, per_s)
    assert faults == schedule(seed, seconds, per_s)
    begin, end = seconds * QUIET, seconds * (1 - CALM)
    assert [fault.at_s for fault in faults] == sorted(fault.at_s for fault in faults)
    assert all(begin <= fault.at_s and fault.at_s + fault.lasts_s <= end + 0.001 for fault in faults)
    assert len(faults) < len(KINDS) or {fault.kind for fault in faults} == set(KINDS)


def test_progress_says_what_was_done() -> None:
    history = good()
    history.done["storm"] = 3
    assert "3 faults; 100 MiB, 50 descriptors, 200 tasks" in progress(history, 10.0)
    assert "no figures" in progress(History(), 0.0)
