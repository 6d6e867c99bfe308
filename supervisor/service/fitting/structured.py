"""`structuredContent` for legacy clients: an object, or for the oldest none at all. Pure.

Since 2026-07-28 it may be any JSON value; 2025-06-18 and 2025-11-25 have objects only, and before that there was none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from actors.protocol.agreement.versions import LATEST_LEGACY
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.fitting.blocks import kind_of

SINCE: Final = "2025-06-18"
"""The first revision that has `structuredContent`, and `outputSchema` of tools."""

MARK: Final = b'"structuredContent"'
_NAME: Final = "structuredContent"
_PIECE_CHARS: Final = 1024 * 1024
_NO_OBJECT: Final = re.compile(rb'"structuredContent"\s*:\s*(?![\s{])')

Members = dict[str, msgspec.Raw]


def takes_objects_only(version: str) -> bool:
    """Say whether clients of a revision take `structuredContent` if it is an object."""
    return SINCE <= version <= LATEST_LEGACY


def may_not_fit(body: bytes, version: str, *, wrapped: bool) -> bool:
    """Say whether a result that has `MARK` may have what legacy clients of a revision cannot take."""
    return wrapped or version < SINCE or _NO_OBJECT.search(body) is not None


def fit(members: Members, version: str, *, wrapped: bool) -> Members:
    """Return the members of a result with `structuredContent` as legacy clients of a revision take it.

    `wrapped`: the client was told that it is an object with a `result`, see `output_schemas`. What such a client would
    lose, or has to look for in another place than others, it gets as a text, too, if the result has no text.
    """
    value = members.get(_NAME)
    if value is None:
        return members
    if version < SINCE:
        rest = {name: each for name, each in members.items() if name != _NAME}
        return _with_text(rest, value)
    is_object = bytes(value)[:1] == b"{"
    if is_object and not wrapped:
        return members
    inside = {**members, _NAME: msgspec.Raw(b'{"result":' + bytes(value) + b"}")}
    return inside if is_object else _with_text(inside, value)


def _with_text(members: Members, value: msgspec.Raw) -> Members:
    """Return the members of a result with a value as a text, unless it has a text, or no list of blocks."""
    if (blocks := json.read_or(json.ELEMENTS, members.get("content", b"[]"), None)) is None:
        return members
    if any(kind_of(block) == "text" for block in blocks):
        return members
    block = msgspec.Raw(b'{"type":"text","text":"%b"}' % b"".join(_pieces(bytes(value).decode(errors="replace"))))
    return {**members, "content": msgspec.Raw(encode([*blocks, block]))}


def _pieces(text: str) -> Iterator[bytes]:
    """Yield a text as a JSON string without its quotes, in pieces between which other threads run."""
    for start in range(0, len(text), _PIECE_CHARS):
        yield encode(text[start : start + _PIECE_CHARS])[1:-1]
