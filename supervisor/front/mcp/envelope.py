"""The members of a client's message that decide what becomes of it: id, modern metadata, elements of a batch. PURE.

Rules of this file:
- Nothing is made an object that is not looked at: arguments, capabilities and results stay the bytes they arrived as.
- What is looked at is bounded: the length of an id, the elements of an array, what is shown of a text.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol.jsonrpc import NO_RAW
from actors.protocol.versions import META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_VERSION
from supervisor.front.mcp.verdict import Key

MAX_BATCH: Final = 50
MAX_ID_BYTES: Final = 512
MAX_CLIENT_NAME_CHARS: Final = 128
MAX_SHOWN_CHARS: Final = 200
"""Of what a client sent, in what it is told about it."""

LOG_LEVELS: Final = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})


class Meta(
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


class Enveloped(msgspec.Struct, frozen=True, rename={"meta": "_meta", "task_id": "taskId"}):
    """The members of parameters that a header may repeat, as JSON texts; empty where there are none."""

    meta: msgspec.Raw = NO_RAW
    name: msgspec.Raw = NO_RAW
    uri: msgspec.Raw = NO_RAW
    task_id: msgspec.Raw = NO_RAW


class _ClientInfo(msgspec.Struct, frozen=True):
    name: str = ""


_key: msgspec.json.Decoder[Key] = msgspec.json.Decoder(Key)
_meta = msgspec.json.Decoder(Meta)
_enveloped = msgspec.json.Decoder(Enveloped)
_client_info = msgspec.json.Decoder(_ClientInfo)
_text = msgspec.json.Decoder(str)
# An array of any length would be read to its end: two million elements, each made an object, take 150 ms.
_batch = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Batch", [(f"element{number}", msgspec.Raw, NO_RAW) for number in range(MAX_BATCH + 1)], array_like=True
    )
)
BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def envelope_of(params: msgspec.Raw) -> tuple[Meta, Enveloped] | None:
    """Return the modern metadata of these parameters; None if they do not name a version there."""
    text = bytes(params)
    if b"io.modelcontextprotocol/" not in text and not _has_odd_escapes(text):  # most legacy requests end here
        return None
    try:
        enveloped = _enveloped.decode(text)
        meta = _meta.decode(enveloped.meta)
    except BROKEN:
        return None
    return (meta, enveloped) if bytes(meta.version) else None


def _has_odd_escapes(text: bytes) -> bool:
    """Say whether a key may be spelled in another way: that takes one of two escapes."""
    return b"\\" in text and (b"\\u" in text or b"\\/" in text)


def batch_elements(text: msgspec.Raw | bytes) -> tuple[msgspec.Raw, ...] | None:
    """Return the elements of a JSON array, of a longer one `MAX_BATCH` and one more; None if it is not an array."""
    try:
        batch = _batch.decode(text)
    except BROKEN:
        return None
    return tuple(element for element in msgspec.structs.astuple(batch) if bytes(element))


def first_byte(raw: msgspec.Raw) -> bytes:
    """Return the first byte of a JSON text, which says what it is; empty if there is none."""
    return bytes(memoryview(raw)[:1])


def key_of(id_: bytes) -> Key | None:
    """Return the value of an id, None if the JSON text is no id. A string and an integer are never equal."""
    try:
        return _key.decode(id_) if len(id_) <= MAX_ID_BYTES else None
    except msgspec.MsgspecError:
        return None


def text_of(raw: msgspec.Raw) -> str | None:
    """Return the value of a JSON string, None if it is something else."""
    try:
        return _text.decode(raw)
    except BROKEN:
        return None


def client_name(raw: msgspec.Raw) -> str:
    """Return what a client calls itself, cut; empty if it does not say."""
    try:
        return _client_info.decode(raw).name[:MAX_CLIENT_NAME_CHARS]
    except BROKEN:
        return ""
