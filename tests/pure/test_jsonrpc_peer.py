"""JSON-RPC envelopes, and the pending table over them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.errors import ProtocolViolation
from actors.protocol import jsonrpc
from actors.protocol.peer import Answered, Asked, Malformed, Notified, Peer, Refused

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


def peer() -> Peer[str]:
    found: Peer[str] = Peer("p")
    assert found.request("tag", "m", None)[0] == b'"p-1"'
    return found


def answer(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@given(st.binary(max_size=200))
def test_garbage_raises_nothing_but_a_violation(data: bytes) -> None:
    found = peer()
    try:
        found.receive(data)
    except ProtocolViolation:
        assert len(found) == 1


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), JSON))
def test_odd_envelopes_raise_nothing_but_a_violation(message: dict[str, Any]) -> None:
    try:
        found = peer().receive(json.dumps({"jsonrpc": "2.0"} | message).encode())
    except ProtocolViolation:
        return
    assert found is None or isinstance(found, Answered | Refused | Malformed | Asked | Notified)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"jsonrpc":"1.0","id":1}',
        b'{"id":1}',
        b'{"jsonrpc":"2.0","method":1}',
        b'{"jsonrpc":"2.0","id":"\xff"}',
        b'{"jsonrpc":"2.0","params":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0"',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_json_rpc_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        jsonrpc.decode(data)


@pytest.mark.parametrize(
    "id_", [b"1", b"1.0", b"true", b"null", b'"1"', b'"P-1"', b'"p-2"', b'["p-1"]', b'{"a":1}', b'" p-1"']
)
def test_an_answer_with_another_id_is_a_stray(id_: bytes) -> None:
    found = peer()
    assert found.receive(b'{"jsonrpc":"2.0","result":{},"id":' + id_ + b"}") is None
    assert (found.strays, len(found)) == (1, 1)


@pytest.mark.parametrize("id_", [b'"p-1"', b' "p-1" ', b'"\\u0070-1"', b'"p\\u002d1"'])
def test_the_same_id_in_another_spelling_is_the_same_id(id_: bytes) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","result":{},"id":' + id_ + b"}")
    assert isinstance(found, Answered)
    assert found.tag == "tag"


def test_the_first_answer_wins() -> None:
    found = peer()
    message = answer(id="p-1", result={"a": 1})
    assert isinstance(found.receive(message), Answered)
    assert found.receive(message) is None
    assert found.strays == 1


@given(JSON)
def test_a_result_passes_untouched(value: Any) -> None:
    body = json.dumps({"v": value}).encode()
    found = peer().receive(b'{"jsonrpc":"2.0","id":"p-1","result":' + body + b"}")
    assert isinstance(found, Answered)
    assert bytes(found.result) == body


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"result": None},
        {"result": 1},
        {"result": []},
        {"result": "text"},
        {"error": None},
        {"result": {}, "error": {"code": 1, "message": "m"}},
    ],
)
def test_an_answer_that_is_none_is_malformed(members: dict[str, Any]) -> None:
    assert isinstance(peer().receive(answer(id="p-1", **members)), Malformed)


def test_a_null_beside_the_answer_counts_as_absent() -> None:
    assert isinstance(peer().receive(answer(id="p-1", result={}, error=None)), Answered)
    assert isinstance(peer().receive(answer(id="p-1", result=None, error={"code": 1, "message": "m"})), Refused)


def test_an_error_keeps_its_code_message_and_data() -> None:
    found = peer().receive(answer(id="p-1", error={"code": -32022, "message": "m", "data": {"supported": ["x"]}}))
    assert isinstance(found, Refused)
    assert (found.error.code, found.error.message) == (-32022, "m")
    assert json.loads(bytes(found.error.data)) == {"supported": ["x"]}


@pytest.mark.parametrize(
    "error", [{}, {"code": "x", "message": "m"}, {"code": 1}, [], "text", 7, {"code": 1.5, "message": "m"}]
)
def test_a_malformed_error_says_so(error: Any) -> None:
    found = peer().receive(answer(id="p-1", error=error))
    assert isinstance(found, Refused)
    assert found.error.code == jsonrpc.INTERNAL_ERROR


@pytest.mark.parametrize("id_", ["1", "0", "-7", '"x"', "1.5"])
def test_a_request_of_the_server_keeps_the_text_of_its_id(id_: str) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","method":"ping","id":' + id_.encode() + b"}")
    assert found == Asked(id_.encode(), "ping", jsonrpc.NO_RAW)


@pytest.mark.parametrize("id_", ["null", "true", "[]", '{"a":1}'])
def test_a_request_that_cannot_be_answered_is_a_stray(id_: str) -> None:
    found = peer()
    assert found.receive(b'{"jsonrpc":"2.0","method":"ping","id":' + id_.encode() + b"}") is None
    assert found.strays == 1


def test_a_notification_has_no_id() -> None:
    found = peer().receive(answer(method="notifications/message", params={"a": 1}))
    assert isinstance(found, Notified)
    assert json.loads(bytes(found.params)) == {"a": 1}


def test_a_forgotten_request_has_strays_for_answers() -> None:
    found = peer()
    assert found.forget(b'"p-1"')
    assert not found.forget(b'"p-1"')
    assert found.receive(answer(id="p-1", result={})) is None


def test_closing_gives_the_tags_of_what_is_pending() -> None:
    found = peer()
    found.request("other", "m", b"{}")
    assert found.closed() == ["tag", "other"]
    assert found.closed() == []


@given(st.text(), JSON, st.text(), st.integers())
def test_what_is_written_can_be_read(method: str, value: Any, message: str, code: int) -> None:
    body = json.dumps({"v": value}).encode()
    made = jsonrpc.decode(jsonrpc.request(b'"i"', method, body))
    assert (made.method, bytes(made.params), made.is_request) == (method, body, True)
    assert jsonrpc.decode(jsonrpc.notification(method)).is_notification
    assert bytes(jsonrpc.decode(jsonrpc.success(b"7", body)).result) == body
    error = jsonrpc.decode_error(jsonrpc.decode(jsonrpc.failure(b"null", code, message, {"d": value})).error)
    assert (error.code, error.message, json.loads(bytes(error.data))) == (code, message, {"d": value})
