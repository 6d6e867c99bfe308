"""Results of servers as clients of a revision can take them. Pure.

Since 2026-07-28 `structuredContent` may be any JSON value; 2025-06-18 and 2025-11-25 have objects only, and before that
there was none. Nearly all results can be taken as they are: that is seen by a scan of the bytes. Of the others every
member that is not named here keeps its bytes and its place.

Older parsers refuse the whole result for one content block of a kind that they do not know: their unions are strict.
Such a block becomes a text that says what it was. A kind that no revision so far has is left as it is: nobody knows who
understands it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from actors.protocol.agreement.versions import LATEST_LEGACY, LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.fitting import tool_definitions
from supervisor.service.fitting.tool_definitions import STRUCTURED_SINCE

BLOCKS_SINCE: Final = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""Kinds of blocks, and the first revision that has them (`ContentBlock` in the schema of each)."""

MARKS: Final = {
    version: tuple(encode(kind) for kind, since in BLOCKS_SINCE.items() if version < since)
    for version in (*LEGACY_VERSIONS, *MODERN_VERSIONS)
}
"""What a text has, by revision, that holds a block which clients of it do not know."""
_STRUCTURED: Final = "structuredContent"
_MARK: Final = encode(_STRUCTURED)
_NO_OBJECT: Final = re.compile(rb'"structuredContent"\s*:\s*(?![\s{])')
_PIECE_CHARS: Final = 1024 * 1024
_CALLED: Final = {version: (_MARK, *MARKS[version]) for version in LEGACY_VERSIONS}
"""What a result of a tool has, by revision, that clients of it may not take as it is."""
NO_DEFINITION: Final = msgspec.Raw(b"")

Members = dict[str, msgspec.Raw]
Known = Callable[[msgspec.Raw, str], msgspec.Raw]


class Shown(msgspec.Struct, frozen=True):
    """Who gets a result: a client of `version` that asked for `method`.

    `definition` is that of the tool that it called, if it was shown to it.
    """

    method: str
    version: str
    definition: msgspec.Raw = NO_DEFINITION

    @property
    def wrapped(self) -> bool:
        """Whether the client was told that the tool's results are objects with a `result`."""
        return tool_definitions.is_projected(self.definition, self.version)


def may_not_fit(body: bytes, to: Shown) -> bool:
    """Say whether a result may have what its client cannot take; a scan of its bytes."""
    match to.method:
        case "tools/call" if to.version <= LATEST_LEGACY and json.holds(body, _CALLED[to.version]):
            odd = _MARK in body and (to.version < STRUCTURED_SINCE or to.wrapped or _NO_OBJECT.search(body))
            return bool(odd) or mentions_unknown(body, to.version)
        case "prompts/get":
            return mentions_unknown(body, to.version)
    return False


def fit_result(body: bytes, to: Shown) -> bytes:
    """Return a result as its client can take it: the same bytes if it can.

    Raises `UnreadableJson` for what is nested too deeply to be read.
    """
    if not may_not_fit(body, to):
        return body
    try:
        members = json.read(json.MEMBERS, body)
    except json.OtherShape:  # no object: whoever reads it may judge
        return body
    if to.method == "prompts/get":
        changed = _fit_list(members, "messages", _known_message, to.version)
    else:
        changed = _fit_value(members, to.version, wrapped=to.wrapped)
        changed = _fit_list(changed, "content", fit_block, to.version)
    return body if changed is members else encode(changed)


def _fit_list(members: Members, name: str, known: Known, version: str) -> Members:
    """Return members with what is in the list `name` as a client knows it; the same object if nothing changes."""
    if name not in members or not mentions_unknown(bytes(members[name]), version):
        return members
    if (listed := json.read_or(json.ELEMENTS, members[name], None)) is None:
        return members
    fitted_list = [known(item, version) for item in listed]
    if all(new is old for new, old in zip(fitted_list, listed, strict=True)):
        return members
    return {**members, name: msgspec.Raw(encode(fitted_list))}


def _known_message(message: msgspec.Raw, version: str) -> msgspec.Raw:
    if (members := json.read_or(json.MEMBERS, message, None)) is None:
        return message
    content = members.get("content")
    block = fit_block(content, version) if content is not None else content
    return message if block is content else msgspec.Raw(encode({**members, "content": block}))


def _fit_value(members: Members, version: str, *, wrapped: bool) -> Members:
    """Return the members of a result with `structuredContent` as legacy clients of a revision take it.

    `wrapped`: the client was told that it is an object with a `result`. What such a client would lose, or has to look
    for in another place than others, it gets as a text, too, if the result has no text.
    """
    value = members.get(_STRUCTURED)
    if value is None:
        return members
    if version < STRUCTURED_SINCE:
        rest = {name: each for name, each in members.items() if name != _STRUCTURED}
        return _with_text(rest, value)
    is_object = bytes(value)[:1] == b"{"
    if is_object and not wrapped:
        return members
    inside = {**members, _STRUCTURED: msgspec.Raw(b'{"result":' + bytes(value) + b"}")}
    return inside if is_object else _with_text(inside, value)


def _with_text(members: Members, value: msgspec.Raw) -> Members:
    """Return the members of a result with a value as a text, unless it has a text, or no list of blocks."""
    if (listed := json.read_or(json.ELEMENTS, members.get("content", b"[]"), None)) is None:
        return members
    if any(json.text_at(block, "type") == "text" for block in listed):
        return members
    block = msgspec.Raw(b'{"type":"text","text":"%b"}' % b"".join(_pieces(bytes(value).decode(errors="replace"))))
    return {**members, "content": msgspec.Raw(encode([*listed, block]))}


def _pieces(text: str) -> Iterator[bytes]:
    """Yield a text as a JSON string without its quotes, in pieces between which other threads run."""
    for start in range(0, len(text), _PIECE_CHARS):
        yield encode(text[start : start + _PIECE_CHARS])[1:-1]


def mentions_unknown(text: bytes, version: str) -> bool:
    """Say whether a text may hold a block that clients of a revision do not know; a scan of its bytes."""
    return json.holds(text, MARKS[version])


def fit_block(block: msgspec.Raw, version: str) -> msgspec.Raw:
    """Return a block that clients of a revision know: the same, or a text in its place."""
    if not mentions_unknown(bytes(block), version):
        return block
    kind = json.text_at(block, "type")
    if kind not in BLOCKS_SINCE or version >= BLOCKS_SINCE[kind]:
        return block
    members = json.read(json.MEMBERS, block)
    said = _audio(members) if kind == "audio" else _link(members)
    beside = {name: members[name] for name in ("annotations", "_meta") if name in members}
    return msgspec.Raw(encode({"type": "text", "text": said, **beside}))


def _audio(members: dict[str, msgspec.Raw]) -> str:
    kind = json.text_at(members.get("mimeType")) or "of an unknown type"
    size = len(json.text_at(members.get("data")))
    return f"[audio, {kind}, {size} characters of base64, which this client cannot take]"


def _link(members: dict[str, msgspec.Raw]) -> str:
    title = json.text_at(members.get("title")) or json.text_at(members.get("name"))
    kind, description = json.text_at(members.get("mimeType")), json.text_at(members.get("description"))
    uri = json.text_at(members.get("uri"))
    shown = f"[resource{f' {title!r}' if title else ''}{f', {kind}' if kind else ''}: {uri}]"
    return f"{shown} {description}" if description else shown
