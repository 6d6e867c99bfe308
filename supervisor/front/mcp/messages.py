"""One message of a client, whatever carries it: bytes in, what they are or why they are refused out. Pure.

Rules of this file:
- There is no other reader: HTTP and WebSocket give the same answer to the same mistake. What only one of them has, a
  header or a status, is none of this file's business.
- The era is decided message by message, never by the name of the method: parameters whose `_meta` names a protocol
  version are modern, everything else is legacy (MCP 2026-07-28, basic/versioning).
- A request is refused with its id, anything else with none; ids are strings or integers and nothing else. A response
  without such an id answers nothing that was asked, and is refused like a request without one.
- A notification is never answered (JSON-RPC 2.0, section 4.1). One that is refused is a kind of its own, for transports
  that have another way to say so.
- Ids, parameters, capabilities, results and errors stay the bytes they arrived as. Nothing here raises.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_VERSION
from actors.errors import CallTooLarge, InvalidArguments, ProtocolViolation
from actors.principal import Principal
from actors.protocol.agreement.versions import MODERN_VERSIONS, Era
from actors.protocol.asking.input_required import Retry
from actors.protocol.exchanges import LogLevel
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.fragment import request_id
from actors.protocol.wire.jsonrpc import NO_RAW, JsonRpcMessage
from actors.protocol.wire.repeated_keys import check_keys
from actors.protocol.wire.weight import LARGE_BYTES, TooHeavy, examine
from supervisor.front.mcp.envelope import (
    MAX_BATCH,
    MAX_ID_BYTES,
    Enveloped,
    Key,
    Meta,
    batch_elements,
    envelope_of,
    first_byte,
    key_of,
    retry_of,
    subject_of,
)
from supervisor.service.client import Client

NULL: Final = b"null"
MAX_SHOWN_CHARS: Final = 200
"""Of what a client sent, in what it is told about it."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A legacy request. `id` is JSON text, `key` its value, `params` empty where there were none."""

    id: bytes
    key: Key
    method: str
    params: msgspec.Raw = NO_RAW


class ModernRequest(Request, frozen=True, kw_only=True):
    """A modern request, and what its `_meta` says. `named`: what it is about, see `outgoing.NAMED_BY`; `retry`: what it
    says if it is made again.
    """

    version: str
    name: str = ""
    capabilities: msgspec.Raw
    log_level: LogLevel | None = None
    named: str | None = None
    retry: Retry | None = None

    def client(self, principal: Principal) -> Client:
        """Return who asks: nothing is known of the client but what this request says."""
        return Client(
            principal=principal,
            era="modern",
            version=self.version,
            name=self.name,
            capabilities=self.capabilities,
        )


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification. Without metadata it is said to be legacy; a modern client may leave that out."""

    method: str
    params: msgspec.Raw = NO_RAW
    era: Era = "legacy"


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A legacy client's answer to a request of ours: either `result` or `error` is there, as JSON text."""

    key: Key
    result: msgspec.Raw = NO_RAW
    error: msgspec.Raw = NO_RAW


class Invalid(msgspec.Struct, frozen=True, kw_only=True):
    """What is refused, as a JSON-RPC error. `id` is JSON text."""

    id: bytes = NULL
    code: int
    message: str
    data: Any = None

    def answer(self) -> bytes:
        return jsonrpc.failure(self.id, self.code, self.message, self.data)


class InvalidRequest(Invalid, frozen=True, kw_only=True):
    """A request whose parameters are refused; where its message has headers, those are compared first."""

    era: Era
    method: str
    version: str | None = None
    named: str | None = None


class InvalidNotification(Invalid, frozen=True, kw_only=True):
    """A notification that is refused: nothing comes of it, and it is answered only where a transport has to."""


class Batch(msgspec.Struct, frozen=True):
    """A legacy array of 1 to 50 messages; only a session of 2025-03-26 may send one."""

    messages: tuple[LegacyMessage | Invalid, ...]


LegacyMessage = Request | Notification | Response
Message = LegacyMessage | ModernRequest | Batch | Invalid

_WITH_ARGUMENTS: Final = ("tools/call", "prompts/get")
NO_BATCHES: Final = Invalid(code=INVALID_REQUEST, message="this revision of the protocol has no batches")
_NOT_JSON: Final = Invalid(code=PARSE_ERROR, message="the message is not JSON")
_NO_MESSAGE: Final = Invalid(code=INVALID_REQUEST, message="not a JSON-RPC 2.0 message")
_NO_METHOD: Final = Invalid(code=INVALID_REQUEST, message="neither a request nor a notification nor a response")
_NO_MODERN_METHOD: Final = Invalid(code=INVALID_REQUEST, message="neither a request nor a notification")
_BAD_ID: Final = Invalid(
    code=INVALID_REQUEST, message=f'"id" must be a string or an integer of at most {MAX_ID_BYTES} bytes'
)
_BAD_COUNT: Final = Invalid(code=INVALID_REQUEST, message=f"a batch must have 1 to {MAX_BATCH} messages")


def read(text: bytes) -> Message:
    """Return what one message is, or the answer it gets. A large one takes up to 0.5 s, in steps as a decoder does."""
    if text[:1] != b"{" and text.lstrip(b" \t\r\n")[:1] == b"[":
        return _batch(text)
    envelope = _open(text)
    if isinstance(envelope, Invalid):
        return envelope
    metadata = envelope_of(envelope.params)
    return _legacy(envelope) if metadata is None else _modern(envelope, *metadata)


