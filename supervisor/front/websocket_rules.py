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

from typing import Any, TypeVar

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol import jsonrpc
from actors.protocol.versions import (
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_VERSIONS,
)
from supervisor.front.classify import LOG_LEVELS, UNSUPPORTED_VERSION
from supervisor.front.service import Client
from supervisor.front.verdict import Key

NULL_ID = b"null"
MAX_ID_BYTES = 512
MAX_BATCH = 50
BATCHING_VERSION = "2025-03-26"

LEGACY_ONLY = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods that 2026-07-28 removed."""

T = TypeVar("T")


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


class _Meta(msgspec.Struct, frozen=True):
    version: Any = msgspec.field(name=META_VERSION, default=msgspec.UNSET)
    capabilities: msgspec.Raw = msgspec.field(name=META_CAPABILITIES, default=jsonrpc.NO_RAW)
    client_info: Any = msgspec.field(name=META_CLIENT_INFO, default=None)
    log_level: Any = msgspec.field(name=META_LOG_LEVEL, default=None)


class _WithMeta(msgspec.Struct, frozen=True):
    meta: msgspec.Raw = msgspec.field(name="_meta", default=jsonrpc.NO_RAW)


def read(text: bytes, *, batching: bool) -> list[Message] | Message:
    """Return what a text message means; a list if it is an array and the session may send arrays."""
    if not text.lstrip(b" \t\r\n").startswith(b"["):
        return _read_one(text)
    try:
        parts = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
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
    except ProtocolViolation:
        return _not_a_message(text)
    if envelope.method is None:
        if bytes(envelope.result) or bytes(envelope.error):
            return Nothing()
        return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "neither a method nor a result")
    if envelope.is_notification:
        return Notification(method=envelope.method, params=envelope.params)
    id_ = bytes(envelope.id)
    key = id_key(id_)
    if key is None:
        return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "an id is a string or an integer")
    params = bytes(envelope.params)
    if params == NULL_ID:  # some clients send null for "no parameters"
        params = b""
    if params and not params.startswith(b"{"):
        return _invalid(id_, jsonrpc.INVALID_PARAMS, "params must be an object")
    return _request(id_, key, envelope.method, msgspec.Raw(params))


def _request(id_: bytes, key: Key, method: str, params: msgspec.Raw) -> Message:
    meta = _meta(params)
    if meta is None or meta.version is msgspec.UNSET:
        return Request(id=id_, key=key, method=method, params=params)
    capabilities = bytes(meta.capabilities)
    if not isinstance(meta.version, str):
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_VERSION} must be a string")
    if not capabilities.startswith(b"{"):
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_CAPABILITIES} must be an object")
    if meta.log_level is not None and meta.log_level not in LOG_LEVELS:
        return _invalid(id_, jsonrpc.INVALID_PARAMS, f"_meta: {META_LOG_LEVEL} is not a level")
    if meta.version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": meta.version}
        return _invalid(id_, UNSUPPORTED_VERSION, "unsupported protocol version", data)
    if method in LEGACY_ONLY:
        return _invalid(id_, jsonrpc.METHOD_NOT_FOUND, f"{method} is not a method of {meta.version}")
    client = Client(
        era="modern", version=meta.version, name=_name(meta.client_info), capabilities=msgspec.Raw(capabilities)
    )
    return Request(id=id_, key=key, method=method, params=params, modern=client)


def _meta(params: msgspec.Raw) -> _Meta | None:
    raw = _decode(params, _WithMeta)
    return None if raw is None or not bytes(raw.meta) else _decode(raw.meta, _Meta)


def _not_a_message(text: bytes) -> Invalid:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
        text.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _invalid(NULL_ID, jsonrpc.PARSE_ERROR, "not JSON")
    return _invalid(NULL_ID, jsonrpc.INVALID_REQUEST, "not a JSON-RPC 2.0 message")


def _invalid(id_: bytes, code: int, message: str, data: Any = None) -> Invalid:
    return Invalid(jsonrpc.failure(id_, code, message, data))


def _decode(raw: msgspec.Raw, type_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=type_)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _name(client_info: Any) -> str:
    name = client_info.get("name") if isinstance(client_info, dict) else None
    return name[:200] if isinstance(name, str) else ""


def id_key(raw: bytes) -> Key | None:
    """Return the value of an id, or None if the JSON text is no id. A string and an integer are never equal."""
    return None if len(raw) > MAX_ID_BYTES else _decode(msgspec.Raw(raw), str | int)  # type: ignore[arg-type]  # a union is no class


def listen_cancelled(id_: bytes, reason: str) -> bytes:
    """Return what follows the result of a listen that we end (2026-07-28 basic/patterns/cancellation)."""
    params = {"requestId": msgspec.Raw(id_), "reason": reason}
    return jsonrpc.notification("notifications/cancelled", jsonrpc.encode(params))
