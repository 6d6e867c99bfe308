"""JSON-RPC 2.0 as MCP uses it: the envelope is decoded, the cargo is not.

`params`, `result` and `error` stay `msgspec.Raw`, the bytes they arrived as, until the layer that needs them.
Ids keep their type: `1`, `"1"`, `1.0` and `true` are four different ids here, although Python's dicts confuse three of
them. (MCP 2025-11-25 basic/index "Messages"; 2026-07-28 basic/index.)
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from actors.errors import ProtocolViolation
from actors.protocol.wire import json
from actors.protocol.wire.weight import LARGE_BYTES, examine

NO_RAW = json.NO_RAW
MAX_BATCH = 64
"""How many messages a batch may have."""
MAX_CODE = 2**53 - 1
"""What every client can read: a number of JSON is a double to many of them (RFC 8259 section 6)."""
_MAX_SAID_CHARS = 200
_MAX_MENDED_BYTES = 4 * 1024 * 1024
_MAX_SURROGATES = 20_000
_MAX_BACKSLASHES = 64
_SURROGATES = re.compile(rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})")
"""Escapes of UTF-16 surrogates: pairs (12 bytes), and those that lack their other half (6 bytes)."""
_batch = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Batch",
        [(f"message_{number}", msgspec.Raw, NO_RAW) for number in range(MAX_BATCH)],
        array_like=True,
        forbid_unknown_fields=True,
    )
)
"""An array as a struct: what is over the limit is refused without an object for each of a million members."""
encode = msgspec.json.Encoder().encode
FIRST_IDS: Final = range(2**29, 2**30)
"""What the first of many may be: those that follow fit into 32 bits for long, and some servers read no more."""
_MAX_ID_BYTES: Final = 64


class JsonRpcMessage(msgspec.Struct, frozen=True):
    """Any JSON-RPC message. Fields that were not there are empty `Raw`s, `method` is None."""

    jsonrpc: msgspec.Raw = NO_RAW
    id: msgspec.Raw = NO_RAW
    method: str | None = None
    params: msgspec.Raw = NO_RAW
    result: msgspec.Raw = NO_RAW
    error: msgspec.Raw = NO_RAW

    @property
    def is_request(self) -> bool:
        return self.method is not None and bool(bytes(self.id))


class ErrorObject(msgspec.Struct, frozen=True):
    """The `error` member of a failed answer."""

    code: int
    message: str
    data: msgspec.Raw = NO_RAW


class RemoteError(Exception):
    """The peer answered with a JSON-RPC error; it is relayed, not ours. `server` is its name, where that is known.

    `waited_s`: how long the request waited to be sent, as far as that is known.
    """

    def __init__(self, error: ErrorObject, server: str = "", waited_s: float = 0.0) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error
        self.server = server
        self.waited_s = waited_s


_envelope = msgspec.json.Decoder(JsonRpcMessage)
_error = msgspec.json.Decoder(ErrorObject)


def decode(message: bytes) -> JsonRpcMessage:
    """Decode one message. Raises `ProtocolViolation`, which says what is wrong with it; `TooHeavy` is one.

    A large one takes up to 0.1 s, in steps between which other threads run.

    A lone surrogate (`"\\ud83d"`, half an emoji: a text cut by a program that counts in UTF-16) is read as U+FFFD, as
    browsers and Go do: it is JSON by its grammar (RFC 8259 section 8.2), but has no UTF-8, and half of the clients
    refuse it.
    """
    if len(message) >= LARGE_BYTES:
        examine(message)
    try:
        try:
            envelope = _envelope.decode(message)
        except msgspec.DecodeError as error:
            mended = None if isinstance(error, msgspec.ValidationError) else without_lone_surrogates(message)
            if mended is None:
                raise
            envelope = _envelope.decode(mended)
        if len(message) < LARGE_BYTES and not message.isascii():
            message.decode()
    except msgspec.DecodeError as error:
        raise ProtocolViolation(f"a message that is no JSON-RPC: {error}") from None
    except UnicodeDecodeError:
        raise ProtocolViolation("a message that is not UTF-8") from None
    except RecursionError:
        raise ProtocolViolation("a message that is nested too deeply") from None
    if bytes(envelope.jsonrpc) != b'"2.0"':
        raise ProtocolViolation('a message whose "jsonrpc" is not "2.0"')
    return envelope


def without_lone_surrogates(message: bytes) -> bytes | None:
    """Return JSON text with U+FFFD for escaped lone surrogates; None if it has none, or mending it takes too long."""
    if len(message) > _MAX_MENDED_BYTES:
        return None
    parts, end = [], 0
    for number, surrogate in enumerate(_SURROGATES.finditer(message)):
        before = message[max(0, surrogate.start() - _MAX_BACKSLASHES) : surrogate.start()]
        backslashes = len(before) - len(before.rstrip(b"\\"))
        if number == _MAX_SURROGATES or backslashes == _MAX_BACKSLASHES:
            return None
        if len(surrogate[0]) == 6 and backslashes % 2 == 0:
            parts += [message[end : surrogate.start()], b"\\ufffd"]
            end = surrogate.end()
    return b"".join([*parts, message[end:]]) if parts else None


def members(batch: bytes) -> list[bytes]:
    """Return the messages of a batch. Raises `ProtocolViolation` for no batch, and for one of more than `MAX_BATCH`."""
    try:
        messages = msgspec.structs.astuple(json.read(_batch, batch))
    except json.UnreadableJson as error:
        raise ProtocolViolation(f"a batch that cannot be read: {error}") from None
    return [bytes(message) for message in messages if bytes(message)]


def decode_error(raw: msgspec.Raw) -> ErrorObject:
    """Decode an `error` member. Raises `ProtocolViolation` for what is not one, with what it says all the same."""
    try:
        error = json.read(_error, raw)
    except json.UnreadableJson:
        raise ProtocolViolation(f"an error without a proper code or message{_words_of(raw)}") from None
    if abs(error.code) > MAX_CODE:
        raise ProtocolViolation(f"an error whose code is out of range{_words_of(raw)}")
    return error


def _words_of(error: msgspec.Raw) -> str:
    words = json.text_at(error), json.text_at(error, "code"), json.text_at(error, "message")
    said = " ".join(word[:_MAX_SAID_CHARS] for word in words if word)
    return f": {said}" if said else ""


def request(id_: bytes, method: str, params: bytes | None) -> bytes:
    return request_head(id_, method) + (b"}" if params is None else b',"params":' + params + b"}")


def request_head(id_: bytes, method: str) -> bytes:
    """Return a request up to its params, for whoever does not want to copy those."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"method":' + encode(method)


