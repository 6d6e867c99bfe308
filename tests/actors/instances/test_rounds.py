"""Which instance gave a `requestState`, and the calls that wait."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import MalformedRequest
from actors.instances.dispatch import MAX_STATES, PATIENCE_S, GivenStates, Giver, WaitingCall, WaitingCalls
from actors.kit import Reply
from actors.messages import CallServer, Result
from actors.principal import Principal

GIVER = Giver(2, "run")


def asked(state: Any = "s", **more: Any) -> Result:
    body = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}, "requestState": state}
    return Result(msgspec.Raw(json.dumps({**body, **more}).encode()), "modern")


def again(state: str, method: str = "tools/call", **more: Any) -> CallServer:
    retry = b'"inputResponses":{},"requestState":' + state.encode()
    return CallServer(server="a", method=method, members=b"", retry=retry, **more)


@given(st.text(max_size=20))
def test_a_state_is_known_again_however_it_is_written(state: str) -> None:
    states = GivenStates()
    assert states.note(again('""'), asked(state), GIVER) == bool(state)
    for ascii_ in (True, False):
        written = json.dumps(state, ensure_ascii=ascii_)
        if state.isascii() or ascii_ or state.encode(errors="ignore").decode() == state:
            assert states.find(again(written)) == (state, GIVER if state else None)


@pytest.mark.parametrize(
    ("result", "method"),
    [
        (asked(resultType="complete"), "tools/call"),
        (asked(), "completion/complete"),
        (asked(state=7), "tools/call"),
        (Result(asked().body, "legacy"), "tools/call"),
        (Result(msgspec.Raw(b'{"x":"input_required"}'), "modern"), "tools/call"),
    ],
)
def test_what_asks_nothing_gives_no_state(result: Result, method: str) -> None:
    states = GivenStates()
    assert not states.note(again('"s"', method), result, GIVER)
    assert states.find(again('"s"')) == ("s", None)


def test_the_same_state_said_to_two_users_or_of_two_tools_is_that_of_each() -> None:
    states, others = GivenStates(), Giver(3, "other run")
    mine, theirs = again('"step 1"', name="book", principal=Principal("ana")), Principal("dan")
    assert states.note(mine, asked("step 1"), GIVER)
    assert states.find(again('"step 1"', name="book", principal=theirs)) == ("step 1", None)
    assert states.note(again('"step 1"', name="book", principal=theirs), asked("step 1"), others)
    assert states.note(again('"step 1"', name="pay", principal=Principal("ana")), asked("step 1"), others)
    assert states.find(mine) == ("step 1", GIVER)


def test_the_oldest_state_is_forgotten_and_what_is_no_string_is_refused() -> None:
    states = GivenStates()
    for number in range(MAX_STATES + 1):
        states.note(again('""'), asked(str(number)), GIVER)
    assert states.find(again('"0"')) == ("0", None)
    assert states.find(again('"1"')) == ("1", GIVER)
    assert states.find(CallServer(server="a", method="tools/call", members=b"")) == ("", None)
    with pytest.raises(MalformedRequest):
        states.find(again("7"))


def call(since: float = 0.0, deadline: float = 60.0, members: bytes = b"") -> WaitingCall:
    return WaitingCall(CallServer(server="a", method="tools/call", members=members), Reply(), since, deadline)


def test_calls_wait_within_bounds_until_their_deadline() -> None:
    waiting = WaitingCalls(max_calls=2, max_bytes=10)
    first, second = call(members=b"x" * 10), call(since=1, deadline=30)
    assert waiting.has_room(first)
    waiting.add(first)
    assert not waiting.has_room(call(members=b"x"))  # too many bytes
    waiting.add(second)
    assert not waiting.has_room(call())  # too many calls
    assert (waiting.next_moment(busy=True), waiting.next_moment(busy=False)) == (PATIENCE_S, 30)
    assert waiting.is_patience_over(PATIENCE_S)
    assert not waiting.is_patience_over(PATIENCE_S - 0.1)
    assert waiting.take_late(30) == [second]
    first.reply.abandon()
    assert waiting.oldest() is None
    assert (len(waiting), waiting.next_moment(busy=True)) == (0, None)
    assert waiting.has_room(call(members=b"x" * 10))
    assert [*waiting.take_all()] == []
