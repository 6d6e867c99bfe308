"""What one message of a client is: in the reader, and through both doors that have it."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.codes import REMOVED
from actors.errors import CallTooLarge
from actors.protocol.agreement.versions import BATCH_VERSION, LATEST_LEGACY
from supervisor.front.messages import (
    MAX_BATCH,
    MAX_NAME_BYTES,
    Batch,
    Invalid,
    InvalidNotification,
    InvalidRequest,
    Message,
    ModernRequest,
    Notification,
    Request,
    Response,
    key_of,
    read,
)
from supervisor.service.client import Client
from tests.fakes.doors import Everything, HttpDoor, websocket_door
from tests.fakes.http_client import META, MODERN, legacy, modern

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
BAD_ID = '"id" must be a string or an integer of at most 512 bytes'
NOT_JSON = "the message is not JSON"
NO_MESSAGE = "not a JSON-RPC 2.0 message"
NO_METHOD = "neither a request nor a notification nor a response"
BAD_COUNT = "a batch must have 1 to 50 messages"
NO_BATCHES = "this revision of the protocol has no batches"
UNSUPPORTED = "unsupported protocol version"


def raw(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def spelled(id_: bytes, rest: bytes = b'"method":"ping"') -> bytes:
    """A message whose id is this text."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b"," + rest + b"}"


def batch(*messages: bytes) -> bytes:
    return b"[" + b",".join(messages) + b"]"


def tell(method: str = "notifications/cancelled", **meta: Any) -> bytes:
    """A notification with metadata."""
    return modern(method, {"requestId": "nobody's"}, id_=None, **meta)


def with_meta(**meta: Any) -> bytes:
    """A request whose metadata has null where `modern` leaves out."""
    members = {"protocolVersion": MODERN, "clientCapabilities": {}, **meta}
    return raw(id=7, method="x", params={"_meta": {META + name: value for name, value in members.items()}})


