"""What one WebSocket text message means: era, kind and the rules that need no header.

Rules of this file:
- One JSON-RPC message per text message. Arrays only where 2025-03-26 was negotiated (2025-03-26 basic/index
  "Batching"; removed by 2025-06-18).
- The era is decided message by message: `_meta` that names a protocol version makes it modern, everything else is
  legacy (MCP 2026-07-28 basic/versioning; "Custom Transports" keeps the per-request metadata).
- An id is JSON text and is compared by type *and* value: `1` and `"1"` are two requests.
- Pure: text in, a value out. Nothing here raises because of what a client sent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.errors import CallTooLarge, ProtocolViolation
from actors.protocol import jsonrpc
from actors.protocol.fragment import request_id
from actors.protocol.versions import (
    META_CAPABILITIES,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_VERSIONS,
)
from actors.protocol.weight import LARGE_BYTES, TooHeavy, examine
from supervisor.front.http.classify import UNSUPPORTED_VERSION
from supervisor.front.mcp.envelope import (
    LOG_LEVELS,
    MAX_BATCH,
    MAX_SHOWN_CHARS,
    batch_elements,
    client_name,
    envelope_of,
    first_byte,
    key_of,
    text_of,
)
from supervisor.front.mcp.verdict import Key
from supervisor.service.port import Client, failure

NULL_ID = b"null"
BATCHING_VERSION = "2025-03-26"

LEGACY_ONLY = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods that 2026-07-28 removed."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is answered. `modern` is set if it carried a complete envelope, otherwise it is legacy."""

    id: bytes
    key: Key
    method: str
    params: msgspec.Raw
    modern: Client | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not answered."""

    method: str
    params: msgspec.Raw


class Invalid(msgspec.Struct, frozen=True):
    """A message that is answered with an error and goes no further."""

    answer: bytes


class Nothing(msgspec.Struct, frozen=True):
    """A response to a request we never made."""


Message = Request | Notification | Invalid | Nothing


def read(text: bytes, *, batching: bool) -> list[Message] | Message:
    """Return what a text message means; a list if it is an array and the session may send arrays."""
    if not text.lstrip(b" \t\r\n").startswith(b"["):
        return _read_one(text)
    try:
        if len(text) >= LARGE_BYTES:
            examine(text)
    except TooHeavy as error:
        return _too_heavy(text, error)
    except ProtocolViolation:
        return _not_a_message(text)
    parts = batch_elements(text)
    if parts is None:
        return _invalid(NULL_ID, jsonrpc.PARSE_ERROR, "not JSON")
    if not batching or not 0 < len(parts) <= MAX_BATCH:
        text_ = f"arrays are for sessions of {BATCHING_VERSION} and hold 1 to {MAX_BATCH} messages"
        return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, text_)
    return [_legacy_only(_read_one(bytes(part))) for part in parts]


def _legacy_only(message: Message) -> Message:
    if isinstance(message, Request) and (message.modern is not None or message.method == "initialize"):
        return _invalid(message.id, jsonrpc.INVALID_REQUEST, "this request must not be in an array")
    return message


def _read_one(text: bytes) -> Message:
    try:
        envelope = jsonrpc.decode(text)
    except TooHeavy as error:
        return _too_heavy(text, error)
    except ProtocolViolation:
        return _not_a_message(text)
    if envelope.method is None:
        if bytes(envelope.result) or bytes(envelope.error):
            return Nothing()
        return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "neither a method nor a result")
    if envelope.is_notification:
        return Notification(method=envelope.method, params=envelope.params)
    id_ = bytes(envelope.id)
    key = key_of(id_)
    if key is None:
        return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "an id is a string or an integer")
    params = bytes(envelope.params)
    if params == NULL_ID:  # some clients send null for "no parameters"
        params = b""
    if params and not params.startswith(b"{"):
        return _invalid(id_, jsonrpc.INVALID_PARAMS, "params must be an object")
    return _request(id_, key, envelope.method, msgspec.Raw(params))


def _request(id_: bytes, key: Key, method: str, params: msgspec.Raw) -> Message:
    found = envelope_of(params)
    if found is None:
        return Request(id=id_, key=key, method=method, params=params)
    meta, _ = found
    version = text_of(meta.version)
    if version is None:
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_VERSION} must be a string")
    if first_byte(meta.capabilities) != b"{":
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_CAPABILITIES} must be an object")
    if bytes(meta.log_level) not in {b"", NULL_ID} and text_of(meta.log_level) not in LOG_LEVELS:
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_LOG_LEVEL} is not a level")
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version[:MAX_SHOWN_CHARS]}
        return _invalid(id_, UNSUPPORTED_VERSION, "unsupported protocol version", data)
    if method in LEGACY_ONLY:
        return _invalid(id_, jsonrpc.METHOD_NOT_FOUND, f"{method} is not a method of {version}")
    client = Client(era="modern", version=version, name=client_name(meta.client_info), capabilities=meta.capabilities)
    return Request(id=id_, key=key, method=method, params=params, modern=client)


def _too_heavy(text: bytes, error: TooHeavy) -> Invalid:
    return Invalid(failure(request_id(text), CallTooLarge(f"the message has {error.message}; send less at once")).body)


def _not_a_message(text: bytes) -> Invalid:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
        text.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _invalid(NULL_ID, jsonrpc.PARSE_ERROR, "not JSON")
    return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "not a JSON-RPC 2.0 message")


def _invalid(id_: bytes, code: int, message: str, data: Any = None) -> Invalid:
    return Invalid(jsonrpc.failure(id_, code, message, data))


def listen_cancelled(id_: bytes, reason: str) -> bytes:
    """Return what follows the result of a listen that we end (2026-07-28 basic/patterns/cancellation)."""
    params = {"requestId": msgspec.Raw(id_), "reason": reason}
    return jsonrpc.notification("notifications/cancelled", jsonrpc.encode(params))
