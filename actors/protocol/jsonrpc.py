"""JSON-RPC 2.0 as MCP uses it: the envelope is decoded, the cargo is not.

`params`, `result` and `error` stay `msgspec.Raw`, the bytes they arrived as, until the layer that needs them.
Ids keep their type: `1`, `"1"`, `1.0` and `true` are four different ids here, although Python's dicts confuse three of
them. (MCP 2025-11-25 basic/index "Messages"; 2026-07-28 basic/index.)
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.errors import ProtocolViolation

NO_RAW = msgspec.Raw(b"")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class Envelope(msgspec.Struct, frozen=True):
    """Any JSON-RPC message. Fields that were not there are empty `Raw`s, `method` is None."""

    jsonrpc: str = ""
    id: msgspec.Raw = NO_RAW
    method: str | None = None
    params: msgspec.Raw = NO_RAW
    result: msgspec.Raw = NO_RAW
    error: msgspec.Raw = NO_RAW

    @property
    def is_request(self) -> bool:
        """A method and an id: expects an answer."""
        return self.method is not None and bool(bytes(self.id))

    @property
    def is_notification(self) -> bool:
        """A method without an id."""
        return self.method is not None and not bytes(self.id)


class ErrorObject(msgspec.Struct, frozen=True):
    """The `error` member of a failed answer."""

    code: int
    message: str
    data: msgspec.Raw = NO_RAW


class RemoteError(Exception):
    """The peer answered with a JSON-RPC error; it is relayed, not ours."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


_envelope = msgspec.json.Decoder(Envelope)
_error = msgspec.json.Decoder(ErrorObject)
encode = msgspec.json.Encoder().encode


def decode(message: bytes) -> Envelope:
    """Decode one message. Raises `ProtocolViolation` for anything that is not a JSON-RPC 2.0 object."""
    try:
        found = _envelope.decode(message)
        if not message.isascii():
            message.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolViolation(f"not a JSON-RPC message: {type(error).__name__}") from None
    if found.jsonrpc != "2.0":
        raise ProtocolViolation('not a JSON-RPC message: "jsonrpc" is not "2.0"')
    return found


def decode_error(raw: msgspec.Raw) -> ErrorObject:
    """Decode an `error` member; what is not one becomes an internal error that says so."""
    try:
        return _error.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return ErrorObject(INTERNAL_ERROR, "the server answered with a malformed error")


def request(id_: bytes, method: str, params: bytes | None) -> bytes:
    """Return the bytes of a request; `id_` is JSON text."""
    head = b'{"jsonrpc":"2.0","id":' + id_ + b',"method":' + encode(method)
    return head + (b"}" if params is None else b',"params":' + params + b"}")


def notification(method: str, params: bytes | None = None) -> bytes:
    """Return the bytes of a notification."""
    head = b'{"jsonrpc":"2.0","method":' + encode(method)
    return head + (b"}" if params is None else b',"params":' + params + b"}")


def success(id_: bytes, result: bytes) -> bytes:
    """Return the bytes of an answer; `result` is passed through as it is."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"result":' + result + b"}"


def failure(id_: bytes, code: int, message: str, data: Any = None) -> bytes:
    """Return the bytes of an error answer; `id_` is JSON text, `null` where the request's id is not known."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"error":' + encode(error) + b"}"