# One row is a message, and the id, code and words that it is refused with.
REFUSED: dict[str, tuple[bytes, Any, int, str]] = {
    # No JSON, and no message.
    "nothing": (b"", None, -32700, NOT_JSON),
    "blanks": (b" \t\r\n", None, -32700, NOT_JSON),
    "words": (b"nonsense", None, -32700, NOT_JSON),
    "half an object": (b'{"jsonrpc":"2.0","id":1,', None, -32700, NOT_JSON),
    "half an array": (b"[1,", None, -32700, NOT_JSON),
    "an array and more": (batch(PING) + b"x", None, -32700, NOT_JSON),
    "a large object that is no UTF-8": (spelled(b'"' + b"x" * 500_000 + b'\xff"'), None, -32700, NOT_JSON),
    "no number": (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', None, -32700, NOT_JSON),
    "a mark of byte order": (b"\xef\xbb\xbf{}", None, -32700, NOT_JSON),
    "another encoding": ('{"jsonrpc":"2.0"}'.encode("utf-16"), None, -32700, NOT_JSON),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700, NOT_JSON),
    "an array that is no UTF-8": (b'["\xff"]', None, -32700, NOT_JSON),
    "a large array that is no UTF-8": (b'["' + b"x" * 400_000 + b'\xff"]', None, -32700, NOT_JSON),
    "a hundred thousand brackets": (b"[" * 100_000, None, -32700, NOT_JSON),
    "a number": (b"7", None, -32600, NO_MESSAGE),
    "a text": (b'"x"', None, -32600, NO_MESSAGE),
    "null": (b"null", None, -32600, NO_MESSAGE),
    "an empty object": (b"{}", None, -32600, NO_MESSAGE),
    "another version of JSON-RPC": (b'{"jsonrpc":"1.0","id":1,"method":"x"}', None, -32600, NO_MESSAGE),
    "no version of JSON-RPC": (b'{"id":1,"method":"x"}', None, -32600, NO_MESSAGE),
    "a method that is a number": (raw(id=1, method=7), None, -32600, NO_MESSAGE),
    "no method": (raw(id=1), None, -32600, NO_METHOD),
    "a method that is null": (raw(id=1, method=None), None, -32600, NO_METHOD),
    "a method in capitals": (raw(id=1, Method="x"), None, -32600, NO_METHOD),
    # Ids, of requests of both eras and of responses.
    "an id that is null": (spelled(b"null"), None, -32600, BAD_ID),
    "an id that is true": (spelled(b"true"), None, -32600, BAD_ID),
    "an id with a point": (spelled(b"1.0"), None, -32600, BAD_ID),
    "an id that is an array": (spelled(b"[1]"), None, -32600, BAD_ID),
    "an id that is an object": (spelled(b"{}"), None, -32600, BAD_ID),
    "an id of 513 bytes": (spelled(b'"' + b"i" * 511 + b'"'), None, -32600, BAD_ID),
    "a number of 5000 digits": (spelled(b"9" * 5000), None, -32600, BAD_ID),
    "a modern id that is true": (modern("x", id_=True), None, -32600, BAD_ID),
    "a modern id of 513 bytes": (modern("x", id_="i" * 511), None, -32600, BAD_ID),
    "a response to null": (spelled(b"null", b'"result":{}'), None, -32600, BAD_ID),
    "a response to true": (spelled(b"true", b'"result":{}'), None, -32600, BAD_ID),
    "a response to a point": (spelled(b"1.5", b'"result":{}'), None, -32600, BAD_ID),
    "a response to nothing": (b'{"jsonrpc":"2.0","result":{}}', None, -32600, BAD_ID),
    "a response to 513 bytes": (spelled(b'"' + b"i" * 511 + b'"', b'"result":{}'), None, -32600, BAD_ID),
    "an error to null": (spelled(b"null", b'"error":{"code":1,"message":""}'), None, -32600, BAD_ID),
    "an error that is null": (raw(id=1, error=None), None, -32600, NO_METHOD),
    "a response with metadata": (
        raw(id=1, result={}, params={"_meta": {META + "protocolVersion": MODERN}}),
        None,
        -32600,
        "neither a request nor a notification",
    ),
    # Parameters.
    "parameters by position": (raw(id="p", method="x", params=[1]), "p", -32602, '"params" must be an object'),
    "parameters that are a text": (raw(id=3, method="x", params="x"), 3, -32602, '"params" must be an object'),
    "parameters that are true": (raw(id=3, method="x", params=True), 3, -32602, '"params" must be an object'),
    # Metadata.
    "no capabilities": (
        modern("x", clientCapabilities=None),
        1,
        -32602,
        f'_meta: "{META}clientCapabilities" is missing',
    ),
    "capabilities that are a list": (
        modern("x", clientCapabilities=[]),
        1,
        -32602,
        f'_meta: "{META}clientCapabilities" must be an object',
    ),
    "capabilities that are null": (
        with_meta(clientCapabilities=None),
        7,
        -32602,
        f'_meta: "{META}clientCapabilities" must be an object',
    ),
    "a version that is a number": (
        modern("x", protocolVersion=3, id_="v"),
        "v",
        -32602,
        f'_meta: "{META}protocolVersion" must be a string',
    ),
    "a version that is null": (
        with_meta(protocolVersion=None),
        7,
        -32602,
        f'_meta: "{META}protocolVersion" must be a string',
    ),
    "a level that there is not": (modern("x", logLevel="loud"), 1, -32602, f'_meta: "{META}logLevel" is not a level'),
    "a level that is a number": (modern("x", logLevel=7), 1, -32602, f'_meta: "{META}logLevel" is not a level'),
    "a level that is null": (with_meta(logLevel=None), 7, -32602, f'_meta: "{META}logLevel" is not a level'),
    "a level before a version": (
        modern("x", logLevel="loud", protocolVersion="v9"),
        1,
        -32602,
        f'_meta: "{META}logLevel" is not a level',
    ),
    "a version that is over": (modern("x", protocolVersion="2025-11-25"), 1, -32022, UNSUPPORTED),
    "a version to come": (modern("x", protocolVersion="2027-01-01", id_="i"), "i", -32022, UNSUPPORTED),
    "a name and a version to come": (
        modern("tools/call", {"name": "t"}, protocolVersion="2027-01-01"),
        1,
        -32022,
        UNSUPPORTED,
    ),
    # Arrays.
    "an empty array": (b"[]", None, -32600, BAD_COUNT),
    "an array of 51": (batch(*[PING] * 51), None, -32600, BAD_COUNT),
    "an array with a modern request": (batch(PING, modern("x")), None, -32600, NO_BATCHES),
    "an array with a modern notification": (batch(PING, tell()), None, -32600, NO_BATCHES),
    "an array with metadata and a wrong id": (batch(modern("x", id_=True)), None, -32600, NO_BATCHES),
    "an array of too many numbers": (b"[" + b"1," * 400_000 + b"1]", None, -31413, "the message has too many values"),
    "too many lists": (
        raw(id="seven", method="tools/call", params={"arguments": [[]] * 400_000}),
        "seven",
        -31413,
        "the message has too many values",
    ),
}
# Refused, and told so where there is a status: a notification is never answered.
REFUSED_NOTIFICATIONS: dict[str, bytes] = {
    "a notification of a version that is over": tell(protocolVersion="2025-11-25"),
    "a notification of a version to come": tell(protocolVersion="2027-01-01"),
    "a notification of a version that is a number": tell(protocolVersion=3),
}
TAKEN: dict[str, tuple[bytes, Message]] = {
    "a request": (
        raw(id="a", method="tools/list", params={"cursor": ""}),
        Request(id=b'"a"', key="a", method="tools/list", params=msgspec.Raw(b'{"cursor": ""}')),
    ),
    "a request without parameters": (raw(id=0, method="x"), Request(id=b"0", key=0, method="x")),
    "a large request": (
        raw(id=0, method="x", params={"text": ",[{" * 500_000}),
        Request(id=b"0", key=0, method="x", params=msgspec.Raw(b'{"text": "%b"}' % (b",[{" * 500_000))),
    ),
    "a number below zero": (spelled(b"-1"), Request(id=b"-1", key=-1, method="ping")),
    "a number of more than 64 bits": (spelled(b"%d" % 2**70), Request(id=b"%d" % 2**70, key=2**70, method="ping")),
    "parameters that are null": (raw(id=0, method="x", params=None), Request(id=b"0", key=0, method="x")),
    "a request behind blanks": (b" \r\n\t" + PING, Request(id=b"1", key=1, method="ping")),
    "an id of 512 bytes": (
        spelled(b'"' + b"i" * 510 + b'"'),
        Request(id=b'"' + b"i" * 510 + b'"', key="i" * 510, method="ping"),
    ),
    "an id with escapes": (spelled(b'"\\u0061"'), Request(id=b'"\\u0061"', key="a", method="ping")),
    "half a surrogate pair": (
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud83d"}}',
        Request(id=b"1", key=1, method="x", params=msgspec.Raw(b'{"a":"\\ufffd"}')),
    ),
    "metadata of another kind": (
        raw(id=1, method="x", params={"_meta": {"progressToken": 1}}),
        Request(id=b"1", key=1, method="x", params=msgspec.Raw(b'{"_meta": {"progressToken": 1}}')),
    ),
    "a notification": (raw(method="notifications/x"), Notification(method="notifications/x")),
    "a notification by position": (
        raw(method="notifications/cancelled", params=[1]),
        Notification(method="notifications/cancelled", params=msgspec.Raw(b"[1]")),
    ),
    "a response": (raw(id=1, result={"a": [1]}), Response(key=1, result=msgspec.Raw(b'{"a": [1]}'))),
    "a response that failed": (
        raw(id="a", error={"code": 1, "message": "x"}),
        Response(key="a", error=msgspec.Raw(b'{"code": 1, "message": "x"}')),
    ),
    "a response beside no error": (raw(id=1, result={}, error=None), Response(key=1, result=msgspec.Raw(b"{}"))),
    "no response beside an error": (raw(id=1, result=None, error={}), Response(key=1, error=msgspec.Raw(b"{}"))),
    "a response beside an error": (raw(id=1, result={}, error={}), Response(key=1, error=msgspec.Raw(b"{}"))),
    "a response that is null": (raw(id=1, result=None), Response(key=1, result=msgspec.Raw(b"null"))),
}


