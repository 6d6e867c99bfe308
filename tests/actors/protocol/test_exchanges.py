"""What a server says about calls: it reaches the call it is about, or nobody."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.exchanges import LOG_LEVELS, MAX_NOTE_BYTES, MESSAGE, NOTHING, PROGRESS, Exchanges, Interest
from actors.protocol.facts import CallNoted


def raw(**members: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(members).encode())


def progress(exchanges: Exchanges, token: Any, value: Any, **more: Any) -> Any:
    noted = exchanges.noted(PROGRESS, raw(progressToken=token, progress=value, **more), b"")
    return None if noted is None else (noted.call, json.loads(noted.params))


def two_calls(first: Interest = NOTHING, second: Interest = NOTHING) -> Exchanges:
    exchanges = Exchanges()
    exchanges.begin(1, b'"s1-1"', first)
    exchanges.begin(2, b'"s1-2"', second)
    return exchanges


@pytest.mark.parametrize("token", ["7", '"mine"'])
def test_progress_comes_back_with_the_token_that_the_client_gave(token: str) -> None:
    exchanges = two_calls(Interest(token.encode()), Interest(b'"other"'))
    found = progress(exchanges, "s1-1", 1, total=2.50, message="a", _meta={"x": 1})
    assert found == (
        1,
        {"progressToken": json.loads(token), "progress": 1, "total": 2.5, "message": "a", "_meta": {"x": 1}},
    )


def test_progress_that_does_not_increase_is_dropped() -> None:
    exchanges = two_calls(Interest(b"1"))
    told = [progress(exchanges, "s1-1", value) is not None for value in (-1, 0, 0, 0.5, 0.25, 3)]
    assert told == [True, True, False, True, False, True]
    assert exchanges.unheard == 2


@pytest.mark.parametrize(
    "params",
    [
        raw(progressToken="s1-9", progress=1),
        raw(progressToken=1, progress=1),
        raw(progressToken="s1-2", progress=1),
        raw(progressToken="s1-1", progress="much"),
        raw(progressToken="s1-1", progress=1, message="x" * MAX_NOTE_BYTES),
        raw(progress=1),
        msgspec.Raw(b""),
        msgspec.Raw(b"[1]"),
    ],
    ids=["nobody's", "no id of ours", "not wanted", "no number", "too long", "no token", "empty", "an array"],
)
def test_what_is_for_nobody_or_is_no_progress_is_counted(params: msgspec.Raw) -> None:
    exchanges = two_calls(Interest(b"1"))
    assert exchanges.noted(PROGRESS, params, b"") is None
    assert exchanges.unheard == 1


def test_progress_of_a_call_that_is_over_is_for_nobody() -> None:
    exchanges = two_calls(Interest(b"1"))
    exchanges.end(1)
    exchanges.end(1)
    assert progress(exchanges, "s1-1", 1) is None


@pytest.mark.parametrize(("wanted", "heard"), [(None, 0), ("", 7), ("debug", 8), ("warning", 5), ("emergency", 1)])
def test_a_log_message_goes_to_whoever_wants_its_level(wanted: Any, heard: int) -> None:
    exchanges = Exchanges()
    exchanges.begin(1, b'"s1-1"', Interest(log_level=wanted))
    told = [exchanges.noted(MESSAGE, raw(level=level, data="x"), b"") for level in LOG_LEVELS]
    assert [note for note in told if note is not None] == [
        CallNoted(1, MESSAGE, bytes(raw(level=level, data="x"))) for level in LOG_LEVELS[len(LOG_LEVELS) - heard :]
    ]


def test_nothing_is_guessed_where_several_calls_share_one_stream() -> None:
    exchanges = two_calls(Interest(log_level="debug"), Interest(log_level="debug"))
    said = raw(level="error", data="whose?")
    assert exchanges.noted(MESSAGE, said, b"") is None
    assert exchanges.of(b"") is None
    noted = exchanges.noted(MESSAGE, said, b'"s1-2"')
    assert noted is not None
    assert noted.call == 2
    assert exchanges.noted(MESSAGE, said, b'"s1-3"') is None
    exchanges.end(2)
    assert exchanges.of(b"") == 1


@pytest.mark.parametrize("params", [raw(level="loud", data=1), raw(data=1), msgspec.Raw(b"7")])
def test_a_log_message_of_no_level_is_for_nobody(params: msgspec.Raw) -> None:
    exchanges = Exchanges()
    exchanges.begin(1, b'"s1-1"', Interest(log_level="debug"))
    assert exchanges.noted(MESSAGE, params, b"") is None