def notification(method: str, params: bytes | None = None) -> bytes:
    head = b'{"jsonrpc":"2.0","method":' + encode(method)
    return head + (b"}" if params is None else b',"params":' + params + b"}")


def success(id_: bytes, result: bytes) -> bytes:
    return b"".join([b'{"jsonrpc":"2.0","id":', id_, b',"result":', result, b"}"])  # copied once


def failure(id_: bytes, code: int, message: str, data: Any = None) -> bytes:
    """Return the bytes of an error answer; `id_` is JSON text, `null` where the request's id is not known."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"error":' + encode(error) + b"}"


def canonical(id_: bytes) -> bytes:
    """Return an id or a token (JSON text) as we write ours: `7` for `7`, `7.0`, `7e0` and `"7"`.

    The ids of our requests, which are the tokens of their progress, too, are integers. MCP allows strings and integers
    (2025-11-25 and 2026-07-28, basic "Requests"). The official SDKs but Java's send integers, so there are servers that
    read nothing else; and the clients of three take an answer that has such an id as a string, so there are servers
    that write it as one. Hence one integer is one id, however it is written.

    Empty for what is no integer.
    """
    if len(id_) > _MAX_ID_BYTES:
        return b""
    if id_.isdigit():
        return id_
    match json.read_or(json.VALUE, id_, None):
        case str(text) if text.isascii() and text.isdigit():
            return text.encode()
        case float(number) if number.is_integer():
            return b"%d" % number
        case _:
            return b""
