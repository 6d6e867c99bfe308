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
- Nothing is made an object that is not looked at: ids, arguments, capabilities, results and errors stay the bytes they
  arrived as. What is looked at is bounded: the length of an id, the elements of an array, what is shown of a text.
- What a session needs is required, what a client says about itself is not: half of the world's scripts leave it out.
- Nothing here raises but the readers of parameters.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from actors.codes import INVALID_PARAMS, INVALID_REQUEST, MAY_BE_NAMED_BY, NAMED_BY, PARSE_ERROR, UNSUPPORTED_VERSION
from actors.errors import CallTooLarge, InvalidArguments, ProtocolViolation
from actors.principal import Principal
from actors.protocol.agreement.versions import (
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_VERSIONS,
    Era,
)
from actors.protocol.asking.input_required import METHODS, RESPONSES, STATE, Retry
from actors.protocol.exchanges import LOG_LEVELS, LogLevel
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.fragment import request_id
from actors.protocol.wire.jsonrpc import NO_RAW, JsonRpcMessage, encode
from actors.protocol.wire.repeated_keys import check_keys
from actors.protocol.wire.weight import LARGE_BYTES, TooHeavy, examine
from supervisor.service.client import EMPTY_OBJECT, Client

MAX_BATCH: Final = 50
_MAX_ID_BYTES: Final = 512
_MAX_KNOWN: Final = 256
_MAX_KNOWN_BYTES: Final = 1024
"""So many texts of that size are kept read: a client says the same of itself with each request."""
MAX_NAME_BYTES: Final = 128
"""Of what a client calls itself, in bytes of JSON, so that escapes count: a session id has no more room."""

Key = str | int
"""The value of a request id; a string and an integer are never equal."""


class _Meta(
    msgspec.Struct,
    frozen=True,
    rename={
        "version": META_VERSION,
        "capabilities": META_CAPABILITIES,
        "client_info": META_CLIENT_INFO,
        "log_level": META_LOG_LEVEL,
    },
):
    """The `_meta` of a modern request, as JSON texts; empty where there is none."""

    version: msgspec.Raw = NO_RAW
    capabilities: msgspec.Raw = NO_RAW
    client_info: msgspec.Raw = NO_RAW
    log_level: msgspec.Raw = NO_RAW


class Meta(msgspec.Struct, frozen=True):
    """What the `_meta` of a modern request says of its client; `problem`: what is wrong with that, empty if nothing is.

    `version` is None where it is no text, `name` is cut, `log_level` None where there is none.
    """

    version: str | None
    name: str
    capabilities: msgspec.Raw
    log_level: LogLevel | None
    problem: str


class Enveloped(
    msgspec.Struct,
    frozen=True,
    rename={"meta": "_meta", "task_id": "taskId", "responses": RESPONSES, "state": STATE},
):
    """The members of parameters that a header may repeat, and of a request made again, as JSON texts; empty where there
    are none.
    """

    meta: msgspec.Raw = NO_RAW
    name: msgspec.Raw = NO_RAW
    uri: msgspec.Raw = NO_RAW
    task_id: msgspec.Raw = NO_RAW
    responses: msgspec.Raw = NO_RAW
    state: msgspec.Raw = NO_RAW


class _ClientInfo(msgspec.Struct, frozen=True):
    name: str = ""


_key: msgspec.json.Decoder[Key] = msgspec.json.Decoder(Key)
_meta = msgspec.json.Decoder(_Meta)
_enveloped = msgspec.json.Decoder(Enveloped)
_client_info = msgspec.json.Decoder(_ClientInfo)
_log_level: msgspec.json.Decoder[LogLevel | None] = msgspec.json.Decoder(LogLevel)
# An array of any length would be read to its end: two million elements, each made an object, take 150 ms.
_batch_decoder = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Batch", [(f"element{number}", msgspec.Raw, NO_RAW) for number in range(MAX_BATCH + 1)], array_like=True
    )
)
_MOST_BYTES_PER_CHAR: Final = 6
"""An ASCII character takes at most so many in JSON."""


