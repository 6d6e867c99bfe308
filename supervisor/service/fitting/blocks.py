"""Content blocks of kinds that an older client does not know, as texts that say what they were. Pure.

Older parsers refuse the whole result for one such block: their unions are strict. A kind that no revision so far has is
left as it is: nobody knows who understands it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

SINCE: Final = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""Kinds of blocks, and the first revision that has them (`ContentBlock` in the schema of each)."""

MARKS: Final = {
    version: tuple(encode(kind) for kind, since in SINCE.items() if version < since)
    for version in (*LEGACY_VERSIONS, *MODERN_VERSIONS)
}
"""What a text has, by revision, that holds a block which clients of it do not know."""
LARGE_BYTES: Final = 65_536
MAX_QUOTES: Final = 4096


class _Kind(msgspec.Struct):
    kind: str = msgspec.field(name="type")


_kind = msgspec.json.Decoder(_Kind)


def holds(text: bytes, marks: tuple[bytes, ...]) -> bool:
    """Say whether a text has one of some marks; each begins with a quote.

    A large text is mostly one string with few quotes: to go from one to the next is faster than to look for each mark.
    """
    place = 0
    if len(text) > LARGE_BYTES:
        place = -1
        for _ in range(MAX_QUOTES):
            place = text.find(b'"', place + 1)
            if place < 0 or text.startswith(marks, place):
                return place >= 0
    return any(text.find(mark, place) >= 0 for mark in marks)


def kind_of(block: msgspec.Raw) -> str:
    return json.read_or(_kind, block, _Kind("")).kind


def mentions_unknown(text: bytes, version: str) -> bool:
    """Say whether a text may hold a block that clients of a revision do not know; a scan of its bytes."""
    return holds(text, MARKS[version])


def fit(block: msgspec.Raw, version: str) -> msgspec.Raw:
    """Return a block that clients of a revision know: the same, or a text in its place."""
    if not mentions_unknown(bytes(block), version):
        return block
    kind = kind_of(block)
    if kind not in SINCE or version >= SINCE[kind]:
        return block
    members = json.read(json.MEMBERS, block)
    said = _audio(members) if kind == "audio" else _link(members)
    beside = {name: members[name] for name in ("annotations", "_meta") if name in members}
    return msgspec.Raw(encode({"type": "text", "text": said, **beside}))


def _audio(members: dict[str, msgspec.Raw]) -> str:
    kind = _text(members, "mimeType") or "of an unknown type"
    return f"[audio, {kind}, {len(_text(members, 'data'))} characters of base64, which this client cannot take]"


def _link(members: dict[str, msgspec.Raw]) -> str:
    title = _text(members, "title") or _text(members, "name")
    kind, description = _text(members, "mimeType"), _text(members, "description")
    shown = f"[resource{f' {title!r}' if title else ''}{f', {kind}' if kind else ''}: {_text(members, 'uri')}]"
    return f"{shown} {description}" if description else shown


def _text(members: dict[str, Any], name: str) -> str:
    return json.read_or(json.STRING, members.get(name, b""), "")