async def http_answer(message: bytes, version: str = LATEST_LEGACY) -> tuple[Any, list[tuple[Client, str, bytes]]]:
    """The JSON that HTTP answers, and what the service was asked; the headers say what the message says."""
    door = HttpDoor()
    await door.open(version)
    found = read(message)
    headers = {}
    if isinstance(found, ModernRequest | InvalidRequest) and found.version is not None:
        headers = {"mcp_protocol_version": wrapped(found.version), "mcp_method": wrapped(found.method)}
        if found.named is not None:
            headers["mcp_name"] = wrapped(found.named)
    answer = await door.post(message, **headers)
    assert isinstance(found, Batch) or answer.status == status_of(found)
    assert (answer.status == 202) == (answer.body == b"")
    return (answer.json if answer.body else None), door.service.asked


def status_of(found: Message) -> int:
    """The status of the answer to a message: for a legacy request an error is one inside of 200."""
    if isinstance(found, InvalidRequest) and found.era == "legacy":
        return 200
    if isinstance(found, Invalid):
        return 413 if found.code == CallTooLarge.code else 400
    if isinstance(found, ModernRequest):
        return 404 if found.method in REMOVED else 200
    return 202 if isinstance(found, Notification | Response) else 200


async def websocket_answer(message: bytes, version: str = LATEST_LEGACY) -> tuple[Any, list[tuple[Client, str, bytes]]]:
    """The JSON that a WebSocket answers, and what the service was asked."""
    service = Everything()
    async with websocket_door(service, version) as door:
        answers = await door.give(message)
    assert len(answers) <= 1
    return (answers[0] if answers else None), service.asked


