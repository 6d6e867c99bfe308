"""The era of a POST and the ladder of checks, row by row: what is answered, and with which status."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.edge.fields import fields_of
from supervisor.front.http.heads import Head, HttpRefusal, is_modern, refusal, refusal_of_message, scan
from supervisor.front.messages import MAX_BATCH, Batch, Message, ModernRequest, Notification, Request, Response, read

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
LEGACY_REQUEST = b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'


def enveloped(method: str = "tools/list", *, id_: Any = 7, params: Any = None, **meta: Any) -> bytes:
    members = {"protocolVersion": MODERN, "clientCapabilities": {}, **meta}
    named = {META + key: value for key, value in members.items() if value is not ...}
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**(params or {}), "_meta": named}}
    return msgspec.json.encode({key: value for key, value in message.items() if value is not ...})


def head(version: str | None = MODERN, method: str | None = "tools/list", name: str | None = None) -> Head:
    lines = [(b"mcp-protocol-version", version), (b"mcp-method", method), (b"mcp-name", name)]
    return scan(fields_of((key, value.encode()) for key, value in lines if value is not None))


NO_HEADERS = scan(fields_of([]))


def classify(sent_head: Head, body: bytes) -> Message | HttpRefusal:
    """What a POST is, or the answer that it gets."""
    message = read(body)
    refused = refusal(sent_head, message)
    return message if refused is None else refusal_of_message(refused)


def error(verdict: object) -> tuple[int, Any, int]:
    """Status, echoed id and code of a refusal."""
    assert isinstance(verdict, HttpRefusal), verdict
    answer = msgspec.json.decode(verdict.body)
    return verdict.status, answer["id"], answer["error"]["code"]


@pytest.mark.case("C03")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700),
        (b"\xef\xbb\xbf{}", -32700),
        ('{"jsonrpc":"2.0"}'.encode("utf-16"), -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff"}}', -32700),
        (b"[" * 100_000, -32700),
        (b"{}", -32600),
        (b"7", -32600),
        (b'"x"', -32600),
        (b"null", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600),
        (b'{"id":1,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"Method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"x"}', -32600),
        (b"[" + b",".join([LEGACY_REQUEST] * (MAX_BATCH + 1)) + b"]", -32600),
        (b"[" + enveloped() + b"]", -32600),
        (b"[" + LEGACY_REQUEST + b"," + enveloped() + b"]", -32600),
    ],
)
def test_what_is_no_message_is_refused_without_an_id(body: bytes, code: int) -> None:
    assert error(classify(NO_HEADERS, body)) == (400, None, code)


@pytest.mark.parametrize("id_", [0, -1, 7, 2**70, "", "a", "1", "é"])
def test_a_request_keeps_its_id_as_bytes_and_as_value(id_: int | str) -> None:
    body = (
        msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": "x"})
        if not isinstance(id_, int)
        else (b'{"jsonrpc":"2.0","id":%d,"method":"x"}' % id_)
    )
    found = classify(NO_HEADERS, body)
    assert isinstance(found, Request)
    assert type(found.key) is type(id_)
    assert found.key == id_
    assert msgspec.json.decode(found.id) == id_


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', Request),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', Request),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}', Request),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"\\u0061":"io.modelcontextprotocol/"}}}',
            Request,
        ),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', Notification),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', Response),
        (b'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}', Response),
        (b" [ " + LEGACY_REQUEST + b"]", Batch),
    ],
)
def test_without_an_envelope_a_legacy_or_absent_version_header_means_legacy(
    version: str | None, body: bytes, kind: type
) -> None:
    assert type(classify(head(version, None), body)) is kind


@pytest.mark.parametrize(
    ("key", "spelled"),
    [("/", "\\/"), ("protocolVersion", "protocolVersio\\u006e"), ("io.", "\\u0069o."), ("_meta", "_m\\u0065ta")],
)
def test_an_envelope_is_found_however_its_keys_are_spelled(key: str, spelled: str) -> None:
    body = enveloped().replace(key.encode(), spelled.encode())
    assert isinstance(classify(head(), body), ModernRequest)


def test_a_modern_request_tells_of_its_client() -> None:
    body = enveloped(clientInfo={"name": "inspector", "version": "2"}, clientCapabilities={"roots": {"x": 1}}, id_="a")
    found = classify(head(), body)
    assert isinstance(found, ModernRequest)
    assert (found.version, found.name, bytes(found.capabilities)) == (MODERN, "inspector", b'{"roots":{"x":1}}')
    assert (found.id, found.method) == (b'"a"', "tools/list")


def test_client_info_of_another_shape_is_no_reason_to_refuse() -> None:
    found = classify(head(), enveloped(clientInfo=7))
    assert isinstance(found, ModernRequest)
    assert found.name == ""


@pytest.mark.case("C17")
@pytest.mark.parametrize(
    ("found", "body", "code"),
    [
        # c: the metadata
        (head(), enveloped(clientCapabilities=...), -32602),
        (head(), enveloped(clientCapabilities=[]), -32602),
        (head(), enveloped(clientCapabilities=None), -32602),
        (head(), enveloped(protocolVersion=7), -32602),
        (head(), enveloped(protocolVersion=None), -32602),
        (head(), enveloped(logLevel="loud"), -32602),
        (head(), enveloped(logLevel=7), -32602),
        # c before d
        (head("2025-11-25"), enveloped(clientCapabilities=...), -32602),
        # d: the version header
        (head(None), enveloped(), -32020),
        (head("2025-11-25"), enveloped(), -32020),
        (head("v999"), enveloped(), -32020),
        (head(MODERN), enveloped(protocolVersion="v999"), -32020),
        (head(MODERN), enveloped(protocolVersion="2025-11-25"), -32020),
        # e: the method header
        (head(method=None), enveloped(), -32020),
        (head(method="Tools/List"), enveloped(), -32020),
        (head(method="tools/call"), enveloped(), -32020),
        # f: the name header
        (head(method="tools/call"), enveloped("tools/call", params={"name": "a"}), -32020),
        (head(method="tools/call", name="b"), enveloped("tools/call", params={"name": "a"}), -32020),
        (head(method="tools/call", name="A"), enveloped("tools/call", params={"name": "a"}), -32020),
        (head(method="tools/call", name="a"), enveloped("tools/call"), -32020),
        (head(method="prompts/get", name="b"), enveloped("prompts/get", params={"name": "a"}), -32020),
        (head(method="resources/read", name="a"), enveloped("resources/read", params={"uri": "b"}), -32020),
        (head(method="tasks/get", name="a"), enveloped("tasks/get", params={"taskId": "b"}), -32020),
        (head(method="tools/call", name="=?base64?YQ?="), enveloped("tools/call", params={"name": "a"}), -32020),
        # d to f before g
        (head("v999", method="x"), enveloped(protocolVersion="v999"), -32020),
        # g: the version
        (head("v999"), enveloped(protocolVersion="v999"), -32022),
        (head("2025-11-25"), enveloped(protocolVersion="2025-11-25"), -32022),
        (head("1900-01-01"), enveloped(protocolVersion="1900-01-01"), -32022),
        # rule 5: the header says modern or nonsense, the body says nothing
        (head(), b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}', -32602),
        (head(), b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}', -32602),
        (head("1999-01-01"), LEGACY_REQUEST, -32602),
        (head("v999.0.0"), LEGACY_REQUEST, -32602),
        (head(""), LEGACY_REQUEST, -32602),
    ],
)
def test_the_ladder_refuses_with_the_requests_id(found: Head, body: bytes, code: int) -> None:
    assert error(classify(found, body)) == (400, 7, code)


@pytest.mark.case("C17")
def test_the_version_that_is_not_served_is_echoed_beside_those_that_are() -> None:
    refused = classify(head("v999"), enveloped(protocolVersion="v999"))
    assert isinstance(refused, HttpRefusal)
    assert msgspec.json.decode(refused.body)["error"]["data"] == {"supported": [MODERN], "requested": "v999"}


def test_the_missing_keys_of_the_metadata_are_named() -> None:
    refused = classify(head(), LEGACY_REQUEST)
    assert isinstance(refused, HttpRefusal)
    assert b"protocolVersion" in refused.body
    assert b"clientCapabilities" in refused.body


@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"mcp-method"])
def test_a_doubled_header_of_a_modern_request_is_a_mismatch(name: bytes) -> None:
    lines = [(b"mcp-protocol-version", MODERN.encode()), (b"mcp-method", b"tools/list")]
    doubled = scan(fields_of([*lines, (name, dict(lines)[name])]))
    assert error(classify(doubled, enveloped())) == (400, 7, -32020)


@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"mcp-session-id"])
@pytest.mark.parametrize("body", [LEGACY_REQUEST, LEGACY_REQUEST[:-1] + b',"params":[]}', b"[" + LEGACY_REQUEST + b"]"])
def test_a_doubled_header_of_a_legacy_message_is_refused(name: bytes, body: bytes) -> None:
    assert error(classify(scan(fields_of([(name, b"2025-11-25")] * 2)), body)) == (400, None, -32600)


@pytest.mark.parametrize("version", [MODERN, "v9"])
def test_legacy_parameters_that_are_no_object_lack_metadata_where_the_header_says_modern(version: str) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"x","params":[]}'
    assert error(classify(head(version), body)) == (400, 7, -32602)


@pytest.mark.parametrize("body", [enveloped(clientCapabilities=...), enveloped(protocolVersion="v9")])
def test_a_doubled_header_is_named_before_the_metadata_and_the_version(body: bytes) -> None:
    doubled = scan(fields_of([(b"mcp-protocol-version", b"v9"), (b"mcp-method", b"tools/list")] * 2))
    assert error(classify(doubled, body)) == (400, 7, -32020)


def test_a_session_id_on_a_modern_request_counts_for_nothing() -> None:
    lines = [(b"mcp-protocol-version", MODERN.encode()), (b"mcp-method", b"tools/list")]
    found = classify(scan(fields_of([*lines, (b"mcp-session-id", b"x"), (b"mcp-session-id", b"y")])), enveloped())
    assert isinstance(found, ModernRequest)


@pytest.mark.parametrize(
    ("method", "field", "value", "header"),
    [
        ("tools/call", "name", "a", "a"),
        ("tools/call", "name", "a", "=?base64?YQ==?="),
        ("tools/call", "name", "über", "=?base64?w7xiZXI=?="),
        ("tools/call", "name", "=?base64?", "=?base64?"),
        ("prompts/get", "name", "p", "p"),
        ("resources/read", "uri", "file:///x", "file:///x"),
        ("tasks/cancel", "taskId", "t1", " t1 "),
        ("events/poll", "name", "shop:order", "shop:order"),
        ("events/subscribe", "name", "über", "=?base64?w7xiZXI=?="),
    ],
)
def test_the_name_header_may_be_wrapped(method: str, field: str, value: str, header: str) -> None:
    found = classify(head(method=method, name=header), enveloped(method, params={field: value}))
    assert isinstance(found, ModernRequest)


@pytest.mark.parametrize("method", ["events/poll", "events/stream", "events/subscribe", "events/unsubscribe"])
def test_the_header_of_an_event_type_may_be_missing_but_not_another_name(method: str) -> None:
    body = enveloped(method, params={"name": "a"})
    assert isinstance(classify(head(method=method), body), ModernRequest)
    assert error(classify(head(method=method, name="b"), body)) == (400, 7, -32020)
    assert error(classify(head(method=method, name="b"), enveloped(method))) == (400, 7, -32020)


def test_a_name_that_is_nowhere_is_left_to_the_service() -> None:
    assert isinstance(classify(head(method="tools/call"), enveloped("tools/call")), ModernRequest)


@pytest.mark.parametrize(
    ("found", "body", "modern"),
    [
        (head(method=None), b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', True),
        (head(method=None), enveloped("notifications/cancelled", id_=...), True),
        (head(None, None), enveloped("notifications/x", id_=...), True),
        (head("2025-11-25", None), enveloped("notifications/x", id_=...), True),
        (head("2025-11-25", None), b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', False),
        (head(None, None), b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', False),
    ],
)
def test_a_notification_is_modern_by_its_metadata_or_its_header(found: Head, body: bytes, modern: bool) -> None:
    accepted = classify(found, body)
    assert isinstance(accepted, Notification)
    assert is_modern(found, accepted) == modern


@pytest.mark.parametrize(
    ("found", "body"),
    [
        (head("1999-01-01", None), b'{"jsonrpc":"2.0","method":"notifications/cancelled"}'),
        (head(None, None), enveloped("notifications/x", id_=..., protocolVersion="v9")),
        (head(None, None), enveloped("notifications/x", id_=..., protocolVersion=None)),
    ],
)
def test_an_unknown_version_of_a_notification_is_named_as_unsupported(found: Head, body: bytes) -> None:
    assert error(classify(found, body)) == (400, None, -32022)


@pytest.mark.parametrize("version", [MODERN, "v9"])
def test_modern_clients_send_no_responses(version: str) -> None:
    assert error(classify(head(version), b'{"jsonrpc":"2.0","id":1,"result":{}}')) == (400, None, -32600)


def test_an_envelope_without_a_method_is_no_message() -> None:
    body = msgspec.json.encode({**msgspec.json.decode(enveloped()), "method": None})
    assert error(classify(head(), body)) == (400, None, -32600)


@pytest.mark.parametrize("id_", [None, True, 1.5, []])
def test_a_modern_request_with_another_kind_of_id_is_refused(id_: Any) -> None:
    assert error(classify(head(), enveloped(id_=id_))) == (400, None, -32600)


def test_a_batch_with_a_modern_version_header_is_refused() -> None:
    assert error(classify(head(), b"[" + LEGACY_REQUEST + b"]")) == (400, None, -32600)


@pytest.mark.parametrize("params", [b"[1]", b"7", b'"x"', b"true"])
def test_legacy_parameters_that_are_no_object_are_an_error_inside_a_valid_answer(params: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"x","params":' + params + b"}"
    assert error(classify(NO_HEADERS, body)) == (200, 7, -32602)


def test_null_for_no_parameters_is_tolerated() -> None:
    found = classify(NO_HEADERS, b'{"jsonrpc":"2.0","id":7,"method":"x","params":null}')
    assert isinstance(found, Request)
    assert bytes(found.params) == b""


@given(st.binary(max_size=200), st.sampled_from([None, MODERN, "2025-11-25", "x"]))
def test_garbage_is_refused_or_classified_but_never_raises(body: bytes, version: str | None) -> None:
    assert classify(head(version), body) is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values, json_values, st.sampled_from([None, MODERN, "2025-11-25"]))
def test_any_envelope_of_any_values_gets_a_verdict(id_: Any, params: Any, meta: Any, version: str | None) -> None:
    params = {**params, "_meta": meta} if isinstance(params, dict) else params
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})
    found = classify(head(version), body)
    if isinstance(found, HttpRefusal) and found.body:
        answered = msgspec.json.decode(found.body)["id"]
        assert answered is None or answered == id_


@pytest.mark.parametrize("id_", [7, "seven"])
def test_a_body_of_a_million_lists_is_too_large_and_its_request_is_answered(id_: int | str) -> None:
    message: Any = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"arguments": [[]] * 1_000_000}}
    assert error(classify(NO_HEADERS, msgspec.json.encode(message))) == (413, id_, -31413)


def test_a_large_body_that_is_light_is_read() -> None:
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"arguments": {"text": "é,[{" * 500_000}}}
    assert isinstance(classify(NO_HEADERS, msgspec.json.encode(message)), Request)


def test_a_large_body_that_is_not_utf_8_is_no_json() -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"text":"' + b"x" * 500_000 + b"\xff" + b'"}}'
    assert error(classify(NO_HEADERS, body)) == (400, None, -32700)
