"""Results and errors between the eras: what is added, what goes, and that the rest keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.errors import ServerError
from actors.messages import Result
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.service.fitting.relay import (
    fit,
    lacks,
    not_found,
    passes,
    translate_error,
    travelling_meta,
    with_lifetime,
)

NESTED = b'{ "n" : 1.0, "big":123456789012345678901234567890, "e":"\\u00e9\\/", "resultType":"kept" }'
ALIEN = b'"content":[' + NESTED + b'],"isError":true,"x-unknown":' + NESTED
INFO = b'"io.modelcontextprotocol/serverInfo":{"name":"s"}'


def result(body: bytes, era: Era = "legacy") -> Result:
    return Result(msgspec.Raw(body), era)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_within_an_era_the_bytes_pass_unchanged(era: Era) -> None:
    body = b' { "resultType" : "complete",' + ALIEN + b" } "
    assert fit(result(body, era), era, "s") == body


@pytest.mark.parametrize("written", ["legacy", "modern"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_is_null_and_may_not_be_is_left_out(written: Era, era: Era) -> None:
    complete, kept = b'"resultType":"complete",', b'"content":[{ "a" : null }],"x-own":null'
    nulls = b'"_meta":null,"isError": null ,"structuredContent":null,'
    body = b"{" + (complete if written == "modern" else b"") + nulls + kept + b"}"
    value = b'"structuredContent":null,' if written == "modern" else b""
    assert fit(result(body, written), era, "s") == b"{" + (complete if era == "modern" else b"") + value + kept + b"}"


LEFT_OUT = [
    (
        {
            "content": [{"type": "text", "text": "null", "annotations": None, "_meta": None, "x-own": None}],
            "isError": None,
        },
        {"content": [{"type": "text", "text": "null", "x-own": None}]},
    ),
    (
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "mimeType": None, "text": "t", "blob": None}}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t"}}]},
    ),
    ({"contents": [{"uri": "a:b", "text": "t", "_meta": None}]}, {"contents": [{"uri": "a:b", "text": "t"}]}),
    (
        {"description": None, "messages": [{"role": "user", "content": {"type": "text", "text": "t", "_meta": None}}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]},
    ),
    ({"completion": {"values": ["a"], "total": None, "hasMore": None}}, {"completion": {"values": ["a"]}}),
    ({"tools": [], "nextCursor": None}, {"tools": []}),
]


@pytest.mark.parametrize(("said", "passed"), LEFT_OUT)
def test_what_a_server_writes_as_null_and_strict_clients_refuse_is_left_out(said: Any, passed: Any) -> None:
    assert json.loads(fit(result(json.dumps(said).encode()), "legacy", "s")) == passed


@pytest.mark.parametrize(
    "body", [b'{"content":[{"type":"text","text":" null "}]}', b'{"content":null,"contents":[null]}']
)
def test_where_null_is_only_a_word_the_bytes_stay(body: bytes) -> None:
    assert fit(result(body), "legacy", "s") == body


def test_what_is_too_deep_to_be_looked_into_is_passed_on() -> None:
    body = b'{"a":' * 100_000 + b"null" + b"}" * 100_000
    assert fit(result(body), "legacy", "s") == body
    assert with_lifetime(body, "legacy") == AT_ONCE[:34] + body[1:]


def test_a_modern_client_gets_the_type_of_a_legacy_result() -> None:
    assert fit(result(b"{}"), "modern", "s") == b'{"resultType":"complete"}'
    assert fit(result(b" { } "), "modern", "s").replace(b" ", b"") == b'{"resultType":"complete"}'
    found = fit(result(b"{" + ALIEN + b"}"), "modern", "s")
    assert found == b'{"resultType":"complete",' + ALIEN + b"}"


@pytest.mark.parametrize("said", [b"", b'"resultType":null,'])
def test_a_modern_result_whose_server_does_not_say_its_type_is_complete(said: bytes) -> None:
    body = b"{" + said + ALIEN + b"}"
    assert fit(result(body, "modern"), "modern", "s") == b'{"resultType":"complete",' + ALIEN + b"}"
    assert fit(result(body, "modern"), "legacy", "s") == b"{" + ALIEN + b"}"


LASTING = b'{"ttlMs":5,"cacheScope":"public",' + ALIEN + b"}"
AT_ONCE = b'{"ttlMs":0,"cacheScope":"private",' + ALIEN + b"}"


@pytest.mark.case("L19")
@pytest.mark.parametrize(
    ("body", "written", "told"),
    [
        (LASTING, "modern", LASTING),
        (LASTING, "legacy", AT_ONCE),
        (b"{" + ALIEN + b"}", "modern", AT_ONCE),
        (b"{" + ALIEN + b"}", "legacy", AT_ONCE),
        (LASTING.replace(b"5", b"-5", 1), "modern", AT_ONCE),
        (LASTING.replace(b"public", b"all", 1), "modern", AT_ONCE),
        (b'{"resultType":"input_required"}', "modern", b'{"resultType":"input_required"}'),
    ],
)
def test_a_complete_result_says_for_how_long_it_holds(body: bytes, written: Era, told: bytes) -> None:
    assert with_lifetime(body, written) == told


@pytest.mark.case("L19", "I22")
def test_what_a_server_calls_public_is_private_where_not_everybody_is_served_alike() -> None:
    told = json.loads(with_lifetime(LASTING, "modern", shared=False))
    assert told == {**json.loads(LASTING), "cacheScope": "private"}
    private = LASTING.replace(b"public", b"private", 1)
    assert with_lifetime(private, "modern", shared=False) is private


def test_a_legacy_result_with_a_type_of_its_own_gets_no_second_one() -> None:
    found = fit(result(b'{"resultType":"input_required",' + ALIEN + b"}"), "modern", "s")
    assert found == b'{"resultType":"complete",' + ALIEN + b"}"


def test_a_legacy_client_gets_no_member_of_the_modern_envelope() -> None:
    envelope = b'{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{' + INFO + b"},"
    assert fit(result(envelope + ALIEN + b"}", "modern"), "legacy", "s") == b"{" + ALIEN + b"}"
    assert fit(result(b'{"resultType":"complete"}', "modern"), "legacy", "s") == b"{}"
    assert fit(result(b"{}", "modern"), "legacy", "s") == b"{}"


@pytest.mark.parametrize("meta", [b"5", b'"io.modelcontextprotocol/serverInfo"', b"[]"])
def test_meta_that_is_no_object_is_no_bug(meta: bytes) -> None:
    body = b'{"resultType":"complete","_meta":' + meta + b"}"
    assert fit(result(body, "modern"), "legacy", "s") == b'{"_meta":' + meta + b"}"


@pytest.mark.parametrize("kind", [b'"input_required"', b'"task"', b"5", b"{}"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_wants_something_else_is_an_error_of_unknown_outcome(kind: bytes, era: Era) -> None:
    with pytest.raises(ServerError) as caught:
        fit(result(b'{"resultType":' + kind + b"}", "modern"), era, "s")
    assert caught.value.outcome == "unknown"
    assert caught.value.server == "s"


@pytest.mark.case("C26")
@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ({"traceparent": "00-1", "tracestate": "x"}, {"traceparent": "00-1", "tracestate": "x"}),
        ({"progressToken": 5, "own/key": [1.0]}, {"own/key": [1.0]}),
        ({"io.modelcontextprotocol/protocolVersion": "x", "io.modelcontextprotocol/clientInfo": {}}, {}),
        ({"dev.mcp/x": 1, "org.modelcontextprotocol.api/y": 1, "com.mcp.tools/z": 1}, {}),
        ({"com.example.mcp/x": 1, "mcp/y": 1, "io.mcpx/z": 1}, {"com.example.mcp/x": 1, "mcp/y": 1, "io.mcpx/z": 1}),
        ({}, {}),
    ],
)
def test_what_describes_the_hop_stays_here_and_the_rest_travels(meta: Any, kept: Any) -> None:
    members = travelling_meta(msgspec.Raw(json.dumps(meta).encode()))
    assert json.loads(b"{" + members + b"}") == kept


@pytest.mark.parametrize("meta", [b"", b"null", b"5", b"[1]", b'"text"', b"{"])
def test_meta_of_another_shape_does_not_travel(meta: bytes) -> None:
    assert travelling_meta(msgspec.Raw(meta)) == b""


def codes(code: int, message: str = "m", method: str = "tools/call", data: bytes = b"") -> tuple[int, int]:
    """The code a legacy and a modern client get."""
    error = RemoteError(ErrorObject(code, message, msgspec.Raw(data)))
    legacy, modern = (translate_error(error, method, era, "file:///a").error for era in ("legacy", "modern"))
    assert legacy.message == modern.message == message
    return legacy.code, modern.code


@pytest.mark.parametrize(
    ("code", "legacy", "modern"),
    [
        (-32602, -32602, -32602),
        (-32601, -32601, -32601),
        (-32603, -32603, -32603),
        (-32700, -32700, -32700),
        (0, 0, -32603),
        (-1, -1, -1),
        (42, 42, 42),
        (2**53 - 1, 2**53 - 1, 2**53 - 1),
        (-32000, -32000, -32000),
        (-32001, -32001, -32001),
        (-32050, -32050, -32050),
        (-32099, -32099, -32099),
        # What the specification gives a meaning that is not the server's to give, or forbids between modern peers.
        (-32002, -32002, -32603),
        (-32020, -32020, -32603),
        (-32021, -32021, -32603),
        (-32022, -32022, -32603),
        (-32042, -32042, -32603),
    ],
)
def test_codes_of_servers_reach_the_client_but_for_those_that_would_mislead_it(
    code: int, legacy: int, modern: int
) -> None:
    assert codes(code) == (legacy, modern)


@pytest.mark.parametrize(
    ("written", "code", "told"),
    [
        ("modern", -32020, -32603),
        ("modern", -32021, -32603),
        ("modern", -32022, -32603),
        ("modern", -32042, -32042),
        ("modern", -32002, -32002),
        ("legacy", -32020, -32020),
    ],
)
def test_what_a_modern_server_says_of_the_hop_is_no_matter_of_a_legacy_client(
    written: Era, code: int, told: int
) -> None:
    error = RemoteError(ErrorObject(code, "m"))
    assert translate_error(error, "prompts/get", "legacy", written=written).error.code == told


@pytest.mark.parametrize(
    ("code", "message", "data", "expected"),
    [
        (-32002, "gone", b"", (-32002, -32602)),
        (-32602, "gone", b'{"uri":"file:///a"}', (-32002, -32602)),
        (-32602, "Resource file:///a not found", b"", (-32002, -32602)),
        (-32602, "uri is required", b"", (-32602, -32602)),
        (0, "Unknown resource: file:///a", b"", (-32002, -32602)),
        (0, "disk on fire", b"", (0, -32603)),
        (-32050, "gone", b'{"uri":"file:///a"}', (-32050, -32050)),
    ],
)
def test_codes_of_a_missing_resource(code: int, message: str, data: bytes, expected: tuple[int, int]) -> None:
    assert codes(code, message, "resources/read", data) == expected


def test_a_missing_resource_says_which() -> None:
    error = RemoteError(ErrorObject(-32002, "gone"))
    assert json.loads(bytes(translate_error(error, "resources/read", "modern", "file:///a").error.data)) == {
        "uri": "file:///a"
    }
    own = RemoteError(ErrorObject(-32002, "gone", msgspec.Raw(b'{"own":1.0}')))
    assert bytes(translate_error(own, "resources/read", "modern", "file:///a").error.data) == b'{"own":1.0}'
    assert not_found("modern", "no", "x|y").error.code == -32602
    assert not_found("legacy", "no", "x|y").error.code == -32002
    assert json.loads(bytes(not_found("legacy", "no", "x|y").error.data))["uri"] == "x|y"


@pytest.mark.parametrize(
    ("code", "era", "written", "passing"),
    [
        (-32602, "legacy", "legacy", True),
        (-32002, "legacy", "legacy", True),
        (-32020, "legacy", "legacy", True),
        (-32602, "modern", "modern", True),
        (-32002, "modern", "modern", True),
        (-32020, "modern", "modern", False),
        (-32022, "modern", "modern", False),
        (-32602, "modern", "legacy", False),
        (-32602, "legacy", "modern", False),
    ],
)
def test_an_error_of_the_same_era_passes_unless_it_is_about_our_hop(
    code: int, era: Era, written: Era, passing: bool
) -> None:
    assert passes(ErrorObject(code, "no"), era, written, msgspec.Raw(b"{}")) is passing


@pytest.mark.parametrize(
    ("declared", "data", "lacking"),
    [
        (b"{}", b'{"requiredCapabilities":{"sampling":{}}}', True),
        (b'{"sampling":{}}', b'{"requiredCapabilities":{"sampling":{},"roots":{}}}', True),
        (b'{"sampling":{}}', b'{"requiredCapabilities":{"sampling":{}}}', False),
        (b"{}", b'{"requiredCapabilities":[]}', False),
        (b"{}", b"{}", False),
        (b"{}", b"", False),
        (b"[]", b'{"requiredCapabilities":{"sampling":{}}}', False),
    ],
)
def test_that_a_client_lacks_a_capability_passes_only_if_it_does(declared: bytes, data: bytes, lacking: bool) -> None:
    assert lacks(msgspec.Raw(declared), msgspec.Raw(data)) is lacking
    said = ErrorObject(-32021, "no", msgspec.Raw(data))
    assert passes(said, "modern", "modern", msgspec.Raw(declared)) is lacking