def wrapped(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def is_text(message: bytes) -> bool:
    """No other bytes reach the reader by WebSocket: frames of text that are no UTF-8 end the connection."""
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.case("C03")
@pytest.mark.parametrize("row", REFUSED)
async def test_a_refused_message_is_refused_the_same_by_the_reader_and_through_both_doors(row: str) -> None:
    message, id_, code, words = REFUSED[row]
    found = read(message)
    assert isinstance(found, Invalid)
    assert (msgspec.json.decode(found.id), found.code, found.message[: len(words)]) == (id_, code, words)
    told = json.loads(found.answer())
    assert told["error"]["message"] == found.message
    assert await http_answer(message) == (told, [])
    if is_text(message):
        assert await websocket_answer(message) == (told, [])


@pytest.mark.parametrize("row", REFUSED_NOTIFICATIONS)
async def test_a_refused_notification_is_told_so_by_a_status_only(row: str) -> None:
    message = REFUSED_NOTIFICATIONS[row]
    found = read(message)
    assert isinstance(found, InvalidNotification)
    assert (found.id, found.code, found.message) == (b"null", -32022, UNSUPPORTED)
    assert await http_answer(message) == (json.loads(found.answer()), [])
    assert await websocket_answer(message) == (None, [])


@pytest.mark.parametrize("row", TAKEN)
async def test_a_message_is_taken_for_the_same_by_the_reader_and_through_both_doors(row: str) -> None:
    message, meant = TAKEN[row]
    assert read(message) == meant
    answer, asked = await http_answer(message)
    assert await websocket_answer(message) == (answer, asked)
    if isinstance(meant, Request):
        assert (answer["id"], "result" in answer) == (meant.key, True)
    else:
        assert (answer, asked) == (None, [])
    performed = isinstance(meant, Request) and meant.method != "ping"
    assert [(method, params) for _, method, params in asked] == (
        [(meant.method, bytes(meant.params))] if performed and isinstance(meant, Request) else []
    )


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "x"])
async def test_a_modern_request_is_the_same_through_both_doors_and_tells_of_its_client(method: str) -> None:
    info = {"name": "inspector", "version": "2"}
    named = {"name": "t\u00e9"} if method == "tools/call" else {}
    message = modern(
        method, named, id_="a", clientInfo=info, clientCapabilities={"roots": {"x": 1}}, logLevel="warning"
    )
    found = read(message)
    assert isinstance(found, ModernRequest)
    assert (found.id, found.key, found.method, found.version, found.name) == (b'"a"', "a", method, MODERN, "inspector")
    assert (bytes(found.capabilities), found.log_level, found.named) == (
        b'{"roots":{"x":1}}',
        "warning",
        named.get("name"),
    )
    answer, asked = await http_answer(message)
    assert await websocket_answer(message) == (answer, asked)
    (client, performed, params) = asked[0]
    assert (client.era, client.version, client.name, client.capabilities) == (
        "modern",
        MODERN,
        "inspector",
        found.capabilities,
    )
    assert (performed, params) == (method, bytes(found.params))


