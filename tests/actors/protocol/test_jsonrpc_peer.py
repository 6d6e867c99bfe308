"""JSON-RPC envelopes, and the pending table over them."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ProtocolViolation
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.peer import MAX_LEFT, Answered, Asked, Malformed, Notified, Peer, Refused

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
    asking: Peer[str] = Peer(count(1))
    assert asking.request("tag", "m", None)[0] == b"1"
    return asking


def answer(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def answered_without_id(text: str, **more: bool) -> Any:
    peer = Peer[str](count(1))
    peer.request("one", "m", None)
    return peer.receive(b'{"jsonrpc":"2.0",' + text.encode() + b"}", **more), peer.strays, len(peer._pending)


ERROR = '"error":{"code":-32600,"message":"no"}'


@pytest.mark.parametrize("id_", ["", '"id":null,'])
def test_an_answer_without_an_id_is_to_the_request_that_was_alone(id_: str) -> None:
    refused = Refused("one", jsonrpc.ErrorObject(-32600, "no"))
    assert answered_without_id(f"{id_}{ERROR}", alone=True) == (refused, 0, 0)
    assert answered_without_id(f"{id_}{ERROR}") == (None, 1, 1)
    malformed, strays, pending = answered_without_id(f'{id_}"result":{{}}', alone=True)
    assert (malformed, strays, pending) == (Malformed("one", "an id that is not the one of the request"), 0, 0)


@pytest.mark.parametrize("id_", ["7", '"server-error"', "true"])
def test_an_answer_to_another_id_is_a_stray_although_the_request_was_alone(id_: str) -> None:
    assert answered_without_id(f'"id":{id_},{ERROR}', alone=True) == (None, 1, 1)


def test_an_answer_without_an_id_is_a_stray_where_nothing_waits() -> None:
    peer = Peer[str](count(1))
    assert peer.receive(b'{"jsonrpc":"2.0","id":null,' + ERROR.encode() + b"}", alone=True) is None
    assert peer.strays == 1


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


@pytest.mark.case("S21")
@pytest.mark.parametrize(
    "id_",
    [b"0", b"1.5", b"-1", b"true", b"null", b'"one"', b'"01"', b"11", b"2", b"[1]", b'{"a":1}', b'" 1"'],
)
def test_an_answer_with_another_id_is_a_stray(id_: bytes) -> None:
    asking = peer()
    assert asking.receive(b'{"jsonrpc":"2.0","result":{},"id":' + id_ + b"}") is None
    assert (asking.strays, len(asking._pending)) == (1, 1)


@pytest.mark.parametrize("id_", [b"1", b" 1 ", b"1.0", b"1e0", b'"1"', b'"\\u0031"'])
def test_the_same_id_in_another_spelling_is_the_same_id(id_: bytes) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","result":{},"id":' + id_ + b"}")
    assert isinstance(found, Answered)
    assert found.tag == "tag"


@pytest.mark.case("S24")
def test_the_first_answer_wins() -> None:
    asking = peer()
    message = answer(id=1, result={"a": 1})
    assert isinstance(asking.receive(message), Answered)
    assert asking.receive(message) is None
    assert asking.strays == 1


@given(JSON)
def test_a_result_passes_untouched(value: Any) -> None:
    body = json.dumps({"v": value}).encode()
    found = peer().receive(b'{"jsonrpc":"2.0","id":1,"result":' + body + b"}")
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
    assert isinstance(peer().receive(answer(id=1, **members)), Malformed)


def test_a_null_beside_the_answer_counts_as_absent() -> None:
    assert isinstance(peer().receive(answer(id=1, result={}, error=None)), Answered)
    assert isinstance(peer().receive(answer(id=1, result=None, error={"code": 1, "message": "m"})), Refused)


def test_an_error_keeps_its_code_message_and_data() -> None:
    found = peer().receive(answer(id=1, error={"code": -32022, "message": "m", "data": {"supported": ["x"]}}))
    assert isinstance(found, Refused)
    assert (found.error.code, found.error.message) == (-32022, "m")
    assert json.loads(bytes(found.error.data)) == {"supported": ["x"]}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({}, ""),
        ({"code": "E_FAIL", "message": "no such repo"}, ": E_FAIL no such repo"),
        ({"code": 1}, ""),
        ({"message": "m"}, ": m"),
        ({"code": 1, "message": 12}, ""),
        ([], ""),
        ("text", ": text"),
        (7, ""),
        ({"code": 1.5, "message": "m"}, ": m"),
        ({"code": 1, "message": ["m"]}, ""),
    ],
)
def test_a_malformed_error_is_no_answer_but_what_it_says_is_told(error: Any, said: str) -> None:
    found = peer().receive(answer(id=1, error=error))
    assert found == Malformed("tag", f"an error without a proper code or message{said}")


@pytest.mark.parametrize("code", [b"9" * 5000, b"-" + b"9" * 30, b"9007199254740992"])
def test_an_error_whose_code_no_client_could_read_is_no_answer(code: bytes) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","id":1,"error":{"code":' + code + b',"message":"m"}}')
    assert isinstance(found, Malformed)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', "invalid character"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "not UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", "nested too deeply"),
        (b'{"jsonrpc":"1.0","id":1,"result":{}}', '"jsonrpc" is not "2.0"'),
        (b'{"jsonrpc":2.0,"id":1,"result":{}}', '"jsonrpc" is not "2.0"'),
        (b'{"id":1,"result":{}}', '"jsonrpc" is not "2.0"'),
        (b'{"jsonrpc":"2.0","id":1,"result":{}} {}', "trailing characters"),
        (b'{"jsonrpc":"2.0","id":1,"result":{', "truncated"),
    ],
)
def test_an_answer_that_cannot_be_decoded_settles_its_request_and_says_why(message: bytes, reason: str) -> None:
    asking = peer()
    event = asking.receive(message)
    assert isinstance(event, Malformed)
    assert reason in event.reason
    assert event.done
    assert len(asking._pending) == 0


@given(JSON, st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_no_text_but_the_outermost_id_of_an_answer_settles_a_request(value: Any, place: int, put: bytes) -> None:
    message = json.dumps({"jsonrpc": "2.0", "method": "m", "params": {"id": 1, "result": value}}).encode()
    place = min(place, len(message))
    asking = peer()
    with suppress(ProtocolViolation):
        event = asking.receive(message[:place] + put + message[place:])
        assert not isinstance(event, Answered | Refused | Malformed) or b"{" in put or b"}" in put or b'"' in put
    assert len(asking._pending) == 1 or set(b'{}"') & set(put)


@pytest.mark.case("S15")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\ud83d cut", "\ufffd cut"),
        (rb"\uDE00 low", "\ufffd low"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\\ud83d \\\\ud83d \ud83d\ude00", "\\\ufffd \\\\ud83d \U0001f600"),
    ],
)
def test_half_an_emoji_in_an_answer_is_read_as_a_replacement_character(text: bytes, read: str) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","id":1,"result":{"t":"' + text + b'"}}')
    assert isinstance(found, Answered)
    assert json.loads(bytes(found.result)) == {"t": read}
    bytes(found.result).decode()


@pytest.mark.parametrize(
    "text", [rb"\ud83d\x", rb"\ud83d" * 30_000, b"\\" * 1000 + rb"\ud83d", rb"\ud83d" + b"x" * (4 << 20)]
)
def test_what_cannot_be_mended_is_no_json(text: bytes) -> None:
    start = time.process_time()
    with pytest.raises(ProtocolViolation):
        jsonrpc.decode(b'{"jsonrpc":"2.0","result":{"t":"' + text + b'"}}')
    assert time.process_time() - start < 1.0


def test_a_batch_is_bounded_in_messages() -> None:
    assert jsonrpc.members(b' [{"a":1}, 2 ,"x"] ') == [b'{"a":1}', b"2", b'"x"']
    assert jsonrpc.members(b"[]") == []
    assert len(jsonrpc.members(b"[" + b",".join([b"1"] * jsonrpc.MAX_BATCH) + b"]")) == jsonrpc.MAX_BATCH
    for broken in (b"[" + b"1," * jsonrpc.MAX_BATCH + b"1]", b"[1", b"[INFO] ready", b"[" * 100_000):
        with pytest.raises(ProtocolViolation):
            jsonrpc.members(broken)


@pytest.mark.parametrize("id_", ["1", "0", "-7", '"x"', "1.5"])
def test_a_request_of_the_server_keeps_the_text_of_its_id(id_: str) -> None:
    found = peer().receive(b'{"jsonrpc":"2.0","method":"ping","id":' + id_.encode() + b"}")
    assert found == Asked(id_.encode(), "ping", jsonrpc.NO_RAW)


@pytest.mark.parametrize("id_", ["null", "true", "[]", '{"a":1}'])
def test_a_request_that_cannot_be_answered_is_a_stray(id_: str) -> None:
    asking = peer()
    assert asking.receive(b'{"jsonrpc":"2.0","method":"ping","id":' + id_.encode() + b"}") is None
    assert asking.strays == 1


def test_a_notification_has_no_id() -> None:
    found = peer().receive(answer(method="notifications/message", params={"a": 1}))
    assert isinstance(found, Notified)
    assert json.loads(bytes(found.params)) == {"a": 1}


def test_a_forgotten_request_has_strays_for_answers() -> None:
    asking = peer()
    assert asking.settle(b"1") is not None
    assert asking.settle(b"1") is None
    assert asking.receive(answer(id=1, result={})) is None


@given(st.text(), JSON, st.text(), st.integers(-jsonrpc.MAX_CODE, jsonrpc.MAX_CODE))
def test_what_is_written_can_be_read(method: str, value: Any, message: str, code: int) -> None:
    body = json.dumps({"v": value}).encode()
    made = jsonrpc.decode(jsonrpc.request(b'"i"', method, body))
    assert (made.method, bytes(made.params), made.is_request) == (method, body, True)
    told = jsonrpc.decode(jsonrpc.notification(method))
    assert (told.method, told.is_request) == (method, False)
    assert bytes(jsonrpc.decode(jsonrpc.success(b"7", body)).result) == body
    error = jsonrpc.decode_error(jsonrpc.decode(jsonrpc.failure(b"null", code, message, {"d": value})).error)
    assert (error.code, error.message, json.loads(bytes(error.data))) == (code, message, {"d": value})


def test_the_late_answer_of_a_request_that_was_left_says_whose_it_is_and_is_a_stray() -> None:
    asking: Peer[int] = Peer(count(1))
    ids = [asking.expect(number) for number in range(MAX_LEFT + 1)]
    for id_ in ids:
        asking.leave(id_)
    asking.leave(b"0")
    assert len(asking._pending) == 0
    late = [asking.receive(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id_) for id_ in (ids[0], ids[1], ids[1])]
    assert [getattr(answer, "tag", None) for answer in late] == [None, 1, None]
    assert asking.strays == 3
    with pytest.raises(ProtocolViolation):
        asking.receive(b'{"jsonrpc":"2.0","id":%b,"result":{}' % ids[0])
    spoiled = asking.receive(b'{"jsonrpc":"2.0","id":%b,"result":{}' % ids[2])
    assert isinstance(spoiled, Malformed)
