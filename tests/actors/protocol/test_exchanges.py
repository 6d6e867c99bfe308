"""What a server says about calls: it reaches the call it is about, or nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.exchanges import (
    GOES_ON_S,
    LEFT_S,
    LOG_LEVELS,
    MAX_LEFT,
    MAX_NOTE_BYTES,
    MESSAGE,
    NOTHING,
    PROGRESS,
    Exchanges,
    Interest,
)
from actors.protocol.facts import CallNoted
from tests.fakes.clock import Clock


def raw(**members: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(members).encode())


def progress(exchanges: Exchanges, token: Any, value: Any, **more: Any) -> Any:
    noted = exchanges.route_note(PROGRESS, raw(progressToken=token, progress=value, **more), b"")
    return None if noted is None else (noted.call, json.loads(noted.params))


def two_calls(first: Interest = NOTHING, second: Interest = NOTHING) -> Exchanges:
    exchanges = Exchanges(Clock())
    exchanges.begin(1, b"71", first)
    exchanges.begin(2, b"72", second)
    return exchanges


@pytest.mark.case("C26", "I18")
@pytest.mark.parametrize("token", ["7", '"mine"'])
def test_progress_comes_back_with_the_token_that_the_client_gave(token: str) -> None:
    exchanges = two_calls(Interest(token.encode()), Interest(b'"other"'))
    found = progress(exchanges, 71, 1, total=2.50, message="a", _meta={"x": 1})
    assert found == (
        1,
        {"progressToken": json.loads(token), "progress": 1, "total": 2.5, "message": "a", "_meta": {"x": 1}},
    )


def test_what_is_null_and_may_only_be_left_out_is_left_out() -> None:
    exchanges = two_calls(Interest(b"1", log_level="debug"))
    told = progress(exchanges, 71, 1, total=None, message=None)
    assert told == (1, {"progressToken": 1, "progress": 1})
    said = raw(level="info", logger=None, data=None)
    noted = exchanges.route_note(MESSAGE, said, b"71")
    assert noted is not None
    assert json.loads(noted.params) == {"level": "info", "data": None}


def test_progress_that_does_not_increase_is_dropped() -> None:
    exchanges = two_calls(Interest(b"1"))
    told = [progress(exchanges, 71, value) is not None for value in (-1, 0, 0, 0.5, 0.25, 3)]
    assert told == [True, True, False, True, False, True]
    assert exchanges.unheard == 2


@pytest.mark.parametrize(
    "params",
    [
        raw(progressToken=79, progress=1),
        raw(progressToken=1, progress=1),
        raw(progressToken=72, progress=1),
        raw(progressToken=71, progress="much"),
        raw(progressToken=71, progress=1, message="x" * MAX_NOTE_BYTES),
        raw(progress=1),
        msgspec.Raw(b""),
        msgspec.Raw(b"[1]"),
    ],
    ids=["nobody's", "no id of ours", "not wanted", "no number", "too long", "no token", "empty", "an array"],
)
def test_what_is_for_nobody_or_is_no_progress_is_counted(params: msgspec.Raw) -> None:
    exchanges = two_calls(Interest(b"1"))
    assert exchanges.route_note(PROGRESS, params, b"") is None
    assert exchanges.unheard == 1


def test_progress_of_a_call_that_is_over_is_for_nobody() -> None:
    exchanges = two_calls(Interest(b"1"))
    exchanges.end(1)
    exchanges.end(1)
    assert progress(exchanges, 71, 1) is None


@pytest.mark.parametrize(("wanted", "heard"), [(None, 0), ("", 7), ("debug", 8), ("warning", 5), ("emergency", 1)])
def test_a_log_message_goes_to_whoever_wants_its_level(wanted: Any, heard: int) -> None:
    exchanges = Exchanges(Clock())
    exchanges.begin(1, b"71", Interest(log_level=wanted))
    told = [exchanges.route_note(MESSAGE, raw(level=level, data="x"), b"") for level in LOG_LEVELS]
    assert [note for note in told if note is not None] == [
        CallNoted(1, MESSAGE, bytes(raw(level=level, data="x"))) for level in LOG_LEVELS[len(LOG_LEVELS) - heard :]
    ]


def test_nothing_is_guessed_where_several_calls_share_one_stream() -> None:
    exchanges = two_calls(Interest(log_level="debug"), Interest(log_level="debug"))
    said = raw(level="error", data="whose?")
    assert exchanges.route_note(MESSAGE, said, b"") is None
    assert exchanges.of(b"") is None
    noted = exchanges.route_note(MESSAGE, said, b"72")
    assert noted is not None
    assert noted.call == 2
    assert exchanges.route_note(MESSAGE, said, b"73") is None
    exchanges.end(2)
    assert exchanges.of(b"") == 1


@pytest.mark.parametrize("params", [raw(level="loud", data=1), raw(data=1), msgspec.Raw(b"7")])
def test_a_log_message_of_no_level_is_for_nobody(params: msgspec.Raw) -> None:
    exchanges = Exchanges(Clock())
    exchanges.begin(1, b"71", Interest(log_level="debug"))
    assert exchanges.route_note(MESSAGE, params, b"") is None


def after_one_left(client: str) -> tuple[Exchanges, Clock]:
    """A call of "a" that nobody waits for any more, and one in flight of this client."""
    clock = Clock()
    exchanges = Exchanges(clock)
    exchanges.begin(1, b"71", NOTHING, client="a")
    assert exchanges.leave(1) == b"71"
    assert exchanges.leave(1) is None
    exchanges.begin(2, b"72", Interest(log_level="debug"), client=client)
    return exchanges, clock


def test_log_messages_of_a_call_that_goes_on_are_for_no_other_client() -> None:
    exchanges, clock = after_one_left("b")
    assert exchanges.route_note(MESSAGE, raw(level="info", data="it stops"), b"") is not None
    clock.now = LEFT_S + 1
    assert progress(exchanges, 71, 1) is None
    assert exchanges.route_note(MESSAGE, raw(level="info", data="of a"), b"") is None
    exchanges.end(1)
    assert exchanges.route_note(MESSAGE, raw(level="info", data="of b"), b"") is not None


def test_a_request_during_which_nobody_asks_is_forgotten_when_it_is_left() -> None:
    exchanges = Exchanges(Clock())
    exchanges.begin(1, b"1", NOTHING, "tools/list", client="a")
    assert exchanges.leave(1) == b"1"
    exchanges.begin(2, b"2", NOTHING, client="b")
    assert exchanges.asker() == 2


def test_a_call_that_was_left_is_over_after_a_while() -> None:
    exchanges, clock = after_one_left("b")
    clock.now = LEFT_S - 1
    assert exchanges.asker() is None
    assert 1 <= exchanges.doubt_s < 1.1
    clock.now += exchanges.doubt_s
    assert exchanges.asker() == 2


def asks_of_none(exchanges: Exchanges) -> None:
    exchanges.asked_of_none()


def tells_progress(exchanges: Exchanges) -> None:
    assert progress(exchanges, 71, 1) is None


def answers_late(exchanges: Exchanges) -> None:
    exchanges.end(1)


def refuses_late(exchanges: Exchanges) -> None:
    exchanges.end(1, refused=True)


def is_unknown(exchanges: Exchanges) -> None:
    assert progress(exchanges, 79, 1) is None


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("shows", "goes_on"),
    [(asks_of_none, True), (tells_progress, True), (answers_late, True), (refuses_late, False), (is_unknown, False)],
)
def test_a_server_that_was_seen_to_go_on_may_do_so_for_longer(
    shows: Callable[[Exchanges], None], goes_on: bool, late: bool
) -> None:
    exchanges, clock = after_one_left("b")
    clock.now = LEFT_S + 1 if late else 1.0  # so soon it may have crossed the cancellation
    shows(exchanges)
    exchanges.begin(3, b"3", NOTHING, client="c")
    exchanges.leave(3)
    clock.now += LEFT_S + 1
    assert exchanges.asker() == (None if goes_on and late else 2)
    clock.now += GOES_ON_S
    assert exchanges.asker() == 2


def test_nothing_is_shown_where_no_call_was_left() -> None:
    exchanges = Exchanges(Clock())
    exchanges.asked_of_none()
    assert exchanges.askers == frozenset()
    assert exchanges.doubt_s < 1


def test_so_many_calls_that_were_left_are_known_at_most() -> None:
    exchanges, _ = after_one_left("b")
    for call in range(3, 3 + MAX_LEFT):
        exchanges.begin(call, b"%d" % call, NOTHING, client="b")
        exchanges.leave(call)
    assert exchanges.asker() == 2


calls_of = st.lists(
    st.tuples(st.sampled_from(["begin", "end", "leave"]), st.integers(0, 5), st.sampled_from("abc")), max_size=30
)


@given(calls_of)
def test_nothing_is_about_a_call_if_one_of_another_client_may_have_led_to_it(steps: list[tuple[str, int, str]]) -> None:
    exchanges, running, number = Exchanges(Clock()), dict[int, tuple[str, bool]](), 0
    for what, which, client in steps:
        if what == "begin":
            number += 1
            exchanges.begin(number, b"%d" % number, NOTHING, client=client)
            running[number] = client, True
        elif running:
            call = list(running)[which % len(running)]
            if what == "end":
                exchanges.end(call)
                del running[call]
            else:
                exchanges.leave(call)
                running[call] = running[call][0], False
        expected = [call for call, (_, awaited) in running.items() if awaited]
        clients = {client for client, _ in running.values()}
        known = len(expected) == 1 and len(clients) == 1
        assert exchanges.asker() == (expected[0] if known else None)
        assert exchanges.of(b"") == (expected[0] if len(expected) == 1 else None)