@pytest.mark.parametrize("method", sorted(REMOVED))
async def test_methods_that_were_removed_do_not_exist_for_a_modern_request_at_either_door(method: str) -> None:
    message = modern(method, id_=7)
    answer, asked = await http_answer(message)
    assert (answer["id"], answer["error"]["code"]) == (7, -32601)
    assert asked == []
    assert await websocket_answer(message) == (answer, [])


def test_a_notification_with_metadata_is_modern() -> None:
    found = read(tell())
    assert isinstance(found, Notification)
    assert (found.method, found.era) == ("notifications/cancelled", "modern")


async def test_a_modern_notification_asks_nothing_at_either_door() -> None:
    assert await http_answer(tell()) == (None, [])
    assert await websocket_answer(tell()) == (None, [])


def test_an_unsupported_version_is_answered_with_the_supported_ones() -> None:
    found = read(modern("x", protocolVersion="2027-01-01" * 100))
    assert isinstance(found, Invalid)
    assert found.data == {"supported": [MODERN], "requested": "2027-01-01" * 20}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("n" * MAX_NAME_BYTES, "n" * MAX_NAME_BYTES),
        ("n" * 200, "n" * MAX_NAME_BYTES),
        ("\U0001f600" * 100, "\U0001f600" * 32),
        ('"' * 100, '"' * 64),
    ],
)
async def test_what_a_client_calls_itself_has_one_bound_in_both_eras_and_at_both_doors(name: str, kept: str) -> None:
    info = {"name": name, "version": "1"}
    asked = modern("x", clientInfo=info)
    doors = (http_answer, websocket_answer)
    names = {client.name for door in doors for client, _, _ in (await door(asked))[1]}
    opening = legacy("initialize", {"protocolVersion": LATEST_LEGACY, "clientInfo": info})
    door = HttpDoor()
    token = (await door.post(opening)).headers["mcp-session-id"]
    await door.post(legacy("x"), mcp_session_id=token)
    names |= {client.name for client, _, _ in door.service.asked}
    names.add(await websocket_name(opening))
    assert names == {kept}


async def websocket_name(opening: bytes) -> str:
    """What the service learns of a client that opened its session with this."""
    service = Everything()
    async with websocket_door(service, None) as door:
        await door.give(opening)
        await door.give(legacy("x"))
    return service.asked[0][0].name


def test_client_info_of_another_shape_is_no_reason_to_refuse() -> None:
    found = read(modern("x", clientInfo=7))
    assert isinstance(found, ModernRequest)
    assert found.name == ""


# Arrays ---------------------------------------------------------------------------------------------------------------

