"""One HTTP POST: which era it belongs to, and everything that can be wrong with it before anybody serves it. PURE.

Rules of this file:
- The decision is made anew for each request, from header and body, never from the name of the method. A request that
  carries `_meta["io.modelcontextprotocol/protocolVersion"]` is modern, whatever its headers say; a request without it
  is legacy unless its version header names a version that is not (MCP 2026-07-28, basic/versioning).
- A modern request passes a ladder, and the first rung that breaks is the answer (MCP 2026-07-28,
  basic/transports/streamable-http, "Server Validation"): shape, doubled headers, `_meta`, version header, method
  header, name header, version served. Whether the method exists and its parameters are right is the service's answer.
- Every refusal repeats the request's id where there is one; ids are strings or integers and nothing else.
- Ids, parameters and capabilities stay the bytes they arrived as.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.errors import CallTooLarge, ProtocolViolation
from actors.protocol import jsonrpc
from actors.protocol.fragment import request_id
from actors.protocol.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, NO_RAW, PARSE_ERROR
from actors.protocol.versions import (
    LEGACY_VERSIONS,
    META_CAPABILITIES,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_VERSIONS,
)
from actors.protocol.weight import TooHeavy
from supervisor.front.http.head import METHOD, NAME, SESSION, VERSION, Head, header_text
from supervisor.front.mcp.envelope import (
    BROKEN,
    LOG_LEVELS,
    MAX_BATCH,
    MAX_SHOWN_CHARS,
    Enveloped,
    Meta,
    batch_elements,
    client_name,
    envelope_of,
    first_byte,
    key_of,
    text_of,
)
from supervisor.front.mcp.verdict import (
    NULL,
    Batch,
    LegacyMessage,
    ModernRequest,
    Notification,
    Refused,
    Request,
    Response,
    Verdict,
    bad_id,
    refuse,
)
from supervisor.service.port import failure

HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

_ONCE: Final = frozenset({VERSION, METHOD, NAME})
_LEGACY: Final = {version.encode(): version for version in LEGACY_VERSIONS}
_MODERN: Final = frozenset(version.encode() for version in MODERN_VERSIONS)

# Which parameter `Mcp-Name` repeats (MCP 2026-07-28, streamable-http, "Request Metadata"; SEP-2663 for tasks).
_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

_any = msgspec.json.Decoder(msgspec.Raw)


def legacy_version(head: Head) -> str | None:
    """Return the legacy version that the header names, if it does."""
    return None if head.version is None else _LEGACY.get(head.version)


def classify(head: Head, body: bytes) -> Verdict:
    """Return what one POST is, or the answer it gets. Raises nothing."""
    try:
        message = jsonrpc.decode(body)
    except TooHeavy as error:
        answer = failure(request_id(body), CallTooLarge(f"the body has {error.message}; send less at once"))
        return Refused(CallTooLarge.http_status, answer.body)
    except ProtocolViolation:
        return _not_a_message(head, body)
    found = envelope_of(message.params)
    if found is not None:
        return _modern(head, message, *found)
    if head.version is not None and head.version not in _LEGACY:
        return _modern_without_meta(head, message)
    if head.duplicated and (VERSION in head.duplicated or SESSION in head.duplicated):
        return refuse(400, NULL, INVALID_REQUEST, "the protocol version and the session id may be there only once")
    return legacy_message(message)


def legacy_message(message: jsonrpc.Envelope) -> LegacyMessage | Refused:
    """Return what one message without modern `_meta` is, also for an element of a batch."""
    id_ = bytes(message.id)
    if message.method is None:
        answered = bytes(message.result) or bytes(message.error)
        if answered and key_of(id_) is not None:
            return Response()
        return refuse(400, NULL, INVALID_REQUEST, "neither a request nor a notification nor a response")
    params = message.params
    first = first_byte(params)
    if first == b"n":  # some clients send null for "no parameters"
        first, params = b"", NO_RAW
    if not id_:
        return Notification(method=message.method, params=params)
    key = key_of(id_)
    if key is None:
        return bad_id()
    if first and first != b"{":
        return refuse(200, id_, INVALID_PARAMS, '"params" must be an object')
    return Request(id=id_, key=key, method=message.method, params=params)


def _not_a_message(head: Head, body: bytes) -> Batch | Refused:
    try:
        body.decode()
        text = _any.decode(body)  # first all of it: what is no array may be no JSON either
    except BROKEN:
        return refuse(400, NULL, PARSE_ERROR, "the body is not JSON")
    elements = batch_elements(text)
    if elements is None:
        return refuse(400, NULL, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
    if not 1 <= len(elements) <= MAX_BATCH:
        return refuse(400, NULL, INVALID_REQUEST, f"a batch must have 1 to {MAX_BATCH} messages")
    if (head.version is not None and head.version not in _LEGACY) or any(map(_is_enveloped, elements)):
        return refuse(400, NULL, INVALID_REQUEST, "this revision of the protocol has no batches")
    return Batch(elements)


def _is_enveloped(element: msgspec.Raw) -> bool:
    try:
        return envelope_of(jsonrpc.decode(bytes(element)).params) is not None
    except ProtocolViolation:
        return False


def _modern(head: Head, message: jsonrpc.Envelope, meta: Meta, params: Enveloped) -> Verdict:
    id_ = bytes(message.id)
    version = text_of(meta.version)
    if message.method is None:
        return refuse(400, NULL, INVALID_REQUEST, "neither a request nor a notification")
    if not id_:
        return Refused(202) if version in MODERN_VERSIONS else _unsupported(NULL, version or "")
    key = key_of(id_)
    if key is None:
        return bad_id()
    refused = _check(head, id_, message.method, meta, params)
    if refused is not None:
        return refused
    return ModernRequest(
        id=id_,
        key=key,
        method=message.method,
        params=message.params,
        version=version or "",
        name=client_name(meta.client_info),
        capabilities=meta.capabilities,
    )


def _check(head: Head, id_: bytes, method: str, meta: Meta, params: Enveloped) -> Refused | None:
    """The rungs that need the request's id: doubled headers, `_meta`, version, method, name, version served."""
    version = text_of(meta.version)
    if not _ONCE.isdisjoint(head.duplicated):
        return refuse(400, id_, HEADER_MISMATCH, "MCP-Protocol-Version, Mcp-Method and Mcp-Name may be there only once")
    wrong = _wrong_meta(meta)
    if wrong:
        return refuse(400, id_, INVALID_PARAMS, f"_meta: {wrong}")
    if version is None or head.version is None or header_text(head.version) != version:
        return _mismatch(id_, "MCP-Protocol-Version", head.version, "the version in _meta")
    if head.method is None or header_text(head.method) != method:
        return _mismatch(id_, "Mcp-Method", head.method, "the method of the request")
    if method in _NAMED_BY and not _name_agrees(head.name, _named(method, params)):
        return _mismatch(id_, "Mcp-Name", head.name, f"params.{_NAMED_BY[method]}")
    if version not in MODERN_VERSIONS:
        return _unsupported(id_, version)
    return None


