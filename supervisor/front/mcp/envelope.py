"""The members of a client's message that decide what becomes of it: id, modern metadata, elements of a batch. Pure.

Rules of this file:
- Nothing is made an object that is not looked at: arguments, capabilities and results stay the bytes they arrived as.
- What is looked at is bounded: the length of an id, the elements of an array, what is shown of a text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from actors.codes import MAY_BE_NAMED_BY, NAMED_BY
from actors.protocol.agreement.versions import META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION
from actors.protocol.asking.input_required import METHODS, RESPONSES, STATE, Retry
from actors.protocol.exchanges import LogLevel
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import NO_RAW, encode

MAX_BATCH: Final = 50
MAX_ID_BYTES: Final = 512
MAX_KNOWN: Final = 256
MAX_KNOWN_BYTES: Final = 1024
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
_batch = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Batch", [(f"element{number}", msgspec.Raw, NO_RAW) for number in range(MAX_BATCH + 1)], array_like=True
    )
)
_MOST_BYTES_PER_CHAR: Final = 6
"""An ASCII character takes at most so many in JSON."""


def envelope_of(params: msgspec.Raw) -> tuple[Meta, Enveloped] | None:
    """Return the modern metadata of these parameters; None if they do not name a version there."""
    text = bytes(params)
    # Most legacy requests end here. A key may be spelled in another way, but that takes one of two escapes.
    if b"io.modelcontextprotocol/" not in text and not (b"\\" in text and (b"\\u" in text or b"\\/" in text)):
        return None
    try:
        enveloped = json.read(_enveloped, text)
        said = bytes(enveloped.meta)
        meta = _known_meta(said) if len(said) <= MAX_KNOWN_BYTES else _read_meta(said)
    except json.UnreadableJson:
        return None
    return None if meta is None else (meta, enveloped)


def _read_meta(text: bytes) -> Meta | None:
    """Return what a `_meta` says, None if it names no version. Raises `UnreadableJson`."""
    meta = json.read(_meta, text)
    if not meta.version:
        return None
    version, level, problem = text_of(meta.version), log_level(meta.log_level), ""
    if version is None:
        problem = f'"{META_VERSION}" must be a string'
    elif not meta.capabilities:
        problem = f'"{META_CAPABILITIES}" is missing'
    elif first_byte(meta.capabilities) != b"{":
        problem = f'"{META_CAPABILITIES}" must be an object'
    elif meta.log_level and level is None:  # null is no level either: the schema has no null
        problem = f'"{META_LOG_LEVEL}" is not a level'
    return Meta(version, _client_name(meta.client_info), meta.capabilities, level, problem)


_known_meta = lru_cache(maxsize=MAX_KNOWN)(_read_meta)


def batch_elements(text: msgspec.Raw | bytes) -> tuple[msgspec.Raw, ...] | None:
    """Return the elements of a JSON array, of a longer one `MAX_BATCH` and one more; None if it is not an array."""
    if (batch := json.read_or(_batch, text, None)) is None:
        return None
    return tuple(element for element in msgspec.structs.astuple(batch) if bytes(element))


def first_byte(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])


def key_of(id_: bytes) -> Key | None:
    """Return the value of an id, None if the JSON text is no id. A string and an integer are never equal."""
    return json.read_or(_key, id_, None) if len(id_) <= MAX_ID_BYTES else None


def text_of(raw: msgspec.Raw) -> str | None:
    return json.read_or(json.STRING, raw, None)


def subject_of(method: str, params: Enveloped) -> str | None:
    """Return what a request of this method is about: a tool, a prompt, a resource; None where it does not say."""
    match NAMED_BY.get(method) or MAY_BE_NAMED_BY.get(method):
        case "name":
            return text_of(params.name)
        case "uri":
            return text_of(params.uri)
        case "taskId":
            return text_of(params.task_id)
    return None


def retry_of(method: str, params: Enveloped) -> Retry | None:
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