def _envelope_of(params: msgspec.Raw) -> tuple[Meta, Enveloped] | None:
    """Return the modern metadata of these parameters; None if they do not name a version there."""
    text = bytes(params)
    # Most legacy requests end here. A key may be spelled in another way, but that takes one of two escapes.
    if b"io.modelcontextprotocol/" not in text and not (b"\\" in text and (b"\\u" in text or b"\\/" in text)):
        return None
    try:
        enveloped = json.read(_enveloped, text)
        said = bytes(enveloped.meta)
        meta = _known_meta(said) if len(said) <= _MAX_KNOWN_BYTES else _read_meta(said)
    except json.UnreadableJson:
        return None
    return None if meta is None else (meta, enveloped)


def _read_meta(text: bytes) -> Meta | None:
    """Return what a `_meta` says, None if it names no version. Raises `UnreadableJson`."""
    meta = json.read(_meta, text)
    if not meta.version:
        return None
    version, level, problem = _text_of(meta.version), log_level(meta.log_level), ""
    if version is None:
        problem = f'"{META_VERSION}" must be a string'
    elif not meta.capabilities:
        problem = f'"{META_CAPABILITIES}" is missing'
    elif _first_byte(meta.capabilities) != b"{":
        problem = f'"{META_CAPABILITIES}" must be an object'
    elif meta.log_level and level is None:  # null is no level either: the schema has no null
        problem = f'"{META_LOG_LEVEL}" is not a level'
    return Meta(version, _client_name(meta.client_info), meta.capabilities, level, problem)


_known_meta = lru_cache(maxsize=_MAX_KNOWN)(_read_meta)


def batch_elements(text: msgspec.Raw | bytes) -> tuple[msgspec.Raw, ...] | None:
    """Return the elements of a JSON array, of a longer one `MAX_BATCH` and one more; None if it is not an array."""
    if (batch := json.read_or(_batch_decoder, text, None)) is None:
        return None
    return tuple(element for element in msgspec.structs.astuple(batch) if bytes(element))


def _first_byte(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])


def key_of(id_: bytes) -> Key | None:
    """Return the value of an id, None if the JSON text is no id. A string and an integer are never equal."""
    return json.read_or(_key, id_, None) if len(id_) <= _MAX_ID_BYTES else None


def _text_of(raw: msgspec.Raw) -> str | None:
    return json.read_or(json.STRING, raw, None)


def _subject_of(method: str, params: Enveloped) -> str | None:
    """Return what a request of this method is about: a tool, a prompt, a resource; None where it does not say."""
    match NAMED_BY.get(method) or MAY_BE_NAMED_BY.get(method):
        case "name":
            return _text_of(params.name)
        case "uri":
            return _text_of(params.uri)
        case "taskId":
            return _text_of(params.task_id)
    return None


def _retry_of(method: str, params: Enveloped) -> Retry | None:
    """Return what a request says that is made again (MCP 2026-07-28, basic/patterns/mrtr); None if it is not."""
    if method not in METHODS or not (params.responses or params.state):
        return None
    return Retry(params.responses, params.state)


def log_level(raw: msgspec.Raw) -> LogLevel | None:
    """Return the level of a JSON text, None if it is no level."""
    return json.read_or(_log_level, raw, None) if raw else None


def _client_name(raw: msgspec.Raw) -> str:
    """Return what a client calls itself, cut; empty if it does not say."""
    return fit_text(json.read_or(_client_info, raw, _ClientInfo()).name, MAX_NAME_BYTES) if raw else ""


def fit_text(text: str, limit_bytes: int) -> str:
    """Return as much of a text as takes so many bytes in JSON, its quotation marks not counted."""
    if len(text) * _MOST_BYTES_PER_CHAR <= limit_bytes and text.isascii():
        return text
    fitted = text[:limit_bytes].encode("utf-8", "replace").decode()  # half a surrogate pair has no JSON
    while json_bytes(fitted) > limit_bytes:
        fitted = fitted[:-1]
    return fitted


