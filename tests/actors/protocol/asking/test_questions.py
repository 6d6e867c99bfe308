"""Tokens of questions are minted anew, and what a client tells with them goes back under the server's own."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.asking.questions import (
    MAX_PROGRESS_BYTES,
    MAX_TOKEN_BYTES,
    advance,
    token_of,
    with_progress_token,
    with_token,
)

LONG = "x" * MAX_TOKEN_BYTES


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("params", "token"),
    [
        ({"_meta": {"progressToken": "a"}}, b'"a"'),
        ({"_meta": {"progressToken": 7}}, b"7"),
        ({"_meta": {"progressToken": 1.5}}, b""),
        ({"_meta": {"progressToken": None}}, b""),
        ({"_meta": {"progressToken": LONG}}, b""),
        ({"_meta": 7, "x": "progressToken"}, b""),
        ({"message": "progressToken"}, b""),
        ({"_meta": {}}, b""),
    ],
)
def test_a_token_is_a_short_string_or_an_integer(params: Any, token: bytes) -> None:
    assert token_of(raw(params)) == token


@pytest.mark.parametrize("params", [b"", b"7", b'{"progressToken":1}', b'{"_meta":{"x":"progressToken"}}'])
def test_params_without_a_token_stay_the_same_bytes(params: bytes) -> None:
    assert bytes(with_token(msgspec.Raw(params), b'"ours"')) == params


VALUES = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
OBJECTS = st.dictionaries(st.text(max_size=5).filter(lambda name: name not in ("_meta", "progressToken")), VALUES)


@given(OBJECTS, OBJECTS, st.text(max_size=20) | st.integers(), st.sampled_from([b"", b"7"]))
def test_nothing_but_the_token_is_changed(rest: Any, meta: Any, token: str | int, ours: bytes) -> None:
    asked = json.loads(bytes(with_token(raw({**rest, "_meta": {**meta, "progressToken": token}}), ours)))
    kept = {**meta, "progressToken": 7} if ours else meta
    assert asked == ({**rest, "_meta": kept} if kept else rest)


@pytest.mark.parametrize(
    "params",
    [b"", b"7", b'{"progressToken":"a","progress":1}', b'{"progressToken":7}', b'{"progressToken":7,"progress":"1"}'],
)
def test_what_tells_of_no_progress_is_none(params: bytes) -> None:
    assert advance(msgspec.Raw(params)) is None


def test_progress_is_bounded_in_bytes() -> None:
    told = {"progressToken": 7, "progress": 1}
    assert advance(raw(told)) == (7, 1)
    assert advance(raw({**told, "message": "x" * MAX_PROGRESS_BYTES})) is None


@given(st.text(max_size=20) | st.integers(), st.floats(allow_nan=False, allow_infinity=False), OBJECTS)
def test_the_server_reads_its_own_token(token: str | int, progress: float, more: Any) -> None:
    told = {**more, "progressToken": 7, "progress": progress}
    read = advance(raw(told))
    assert read == (7, progress)
    assert json.loads(with_progress_token(bytes(raw(told)), json.dumps(token).encode())) == {
        **told,
        "progressToken": token,
    }