ARRAY = batch(
    b'{"jsonrpc":"2.0","id":"\\u0061","method":"x","params":{}}',
    PING,
    raw(method="notifications/initialized"),
    raw(id=9, result={}),
    b"3",
    raw(id=2, method="initialize", params={"protocolVersion": BATCH_VERSION}),
    raw(id=4, method="x", params=[]),
    spelled(b"null", b'"result":{}'),
)


def test_an_array_is_read_message_by_message() -> None:
    found = read(ARRAY)
    assert isinstance(found, Batch)
    kinds = [Request, Request, Notification, Response, Invalid, Invalid, InvalidRequest, Invalid]
    assert [type(part) for part in found.messages] == kinds


async def test_an_array_is_answered_the_same_at_both_doors_of_the_revision_that_has_them() -> None:
    answer, asked = await http_answer(ARRAY, BATCH_VERSION)
    codes = [(one["id"], one.get("error", {}).get("code")) for one in answer]
    assert codes == [("a", None), (1, None), (None, -32600), (2, -32600), (4, -32602), (None, -32600)]
    assert await websocket_answer(ARRAY, BATCH_VERSION) == (answer, asked)


async def test_an_array_is_refused_the_same_at_both_doors_of_every_other_revision() -> None:
    answer, asked = await http_answer(ARRAY)
    assert (answer["id"], answer["error"]) == (None, {"code": -32600, "message": NO_BATCHES})
    assert asked == []
    assert await websocket_answer(ARRAY) == (answer, [])


@pytest.mark.case("C16")
def test_an_array_may_hold_50_messages() -> None:
    found = read(batch(*[PING] * MAX_BATCH))
    assert isinstance(found, Batch)
    assert len(found.messages) == MAX_BATCH


# Ids ------------------------------------------------------------------------------------------------------------------


def test_ids_are_compared_by_type_and_value() -> None:
    assert key_of(b"1") == 1
    assert key_of(b'"1"') == "1"
    assert key_of(b'"\\u0061"') == key_of(b'"a"')
    assert [key_of(raw) for raw in (b"1.0", b"true", b"null", b"{}", b"")] == [None] * 5


# Anything -------------------------------------------------------------------------------------------------------------

TEXT = st.text("ab\u00e9\U0001f600", max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        META + "protocolVersion": st.sampled_from([MODERN, "2025-11-25"]) | JSON,
        META + "clientCapabilities": st.just({}) | JSON,
        META + "clientInfo": st.just({"name": "c"}) | JSON,
        META + "logLevel": st.just("debug") | JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={
        "id": st.integers(0, 9) | TEXT | JSON,
        # `initialize` and `subscriptions/listen` are what makes a session, or a stream, at one door and not the other.
        "method": st.sampled_from(["ping", "tools/call", "notifications/cancelled", "logging/setLevel"]) | JSON,
        "params": st.fixed_dictionaries({"_meta": METADATA | JSON}, optional={"name": TEXT | JSON}) | JSON,
        "result": JSON,
        "error": JSON,
    },
)
BYTES = st.binary(max_size=40) | (MESSAGES | st.lists(MESSAGES | JSON, max_size=4)).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode()
)


@given(BYTES)
def test_any_bytes_are_read_as_one_kind_and_nothing_raises(message: bytes) -> None:
    found = read(message)
    for one in found.messages if isinstance(found, Batch) else [found]:
        if isinstance(one, Invalid):
            assert json.loads(one.answer())["error"]["code"] < 0


@given(BYTES.filter(is_text), st.sampled_from([LATEST_LEGACY, BATCH_VERSION]))
def test_any_text_is_answered_the_same_at_both_doors(message: bytes, version: str) -> None:
    async def compare() -> None:
        http, websocket = await http_answer(message, version), await websocket_answer(message, version)
        if isinstance(read(message), InvalidNotification):
            assert (http[0]["error"]["code"], websocket) == (-32022, (None, []))
        else:
            assert http == websocket

    trio.run(compare)
