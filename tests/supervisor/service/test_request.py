"""Params of requests that are passed on: taken apart without a change to any value."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from supervisor.service.request import OURS, Parts, is_method, parts_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["_meta", "name", "uri", "a", "\u4e16"]) | st.text(max_size=2), json_values))
def test_all_members_arrive_but_for_meta(params: dict[str, object]) -> None:
    text = msgspec.Raw(json.dumps(params).encode())
    for method in ("tools/call", "resources/read", "events/poll", "x-own/method"):
        parts = parts_of(method, text)
        meta = {"_meta": json.loads(bytes(parts.meta))} if bytes(parts.meta) else {}
        nulls = method in OURS
        there = {key: value for key, value in params.items() if value is not None or not nulls}
        assert {**json.loads(b"{" + parts.members + b"}"), **meta} == there


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (b"", b""),
        (b"{}", b""),
        (b' { "a" : 1.0 , "b":12345678901234567890 } ', b'"a" : 1.0 , "b":12345678901234567890'),
    ],
)
def test_what_has_no_meta_is_not_written_anew(text: bytes, members: bytes) -> None:
    assert parts_of("x-own/method", msgspec.Raw(text)) == Parts(members, msgspec.Raw(b""), "")


def test_a_meta_whose_name_is_spelled_with_an_escape_is_one() -> None:
    parts = parts_of("x-own/method", msgspec.Raw(b'{"_m\\u0065ta":{"a":1},"b":1.0}'))
    assert (parts.members, bytes(parts.meta)) == (b'"b":1.0', b'{"a":1}')


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "a"}, "a"),
        ("resources/read", {"uri": "file:///a", "name": "b"}, "file:///a"),
        ("tasks/get", {"taskId": "1"}, "1"),
        ("events/poll", {"name": "a", "cursor": None}, "a"),
        ("tools/call", {"name": 5}, ""),
        ("tools/call", {}, ""),
        ("tools/list", {"name": "a"}, ""),
    ],
)
def test_what_a_request_is_about_is_known(method: str, params: dict[str, object], name: str) -> None:
    assert parts_of(method, msgspec.Raw(json.dumps(params).encode())).name == name


@pytest.mark.case("C04")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "tasks/cancel"])
@pytest.mark.parametrize(
    "key", ["Name", "NAME", "URI", "taskid", "Arguments", "argument\u017f", "ta\u017f\u212a", "_META"]
)
def test_a_member_that_only_resembles_one_that_means_something_is_refused(method: str, key: str) -> None:
    for beside in ({}, {"name": "safe", "uri": "file:///safe", "taskId": "safe", "arguments": {}}):
        with pytest.raises(InvalidArguments, match="which some servers take for"):
            parts_of(method, msgspec.Raw(json.dumps({**beside, key: "other"}).encode()))
    with pytest.raises(InvalidArguments):
        parts_of(method, msgspec.Raw(b'{"name":"safe","\\u004eame":"other"}'))


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="'params' must be an object"):
        parts_of("tools/call", msgspec.Raw(b"[1]"))


def test_a_name_is_cut_and_anything_else_is_none() -> None:
    assert len(parts_of("prompts/get", msgspec.Raw(json.dumps({"name": "a" * 10_000}).encode())).name) == 8192
    assert {parts_of("prompts/get", msgspec.Raw(text)).name for text in (b"", b"{}", b'{"name":{}}')} == {""}


@pytest.mark.parametrize("method", ["tools/list", "x.own/a-b_c/$d", "A", "a" * 128])
def test_a_name_of_a_method_is_one(method: str) -> None:
    assert is_method(method)


@pytest.mark.parametrize("method", ["", "/", "a/", "/a", "a//b", "a b", "a\r\nx: y", "\u00e4", "a" * 129])
def test_anything_else_is_none(method: str) -> None:
    assert not is_method(method)


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "tools/list", "completion/complete"])
def test_a_client_that_writes_null_for_what_it_leaves_out_has_left_it_out(method: str) -> None:
    params = b'{"name":"t","uri":"a:b","arguments":null,"cursor":null,"context": null ,"_meta":null,"x":{"a":null}}'
    assert parts_of(method, msgspec.Raw(params)).members == b'"name":"t","uri":"a:b","x":{"a":null}'


def test_null_of_methods_that_are_not_the_protocols_is_theirs() -> None:
    params = b'{"name":"mail.received","cursor":null}'
    assert parts_of("events/poll", msgspec.Raw(params)).members == params[1:-1]