def version_error(requested: str) -> dict[str, Any]:
    data = {"supported": list(MODERN_VERSIONS), "requested": requested[:MAX_SHOWN_CHARS]}
    return {"code": UNSUPPORTED_VERSION, "message": "unsupported protocol version", "data": data}


def _open(text: bytes) -> JsonRpcMessage | Invalid:
    try:
        return jsonrpc.decode(text)
    except TooHeavy as error:
        return _too_heavy(text, error)
    except ProtocolViolation:
        return _no_message(text)


def _too_heavy(text: bytes, error: TooHeavy) -> Invalid:
    large = CallTooLarge(f"the message has {error.message}; send less at once")
    return Invalid(id=request_id(text), code=large.code, message=large.message, data=large.data())


def _no_message(text: bytes) -> Invalid:
    try:
        text.decode()
        json.read(json.ANY, text)
    except (json.UnreadableJson, UnicodeDecodeError):
        return _NOT_JSON
    return _NO_MESSAGE


def _batch(text: bytes) -> Batch | Invalid:
    try:
        if len(text) >= LARGE_BYTES:
            examine(text)
        elif not text.isascii():
            text.decode()
    except TooHeavy as error:
        return _too_heavy(text, error)
    except (ProtocolViolation, UnicodeDecodeError):
        return _NOT_JSON
    elements = batch_elements(text)
    if elements is None:
        return _NOT_JSON
    if not 1 <= len(elements) <= MAX_BATCH:
        return _BAD_COUNT
    opened = [_open(bytes(element)) for element in elements]
    if any(isinstance(one, JsonRpcMessage) and envelope_of(one.params) is not None for one in opened):
        return NO_BATCHES
    return Batch(tuple(one if isinstance(one, Invalid) else _part(one) for one in opened))


def _part(envelope: JsonRpcMessage) -> LegacyMessage | Invalid:
    message = _legacy(envelope)
    if isinstance(message, Request) and message.method == "initialize":  # 2025-03-26, basic/lifecycle: MUST NOT
        return Invalid(id=message.id, code=INVALID_REQUEST, message="initialize must not be in a batch")
    return message


def _legacy(envelope: JsonRpcMessage) -> LegacyMessage | Invalid:
    method, params = envelope.method, envelope.params
    if method is None:
        return _response(envelope)
    first = first_byte(params)
    if first == b"n":  # some clients send null for "no parameters"
        first, params = b"", NO_RAW
    id_ = bytes(envelope.id)
    if not id_:
        return Notification(method=method, params=params)
    key = key_of(id_)
    if key is None:
        return _BAD_ID
    if first and first != b"{":
        return InvalidRequest(
            id=id_, code=INVALID_PARAMS, message='"params" must be an object', era="legacy", method=method
        )
    if (wrong := _wrong_arguments(method, params)) is not None:
        return InvalidRequest(id=id_, era="legacy", method=method, **wrong)
    return Request(id=id_, key=key, method=method, params=params)


def _response(envelope: JsonRpcMessage) -> Response | Invalid:
    """An `error` that is null beside a result is taken for absent; beside any other error a result counts for nothing:
    whoever says that something failed is believed."""
    result, error = envelope.result, envelope.error
    if first_byte(error) == b"n":
        error = NO_RAW
    if not (result or error):
        return _NO_METHOD
    key = key_of(bytes(envelope.id))
    if key is None:
        return _BAD_ID
    return Response(key=key, error=error) if error else Response(key=key, result=result)


def _modern(envelope: JsonRpcMessage, meta: Meta, params: Enveloped) -> Notification | ModernRequest | Invalid:
    method, id_ = envelope.method, bytes(envelope.id)
    version = meta.version
    if method is None:
        return _NO_MODERN_METHOD
    if not id_:
        if version in MODERN_VERSIONS:
            return Notification(method=method, params=envelope.params, era="modern")
        return InvalidNotification(**version_error(version or ""))
    key = key_of(id_)
    if key is None:
        return _BAD_ID
    about = subject_of(method, params)
    wrong = _wrong_metadata(meta) or _wrong_arguments(method, envelope.params)
    if wrong is not None:
        return InvalidRequest(id=id_, era="modern", method=method, version=version, named=about, **wrong)
    return ModernRequest(
        id=id_,
        key=key,
        method=method,
        params=envelope.params,
        version=version or "",
        name=meta.name,
        capabilities=meta.capabilities,
        log_level=meta.log_level,
        named=about,
        retry=retry_of(method, params),
    )


def _wrong_arguments(method: str, params: msgspec.Raw) -> dict[str, Any] | None:
    """Return code, message and data for arguments with a key twice: parsers differ in which of the values counts."""
    try:
        if method in _WITH_ARGUMENTS:
            check_keys(params)
    except InvalidArguments as error:
        return {"code": error.code, "message": error.message, "data": error.data()}
    return None


def _wrong_metadata(meta: Meta) -> dict[str, Any] | None:
    """Return code, message and data for what is wrong with the `_meta` of a request."""
    if meta.problem:
        return {"code": INVALID_PARAMS, "message": f"_meta: {meta.problem}"}
    return None if meta.version in MODERN_VERSIONS else version_error(meta.version or "")