def json_bytes(text: str) -> int:
    """Return how many bytes a text takes in JSON, its quotation marks not counted."""
    return len(encode(text)) - 2


NULL: Final = b"null"
_MAX_SHOWN_CHARS: Final = 200
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
    code=INVALID_REQUEST, message=f'"id" must be a string or an integer of at most {_MAX_ID_BYTES} bytes'
)
_BAD_COUNT: Final = Invalid(code=INVALID_REQUEST, message=f"a batch must have 1 to {MAX_BATCH} messages")


def read(text: bytes) -> Message:
    """Return what one message is, or the answer it gets. A large one takes up to 0.5 s, in steps as a decoder does."""
    if text[:1] != b"{" and text.lstrip(b" \t\r\n")[:1] == b"[":
        return _batch(text)
    envelope = _open(text)
    if isinstance(envelope, Invalid):
        return envelope
    metadata = _envelope_of(envelope.params)
    return _legacy(envelope) if metadata is None else _modern(envelope, *metadata)


def version_error(requested: str) -> dict[str, Any]:
    data = {"supported": list(MODERN_VERSIONS), "requested": requested[:_MAX_SHOWN_CHARS]}
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
    if any(isinstance(one, JsonRpcMessage) and _envelope_of(one.params) is not None for one in opened):
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
    first = _first_byte(params)
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
    if _first_byte(error) == b"n":
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
    about = _subject_of(method, params)
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
        retry=_retry_of(method, params),
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


_MAX_REASON_CHARS: Final = 1000
"""Of a reason for which a request is cancelled."""


class ClientInfo(msgspec.Struct, frozen=True):
    """What a client calls itself; the name is cut."""

    name: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "name", fit_text(self.name, MAX_NAME_BYTES))


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `initialize` (MCP 2025-11-25, basic/lifecycle)."""

    protocol_version: str
    capabilities: msgspec.Raw = EMPTY_OBJECT
    client_info: ClientInfo = ClientInfo()

    def client(self, principal: Principal, session: str | None = None) -> Client:
        """Return who asks. A version we do not speak is answered with our newest (2025-11-25 basic/lifecycle)."""
        return Client(
            principal=principal,
            version=self.protocol_version if self.protocol_version in LEGACY_VERSIONS else LATEST_LEGACY,
            name=self.client_info.name,
            capabilities=msgspec.Raw(bytes(self.capabilities)),
            session=session,
        )


class _Cancelled(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Key | None
    reason: msgspec.Raw = msgspec.Raw(b"")


class _SetLevel(msgspec.Struct, frozen=True):
    level: msgspec.Raw = msgspec.Raw(b"")


_initialize = msgspec.json.Decoder(Initialize)
_cancelled = msgspec.json.Decoder(_Cancelled)
_text = msgspec.json.Decoder(str)
_set_level = msgspec.json.Decoder(_SetLevel)


def read_initialize(params: msgspec.Raw) -> Initialize:
    """Return the parameters of `initialize`. Raises `InvalidArguments`."""
    try:
        return json.read(_initialize, params)
    except json.UnreadableJson:
        raise InvalidArguments('"params.protocolVersion" must be a string, "clientInfo" an object') from None


def read_cancelled(params: msgspec.Raw) -> tuple[Key | None, str]:
    """Return the id of the request that `notifications/cancelled` names, None if it names none, and the reason."""
    said = json.read_or(_cancelled, params, _Cancelled(None))
    return said.request_id, json.read_or(_text, said.reason, "")[:_MAX_REASON_CHARS]


def read_level(params: msgspec.Raw) -> LogLevel:
    """Return the level that `logging/setLevel` asks for (MCP 2025-11-25, server/utilities/logging).

    Raises `InvalidArguments`.
    """
    level = log_level(json.read_or(_set_level, params, _SetLevel()).level)
    if level is None:
        raise InvalidArguments(f'"params.level" must be one of {", ".join(LOG_LEVELS)}')
    return level
