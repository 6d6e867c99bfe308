"""What one WebSocket text message means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol.versions import META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION
from supervisor.front.mcp.envelope import key_of
from supervisor.front.websocket import rules as rules
from supervisor.front.websocket.rules import Invalid, Nothing, Notification, Request


def one(message: Any, *, batching: bool = False) -> rules.Message:
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    found = rules.read(text, batching=batching)
    assert not isinstance(found, list)
    return found


def error(found: object) -> tuple[Any, int]:
    assert isinstance(found, Invalid)
    answer = json.loads(found.answer)
    return answer["id"], answer["error"]["code"]


def request(method: str = "tools/list", id_: Any = 1, **meta: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": meta}}


MODERN: dict[str, Any] = {META_VERSION: "2026-07-28", META_CAPABILITIES: {"roots": {}}}


def test_a_request_without_metadata_is_legacy() -> None:
    found = one({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"cursor": ""}})
    assert isinstance(found, Request)
    assert (found.id, found.key, found.method, found.modern) == (b'"a"', "a", "tools/list", None)
    assert bytes(found.params) == b'{"cursor": ""}'


def test_parameters_that_are_null_are_none() -> None:
    found = one({"jsonrpc": "2.0", "id": 0, "method": "ping", "params": None})
    assert isinstance(found, Request)
    assert (found.key, bytes(found.params)) == (0, b"")


def test_a_request_with_metadata_is_modern_and_names_its_client() -> None:
    found = one(request(**{**MODERN, META_CLIENT_INFO: {"name": "them", "version": "1"}, META_LOG_LEVEL: "debug"}))
    assert isinstance(found, Request)
    assert found.modern is not None
    assert (found.modern.era, found.modern.version, found.modern.name) == ("modern", "2026-07-28", "them")
    assert bytes(found.modern.capabilities) == b'{"roots": {}}'


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({META_VERSION: "2026-07-28"}, -32602),
        ({META_VERSION: 3, META_CAPABILITIES: {}}, -32602),
        ({META_VERSION: None, META_CAPABILITIES: {}}, -32602),
        ({META_VERSION: "2026-07-28", META_CAPABILITIES: []}, -32602),
        ({**MODERN, META_LOG_LEVEL: "loud"}, -32602),
        ({**MODERN, META_VERSION: "1900-01-01"}, -32022),
        ({**MODERN, META_VERSION: "2025-11-25"}, -32022),
    ],
)
def test_incomplete_metadata_is_refused_with_the_id_of_the_request(meta: dict[str, Any], code: int) -> None:
    assert error(one(request(id_="x", **meta))) == ("x", code)


def test_an_unsupported_version_is_answered_with_the_supported_ones() -> None:
    found = one(request(**{**MODERN, META_VERSION: "2027-01-01"}))
    assert isinstance(found, Invalid)
    assert json.loads(found.answer)["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


@pytest.mark.parametrize("method", sorted(rules.LEGACY_ONLY))
def test_methods_that_were_removed_do_not_exist_for_a_modern_request(method: str) -> None:
    assert error(one(request(method, 7, **MODERN))) == (7, -32601)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"nonsense", b"\xff", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', b"[1,", b"[" * 100_000, b"NaN"],
)
def test_what_is_not_json_is_a_parse_error_without_id(text: bytes) -> None:
    assert error(one(text)) == (None, -32700)


@pytest.mark.parametrize(
    "message",
    [
        7,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.0, "method": "ping"},
        {"jsonrpc": "2.0", "id": [1], "method": "ping"},
        {"jsonrpc": "2.0", "id": "x" * 600, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 2},
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
    ],
)
def test_json_that_is_no_message_is_an_invalid_request_without_id(message: Any) -> None:
    assert error(one(message)) == (None, -32600)


def test_parameters_by_position_are_refused() -> None:
    assert error(one({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]})) == (1, -32602)


def test_a_response_and_a_notification_need_no_answer() -> None:
    assert one({"jsonrpc": "2.0", "id": 1, "result": {}}) == Nothing()
    found = one({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert isinstance(found, Notification)


def test_an_array_is_read_only_where_arrays_were_negotiated() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    found = rules.read(json.dumps([ping, {"jsonrpc": "2.0", "method": "n"}, 3]).encode(), batching=True)
    assert isinstance(found, list)
    assert [type(part) for part in found] == [Request, Notification, Invalid]
    assert error(one([ping] * 51, batching=True)) == (None, -32600)


def test_an_array_holds_no_modern_request_and_no_initialize() -> None:
    initialize = {"jsonrpc": "2.0", "id": 2, "method": "initialize"}
    found = rules.read(json.dumps([request(**MODERN), initialize]).encode(), batching=True)
    assert isinstance(found, list)
    assert [error(part) for part in found] == [(1, -32600), (2, -32600)]


def test_ids_are_compared_by_type_and_value() -> None:
    assert key_of(b"1") == 1
    assert key_of(b'"1"') == "1"
    assert key_of(b'"\\u0061"') == key_of(b'"a"')
    assert [key_of(raw) for raw in (b"1.0", b"true", b"null", b"{}", b"")] == [None] * 5


TEXT = st.text("ab\u00e9\U0001f600", max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.binary(max_size=40)
    | st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0"),
            "id": JSON,
            "method": st.sampled_from(["ping", "initialize"]) | JSON,
            "params": st.fixed_dictionaries({"_meta": st.dictionaries(st.sampled_from(sorted(MODERN)), JSON)}) | JSON,
            "result": JSON,
        },
    ).map(lambda value: json.dumps(value).encode()),
    st.booleans(),
)
def test_nothing_a_client_sends_raises(text: bytes, batching: bool) -> None:
    found = rules.read(text, batching=batching)
    for part in found if isinstance(found, list) else [found]:
        if isinstance(part, Invalid):
            assert json.loads(part.answer)["error"]["code"] < 0


@pytest.mark.parametrize("id_", [7, "seven"])
def test_a_message_of_too_many_lists_is_too_large_and_its_request_is_answered(id_: int | str) -> None:
    message: Any = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"arguments": [[]] * 400_000}}
    assert error(one(message)) == (id_, -31413)


def test_an_array_of_too_many_numbers_is_too_large() -> None:
    assert error(one(b"[" + b"1," * 400_000 + b"1]", batching=True)) == (None, -31413)


def test_a_large_array_that_is_not_utf_8_is_no_json() -> None:
    assert error(one(b'["' + b"x" * 400_000 + b'\xff"]', batching=True)) == (None, -32700)
