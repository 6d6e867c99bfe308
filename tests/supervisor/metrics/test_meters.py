"""What is counted has a bound, whatever servers and clients are called and say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from actors.catalogue.diff import Change
from actors.facts import (
    Fact,
    FactLog,
    ListsUnread,
    PromptsChange,
    RefusedByBreaker,
    RunEnded,
    StartedAgain,
    ToolsChange,
)
from supervisor.events.kinds import ElicitationAsked, ElicitationEnded
from supervisor.metrics import families
from supervisor.metrics.collector import MAX_SETS, Counts, Durations, Labels, Measured
from supervisor.metrics.families import (
    OTHER,
    UNNAMED,
    Family,
    code_label,
    error_label,
    method_label,
    request_labels,
    tool_label,
    version_label,
)
from supervisor.metrics.meters import MAX_SERVERS, MAX_TOOLS, Meters
from supervisor.usage.records import OUTCOMES, CallOutcome, CallRecord


def values_of(meters: Meters, family: Family) -> dict[Labels, float | Measured]:
    (figures,) = (each for each in meters.figures() if each.family is family)
    return dict(figures.values)


def counting() -> tuple[Meters, FactLog]:
    """Return what counts, and where what it counts is noted."""
    meters, facts = Meters(), FactLog(lambda: 0.0)
    facts.projections.append(meters)
    return meters, facts


def record(server: str, outcome: CallOutcome = "ok", tool: str = "t") -> CallRecord:
    return CallRecord(server=server, tool=tool, outcome=outcome)


def test_servers_have_series_at_zero_before_anything_is_called() -> None:
    meters = Meters()
    meters.keep(["a", "b"])
    assert values_of(meters, families.CALLS) == {(server, outcome): 0 for server in "ab" for outcome in OUTCOMES}
    assert values_of(meters, families.RESTARTS) == {("a",): 0, ("b",): 0}
    assert set(values_of(meters, families.REFUSED).values()) == {0}


def test_launches_of_people_count_for_their_server() -> None:
    meters, facts = counting()
    for server in ("desk", "desk~0123456789abcdef", "desk~fedcba9876543210"):
        meters.take([record(server)])
        facts.note(StartedAgain(launch=server))
        facts.note(RunEnded(launch=server, by="exit"))
    assert values_of(meters, families.CALLS) == {("desk", "ok"): 3}
    assert values_of(meters, families.RESTARTS) == {("desk",): 3}
    assert values_of(meters, families.EXITS) == {("desk", "exit"): 3}


def test_servers_beyond_the_bound_are_others() -> None:
    meters = Meters()
    names = [f"s{number}" for number in range(MAX_SERVERS + 7)]
    meters.keep(names)
    for name in names:
        meters.take([record(name)])
    counted = values_of(meters, families.CALLS)
    assert counted[OTHER, "ok"] == 7
    assert sum(float(value) for value in counted.values() if isinstance(value, int | float)) == len(names)
    assert len({server for server, _ in counted}) == MAX_SERVERS + 1


def test_a_server_that_is_gone_makes_room() -> None:
    meters = Meters()
    meters.keep(f"s{number}" for number in range(MAX_SERVERS))
    meters.take([record("s0")])
    meters.keep(f"s{number}" for number in range(1, MAX_SERVERS + 1))
    counted = values_of(meters, families.CALLS)
    assert not any(server == "s0" for server, _ in counted)
    assert counted[f"s{MAX_SERVERS}", "ok"] == 0


def test_tools_are_counted_only_where_that_is_wanted_and_so_many() -> None:
    silent, meters = Meters(), Meters(counts_tools=lambda: True)
    for number in range(MAX_TOOLS + 3):
        silent.take([record("a", tool=f"t{number}")])
        meters.take([record("a", tool=f"t{number}")])
    assert values_of(silent, families.TOOL_CALLS) == {}
    assert len(values_of(meters, families.TOOL_CALLS)) == MAX_TOOLS + 1
    assert values_of(meters, families.TOOL_CALLS)["a", OTHER, "ok"] == 3


def test_calls_of_meta_tools_are_no_calls_of_servers() -> None:
    meters = Meters()
    meters.take([record("")])
    assert values_of(meters, families.CALLS) == {}


@pytest.mark.parametrize("table", [Counts(families.RESTARTS, most=3), Durations(families.STARTS, most=3)])
def test_a_table_has_no_more_sets_than_it_may(table: Counts | Durations) -> None:
    for number in range(10):
        if isinstance(table, Counts):
            table.add(str(number))
        else:
            table.add((str(number),), 1.0)
    assert [*table.values] == [("0",), ("1",), ("2",), (OTHER,)]


def test_requests_have_bounded_series_whatever_is_asked() -> None:
    meters = Meters()
    for number in range(3 * MAX_SETS):
        meters.requests.add(request_labels(f"odd/{number}", "", f"v{number}", f"tool {number}"), 0.1)
        meters.on_answer("s", f"odd/{number}", "pipe", 0.1, "")
        meters.http.add(("GET", f"/{number}", "200"), 0.1)
    assert [*values_of(meters, families.SERVER_OPERATIONS)] == [(OTHER, "", "tcp", OTHER, OTHER)]
    assert [*values_of(meters, families.CLIENT_OPERATIONS)] == [("s", OTHER, "", "pipe")]
    assert len(values_of(meters, families.HTTP)) <= 201


def test_words_of_others_become_words_of_ours() -> None:
    assert (method_label("tools/call"), method_label("x/y")) == ("tools/call", OTHER)
    assert (version_label("2025-11-25"), version_label("3000")) == ("2025-11-25", OTHER)
    assert (tool_label(""), tool_label("execute_mcp_tool"), tool_label("mine")) == ("", "execute_mcp_tool", OTHER)
    assert tool_label("execute_read_only_mcp_tool") == "execute_read_only_mcp_tool"
    assert (code_label(-32602), code_label(12345)) == ("-32602", UNNAMED)
    assert (error_label(None), error_label(ValueError()), error_label(KeyboardInterrupt())) == (
        "",
        UNNAMED,
        "cancelled",
    )


def happened() -> Iterable[Fact]:
    yield ToolsChange(launch="a", change=Change(added=("a", "b"), changed=("c",)))
    yield ToolsChange(launch="a", change=Change(removed=("a",)))
    yield PromptsChange(launch="a", change=Change(removed=("a",)))
    yield ElicitationAsked(server_slug="a", kind="form", asked="page")
    yield ElicitationEnded(server_slug="a", kind="form", asked="page", action="accept")
    yield ListsUnread(launch="a", reason="it has none")


def test_facts_are_counted() -> None:
    meters, facts = counting()
    for fact in happened():
        facts.note(fact)
    assert values_of(meters, families.CHANGES) == {("added",): 2, ("removed",): 1, ("changed",): 1}
    assert values_of(meters, families.ANSWERS) == {("form", "accept"): 1}


def test_what_breakers_refuse_is_counted_for_the_server_of_a_launch() -> None:
    meters, facts = counting()
    meters.keep(["a"])
    for launch in ("a", "a~1f", "a"):
        facts.note(RefusedByBreaker(launch=launch, breaker="tool"))
    assert values_of(meters, families.LEFT_ALONE) == {("a", "server"): 0, ("a", "tool"): 3, ("a", "discovery"): 0}