def _wrong_meta(meta: Meta) -> str:
    if text_of(meta.version) is None:
        return f'"{META_VERSION}" must be a string'
    if not bytes(meta.capabilities):
        return f'"{META_CAPABILITIES}" is missing'
    if first_byte(meta.capabilities) != b"{":
        return f'"{META_CAPABILITIES}" must be an object'
    if bytes(meta.log_level) and text_of(meta.log_level) not in LOG_LEVELS:
        return f'"{META_LOG_LEVEL}" is not a level'
    return ""


def _named(method: str, params: Enveloped) -> str | None:
    field = {"name": params.name, "uri": params.uri, "taskId": params.task_id}[_NAMED_BY[method]]
    return text_of(field)


def _name_agrees(header: bytes | None, named: str | None) -> bool:
    if header is None or named is None:
        return header is None and named is None
    return header_text(header) == named


def _modern_without_meta(head: Head, message: jsonrpc.Envelope) -> Refused:
    """The version header says modern (or nonsense), the body does not: malformed, never legacy."""
    id_ = bytes(message.id)
    requested = (head.version or b"").decode("latin-1")
    if message.method is None:
        return refuse(400, NULL, INVALID_REQUEST, "clients of this revision send no responses")
    if not id_:
        return Refused(202) if head.version in _MODERN else _unsupported(NULL, requested)
    if key_of(id_) is None:
        return bad_id()
    missing = f'"{META_VERSION}" and "{META_CAPABILITIES}"'
    return refuse(400, id_, INVALID_PARAMS, f"params._meta must have {missing} with protocol version {requested[:64]}")


def _mismatch(id_: bytes, header: str, value: bytes | None, expected: str) -> Refused:
    problem = "is missing" if value is None else f"does not equal {expected}"
    return refuse(400, id_, HEADER_MISMATCH, f"the header {header} {problem}")


def _unsupported(id_: bytes, requested: str) -> Refused:
    data = {"supported": list(MODERN_VERSIONS), "requested": requested[:MAX_SHOWN_CHARS]}
    return refuse(400, id_, UNSUPPORTED_VERSION, "unsupported protocol version", data)
