"""`calls`: which calls a request asks for, each read as one by itself and made once, and what is wrong with which."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import AmbiguousName, InvalidArguments
from supervisor.metatools.execution import CALLS, MAX_CALLS, asked_calls, execute


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(value if isinstance(value, bytes) else json.dumps(value).encode())


def made(written: Any) -> list[tuple[str, Any]]:
    """Return path and arguments of each call that is made."""
    return [(call.tool_path, json.loads(bytes(call.arguments))) for call in asked_calls(raw(written)).calls]


A, B, C = ({"tool_path": f"s:{name}", "arguments": {"n": name}} for name in "abc")
ABC = [("s:a", {"n": "a"}), ("s:b", {"n": "b"}), ("s:c", {"n": "c"})]


@pytest.mark.parametrize(
    "written",
    [
        {**A, "calls": [B, C]},
        {"calls": [A, B, C]},
        {"calls": json.dumps([A, B, C])},
        {"tool_path": "", "arguments": {}, "calls": [A, B, C]},
        {"arguments": {"calls": [A, B, C]}},
        json.dumps({"calls": [A, B, C]}),
        {**A, "calls": [json.dumps(B), {"arguments": C}]},
        {**A, "calls": [{"name": "s:b", "args": {"n": "b"}}, {"tool": "s:c", "n": "c"}]},
        {"tool_path": "s:a", "n": "a", "calls": [B, C]},
        {**A, "calls": [B, C], "unknown": 1},
        {"calls": [{"function": {"name": "s:a", "arguments": json.dumps({"n": "a"})}}, B, C]},
    ],
)
def test_calls_are_read_generously(written: Any) -> None:
    assert made(written) == ABC


@pytest.mark.parametrize(
    "written",
    [
        {"tool_path": "phone:log", "calls": ["one", "two"]},
        {"tool_path": "phone:log", "calls": [{"name": "Bob", "number": 1}]},
        {"tool_path": "phone:log", "calls": 3, "n": 1},
        {"tool_path": "phone:log", "calls": [], "n": 1},
        {"tool_path": "phone:log", "arguments": {"calls": [A]}},
        {"tool_path": "phone:log", "arguments": {"text": '"calls"'}},
    ],
)
def test_an_argument_of_that_name_stays_one(written: Any) -> None:
    asked = asked_calls(raw(written))
    assert asked.calls == (execute(raw(written)),)
    assert asked.order == (0,)


@pytest.mark.parametrize("nothing", [[], None, "", {}, "[]"])
def test_no_further_calls_are_none(nothing: Any) -> None:
    assert made({**A, "calls": nothing}) == ABC[:1]
    assert made({"tool_path": "s:x", "arguments": {}, "calls": nothing}) == [("s:x", {})]


def test_a_call_that_is_there_twice_is_made_once_and_keeps_its_places() -> None:
    again = {"arguments": {"k": [1], "n": "a"}, "tool_path": " s:a "}
    first = {"tool_path": "s:a", "arguments": {"n": "a", "k": [1]}}
    asked = asked_calls(raw({**first, "calls": [B, again, B, C]}))
    assert [call.tool_path for call in asked.calls] == ["s:a", "s:b", "s:c"]
    assert asked.order == (0, 1, 0, 1, 2)
    other = [{**first, "arguments": {"n": "a", "k": [value]}} for value in (True, 1.0, "1")]
    assert len(asked_calls(raw({**first, "calls": other})).calls) == 4
    assert asked_calls(raw({**first, "calls": [first]})).calls == (execute(raw(first)),)


@pytest.mark.parametrize(
    ("one", "other"),
    [(b"0.1", b"0.10000000000000000001"), (b"1e2", b"100.0"), (b"9007199254740993.0", b"9007199254740992.0")],
)
def test_decimals_are_compared_as_they_are_written(one: bytes, other: bytes) -> None:
    call = b'{"tool_path": "s:a", "arguments": {"n": %b, "k": "1.5"}}'
    twice = b'{"tool_path": "s:a", "arguments": {"k":"\\u0031.5", "n":%b}}' % one
    asked = asked_calls(raw(b'{"calls": [%b, %b, %b]}' % (call % one, call % other, twice)))
    assert [bytes(each.arguments) for each in asked.calls] == [b'{"n": %b, "k": "1.5"}' % each for each in (one, other)]
    assert asked.order == (0, 1, 0)


def test_a_call_is_made_once_whatever_is_picked_of_it_and_wherever_its_server_stands() -> None:
    picked = {**A, "pick": ["$.a"]}
    assert asked_calls(raw({**picked, "calls": [A]})).calls == (execute(raw(A)),)
    assert asked_calls(raw({**A, "calls": [picked, B]})).order == (0, 0, 1)
    assert asked_calls(raw({**picked, "calls": [picked]})).calls == (execute(raw(picked)),)
    assert asked_calls(raw({**picked, "calls": [{**A, "pick": ["$.b"]}]})).calls == (execute(raw(A)),)
    assert asked_calls(raw({**A, "calls": [{**A, "tool_path": "a", "server": "s"}]})).order == (0, 0)
    flat = {"tool_path": "s:a", "n": "a"}
    assert len(asked_calls(raw({"calls": [{**flat, "pick": "$.a"}, {**flat, "pick": "$.b"}]})).calls) == 2


def test_each_may_go_on_with_an_earlier_call() -> None:
    later = {**B, "continuation": "mcpvisor-state", "answers": {"question-1": {"name": "Ada"}}}
    first, second = asked_calls(raw({**A, "calls": [later]})).calls
    assert first.continuation is None
    assert second.continuation is not None
    assert second.continuation.state == "mcpvisor-state"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({**A, "calls": [B, 7]}, "call 3 must be an object"),
        ({**A, "calls": [{"arguments": {"n": 1}}]}, "call 2: execute_mcp_tool: 'tool_path' must be a string"),
        ({"calls": [{"tool_path": "s:a", "arguments": 5}, B]}, "call 1: .*'arguments' must be a JSON object"),
        (
            {"calls": [A], "pick": ["$.a"]},
            "'pick' beside 'calls', but no 'tool_path': put it into each call",
        ),
        ({"calls": [A, B], "server": "s", "pick": "$"}, "'pick' and 'server' beside 'calls'"),
        (
            {"calls": [A], "continuation": "mcpvisor-x", "answers": {"q": {}}},
            "'continuation' and 'answers' beside 'calls'",
        ),
        ({"calls": 7}, "'calls' must be a list of objects"),
        ({**A, "calls": "many"}, "'calls' must be a list of objects"),
        ({"calls": []}, "'tool_path' must be a string"),
        ({"calls": [A] * (MAX_CALLS + 1)}, f"{MAX_CALLS + 1} in 'calls', {MAX_CALLS} are the most"),
        ({"calls": [A, {"tool_path": "x", "server": ["one", "two"]}]}, "call 2: .*this names 'one:x' and 'two:x'"),
    ],
)
def test_what_is_wrong_says_which_call_it_is(written: Any, said: str) -> None:
    with pytest.raises((InvalidArguments, AmbiguousName), match=said) as caught:
        asked_calls(raw(written))
    if said.startswith("call") and "must be an object" not in said:
        assert caught.value.data()["call"] == int(said[5])


def test_calls_with_more_members_than_are_taken_apart_are_passed_on() -> None:
    large = {"tool_path": "s:a", "arguments": {f"k{number}": number for number in range(5000)}}
    others = [{**large, "tool_path": f"s:b{number}"} for number in range(9)]
    assert len(asked_calls(raw({**large, "calls": others})).calls) == 10


VALUES = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))
CALLS_GIVEN = st.lists(
    st.fixed_dictionaries(
        {
            "tool_path": st.sampled_from(["s:a", "s:b"]),
            "arguments": st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
        }
    ),
    min_size=1,
    max_size=MAX_CALLS,
)


@given(CALLS_GIVEN)
def test_each_call_is_read_as_it_is_alone(given_calls: list[dict[str, Any]]) -> None:
    asked = asked_calls(raw({CALLS: given_calls}))
    assert len(asked.order) in (len(given_calls), 1)
    for place, call in zip(asked.order, given_calls, strict=False):
        one = execute(raw(call))
        assert asked.calls[place].tool_path == one.tool_path
        assert json.loads(bytes(asked.calls[place].arguments)) == json.loads(bytes(one.arguments))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["calls", "tool_path", "arguments", "name", "server", "pick", "x"]), inner)
    ),
)


@given(JUNK)
def test_nothing_else_than_what_is_told_is_raised(written: Any) -> None:
    with suppress(InvalidArguments, AmbiguousName):
        asked_calls(raw(written))
