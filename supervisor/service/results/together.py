"""The results of several calls as one result, in their order. Pure.

Before the blocks of each call stands a text with its number, its tool, and a mark that is made for the request: a
server that writes such a text into its own result, to speak for another one, does not know the mark. The blocks
themselves stay as they are.
`structuredContent` has the same once more for programs, and for clients that show a model nothing else: of each result
its own structured content, or its text. What is no text, or a text that fits no model, is in `content` alone.

Results may be large, and there are several: they are joined as bytes, which gives up the lock, and never encoded anew.

The whole has failed only if each of the calls has: models of the APIs with parallel calls get a result of each call
with a word of its own about failure, and what a client does with one that failed must not be done to those that did
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.results.cutting import LINE, STRUCTURED, text_of

META_KEY: Final = "mcpvisor/results"
"""In `_meta`: that of each of the results, null where it has none."""
MAX_TEXT_BYTES: Final = 256 * 1024
"""A longer text is not there twice."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a call: its result, as a call by itself would have it. `waits`: it has asked something first."""

    path: str
    body: bytes
    waits: bool = False


class Part(msgspec.Struct, frozen=True):
    """What a result is in the whole, as JSON: its blocks after a label, and the members of its entry after the path."""

    label: str
    blocks: list[msgspec.Raw]
    entry: dict[str, Any]
    large: tuple[bytes, msgspec.Raw | bytes] | None
    meta: msgspec.Raw | None = None
    failed: bool = False


def part_of(outcome: Outcome) -> Part:
    """Return what a result is in the whole."""
    path, members = outcome.path, json.read_or(json.MEMBERS, outcome.body, None)
    content = members.get("content", b"[]") if members is not None else b"{}"
    blocks, opened = json.read_or(json.ELEMENTS, content, None), json.read_or(json.OBJECTS, content, None)
    if members is None or blocks is None or opened is None:  # no result of a tool, but what a server gave for one
        return Part(path, [], {"tool_path": path}, (b"result", outcome.body))
    failed = bytes(members.get("isError", b"")) == b"true"
    entry: dict[str, Any] = {"tool_path": path, **({"isError": True} if failed else {})}
    said = [text_of(block) for block in opened]
    texts = [text for text in said if text is not None]
    beside = [json.text_at(block.get("type")) for block, text in zip(opened, said, strict=True) if text is None]
    large: tuple[bytes, msgspec.Raw | bytes] | None = None
    if STRUCTURED in members:
        large = STRUCTURED.encode(), members[STRUCTURED]
    elif sum(map(len, texts)) <= MAX_TEXT_BYTES:
        large = b"text", b'"%b"' % LINE.join(texts)
    else:
        beside.insert(0, "text")
    if beside:
        entry["in_content"] = beside
    word = " failed" if failed else " waits for an answer" if outcome.waits else ""
    return Part(f"{path}{word}", blocks, entry, large, members.get("_meta"), failed)


def together(parts: Sequence[Part], order: Sequence[int], head: bytes, mark: str) -> bytes:
    """Return one result; `order`: of each call asked for, the place of its part. `head`: what it has beside these.

    `mark` is in each label, and nowhere else.
    """
    content: list[bytes] = []
    entries: list[bytes] = []
    for number, place in enumerate(order, 1):
        part, first = parts[place], order.index(place) + 1
        entries.append(b",")
        if first < number:
            path = part.entry["tool_path"]
            content += [b",", _label(f"[{number} {mark}] {path}: the same as [{first}], made once")]
            entries.append(encode({"tool_path": path, "same_as": first}))
            continue
        content += [b",", _label(f"[{number} {mark}] {part.label}")]
        for block in part.blocks:
            content += [b",", bytes(block)]
        entry = encode(part.entry)
        if part.large is not None:
            name, value = part.large
            entries += [entry[:-1], b',"%b":' % name, bytes(value), b"}"]
        else:
            entries.append(entry)
    beside: dict[str, Any] = {**json.members(head)}
    if any(part.meta is not None for part in parts):
        metas = [parts[place].meta if order.index(place) == at else None for at, place in enumerate(order)]
        beside["_meta"] = {**json.members(beside.get("_meta")), META_KEY: metas}
    if has_failed(parts):
        beside["isError"] = True
    begin = encode(beside)[:-1] + (b"," if beside else b"")
    return b"".join([begin, b'"content":[', *content[1:], b'],"structuredContent":{"results":[', *entries[1:], b"]}}"])


def has_failed(parts: Sequence[Part]) -> bool:
    """Say whether the whole has failed: if each of the calls has."""
    return all(part.failed for part in parts)


def _label(text: str) -> bytes:
    return encode({"type": "text", "text": text})
