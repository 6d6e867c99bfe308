"""The era of a POST and the ladder of checks, row by row: what is answered, and with which status."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.edge.fields import fields_of
from supervisor.front.http.heads import Head, HttpRefusal, is_modern, refusal, refusal_of_message, scan
from supervisor.front.messages import Batch, Message, ModernRequest, Notification, Request, Response, read

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


def test_a_batch_with_a_modern_version_header_is_refused() -> None:
    assert error(classify(head(), b"[" + LEGACY_REQUEST + b"]")) == (400, None, -32600)


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
