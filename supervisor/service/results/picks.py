"""Of a result only what its caller picked by JSON paths, and what that leaves out. Pure.

One path gives what stands there: a value, or a list where it has places for many. Several paths, or several names in
one step, give the result in its own shape with nothing else in it: a row keeps its names, so none is taken for
another's where some rows lack a member. What of the paths is not there is told with the names that are.

A result that is no JSON, and one of which no path finds anything, stays whole: the tool ran, and may not run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.lenient_json import plain, texts
from supervisor.metatools.texts import escape
from supervisor.service.results import paths
from supervisor.service.results.cutting import STRUCTURED, Apart, take_apart
from supervisor.service.results.long_text import is_light, tokens_of, unquote
from supervisor.service.results.paths import Path, Place

MAX_PATHS: Final = 20
MAX_SELECTORS: Final = 128
"""Of all paths: each may look at as many values as a path selects."""
MAX_BYTES: Final = 16_384
"""Of the paths, as they were written."""
META_KEY: Final = "mcpvisor/picked"
"""In `_meta` of what was picked: how many bytes that has, and how many the result had."""
_APART: Final = re.compile(r"\s*,\s*(?=\$)")
_LEVELS, _NAMES, _NAME_CHARS, _COMPARED = 6, 8, 40, 100
_MISSING, _MISSING_CHARS = 3, 600
"""So many paths of which nothing is there are told of, by name and with what is there instead."""

Tree = dict[str | int, Any] | None
"""What of a value is picked: all of it, or of some members and elements what is picked of them."""


class Picked(msgspec.Struct, frozen=True, eq=False):
    """`body` is the result as it goes on. `told` says what was left out, or why nothing was picked; `whole`: of what.

    `tokens`: about how many that spares a model.
    """

    body: bytes
    told: str = ""
    whole: Apart | None = None
    tokens: int = 0


def read_picks(raw: msgspec.Raw) -> tuple[Path, ...]:
    """Read the paths of a call; none for nothing. Raises `InvalidArguments`."""
    if len(raw) > MAX_BYTES:
        raise InvalidArguments(f"'pick' has {len(raw)} bytes, {MAX_BYTES} are the most; nothing was called")
    value = plain(raw) if bytes(raw) else None
    if isinstance(value, str) and value.lstrip()[:1] == "[" and isinstance(listed := _listed(value), list):
        value = listed
    said = texts(value)
    if value not in (None, "", []) and not said:
        raise InvalidArguments(f"'pick' is a list of JSON paths; {paths.HOW}")
    parts = dict.fromkeys(part for text in said if text.strip() for part in _APART.split(text.strip()))
    if len(parts) > MAX_PATHS:
        text = f"'pick' has {len(parts)} paths, {MAX_PATHS} are the most; $.items[*]['a','b'] has several names"
        raise InvalidArguments(text)
    try:
        wanted = tuple(map(paths.read, parts))
    except paths.BadPath as error:
        raise InvalidArguments(f"'pick': {error}; nothing was called") from None
    if (there := selectors(wanted)) > MAX_SELECTORS:
        text = f"'pick' has {there} names and places, {MAX_SELECTORS} are the most; nothing was called"
        raise InvalidArguments(text)
    return wanted


def selectors(wanted: Sequence[Path]) -> int:
    """Return how many there are in all paths: by so much more than to be read once a result costs."""
    return sum(path.selectors for path in wanted)


def _listed(text: str) -> Any:
    return json.read_or(json.VALUE, text.encode(errors="replace"), None)


def pick(body: bytes, wanted: Sequence[Path]) -> Picked:
    """Return of the result of a call what is wanted; one that is none, or that says it failed, as it is."""
    apart = take_apart(body)
    if apart is None or "content" not in apart.members or bytes(apart.members.get("isError", b"")) == b"true":
        return Picked(body)
    try:
        readings = [*_readings(apart)]
    except paths.BadPath as error:
        return Picked(body, f"Nothing was picked: {error}.")
    if not readings:
        return Picked(body, "Nothing was picked: the result is no JSON.")
    tries = [_Try(value, wanted) for value in readings]
    best = max(tries, key=lambda each: len(each.found))  # the first of equals
    missing = "; ".join(text[:_MISSING_CHARS] for text in best.missing[:_MISSING])
    if (more := len(best.missing) - _MISSING) > 0:
        missing = f"{missing}; and {more} more"
    if not best.found:
        return Picked(body, f"Nothing was picked: {missing}.")
    value, size = best.picked(), len(apart.structured or apart.said)
    text = value.encode(errors="replace") if isinstance(value, str) else encode(value)
    left_out = "; ".join(islice(_left_out(best.value, best.tree), _LEVELS))
    told = f"Picked {len(text):,} of {size:,} bytes. Left out: {left_out}." if left_out else ""
    told = " ".join(filter(None, (told, f"Not there: {missing}." if missing else "")))
    members: dict[str, Any] = {**apart.members, "content": [{"type": "text", "text": text.decode()}, *apart.others]}
    about = {"bytes": size, "picked_bytes": len(text)}
    members["_meta"] = {**json.members(apart.members.get("_meta")), META_KEY: about}
    if apart.structured:
        members[STRUCTURED] = {"picked": value}
    return Picked(encode(members), told, apart if left_out else None, max(0, apart.tokens - tokens_of(text)))


def with_note(body: bytes, note: str, key: str = "note") -> bytes:
    """Return a result with a line more in its structured content, as some clients show a model only that.

    What has none, or none that is an object, is returned as it is.
    """
    members = json.read_or(json.MEMBERS, body, {})
    structured = json.read_or(json.MEMBERS, members.get(STRUCTURED, b""), None)
    if structured is None:
        return body
    before = json.text_at(structured.get(key))
    return encode({**members, STRUCTURED: {**structured, key: f"{before} {note}" if before else note}})


class _Try:
    """What the paths find in one reading of a result."""

    def __init__(self, value: Any, wanted: Sequence[Path]) -> None:
        self.value = value
        self._wanted = wanted
        self.found = list[list[tuple[Place, Any]]]()
        self.missing = list[str]()
        left = paths.MAX_NODES
        for path in wanted:
            try:
                found = paths.find(value, path)
            except paths.BadPath as error:
                self.missing.append(str(error))
                continue
            if len(found) > left:
                self.missing.append(f"the paths select over {paths.MAX_NODES} values; use a range, as in [0:10]")
                continue
            left -= len(found)
            self.found.append(found)
        self.tree = _tree(place for found in self.found for place, _ in found)

    def picked(self) -> Any:
        (first, *more) = self._wanted
        if more or first.has_choices:
            return _build(self.value, self.tree)
        nodes = [node for _, node in self.found[0]]
        return nodes[0] if first.is_singular else nodes


def _readings(apart: Apart) -> Iterator[Any]:
    """Yield what a path may be meant of: the structured content, what it wraps, the texts that are JSON.

    Structured content had to be an object, so some servers wrap it in one with a single member, and their texts do not.
    Several texts are a list of what each of them holds. Raises `BadPath` for what is too large.
    """
    if not (is_light(apart.structured) and is_light(apart.said)) or apart.size > len(apart.said):
        raise paths.BadPath("the result is too large to be read as JSON")
    structured = json.read_or(json.VALUE, apart.structured, None) if apart.structured else None
    if isinstance(structured, dict | list):
        yield structured
    if isinstance(structured, dict) and len(structured) == 1:
        yield from (value for value in structured.values() if isinstance(value, dict | list))
    values = [json.read_or(json.VALUE, unquote(text)[0], None) for text in apart.texts]
    held = [value for value in values if isinstance(value, dict | list)]
    if held:
        yield held[0] if len(held) == 1 else held


def _tree(places: Iterator[Place]) -> Tree:
    root: dict[str | int, Any] = {}
    for place in places:
        if not place:
            return None
        node = root
        for key in place[:-1]:
            node = node.setdefault(key, {})
            if node is None:  # all of it is picked by another path
                break
        else:
            node[place[-1]] = None
    return root


def _build(value: Any, tree: Tree) -> Any:
    if tree is None:
        return value
    if isinstance(value, dict):
        return {key: _build(value[key], below) for key, below in tree.items()}
    return [_build(value[key], tree[key]) for key in sorted(tree)]


class _Level:
    """What is there, and what of it is picked, at all places that differ only in their indices."""

    def __init__(self) -> None:
        self.there = self.picked = 0
        self.names = dict[str, None]()
        self.taken = set[str | int]()

    def add(self, value: Any, tree: dict[str | int, Any]) -> None:
        if isinstance(value, list):
            self.there += len(value)
            self.picked += len(tree)
            return
        self.names.update(dict.fromkeys(islice(value, _COMPARED)))
        self.taken.update(tree)

    def told(self) -> str:
        if self.there > self.picked:
            return f"{self.there - self.picked:,} of {self.there:,} elements"
        names = [name for name in self.names if name not in self.taken]
        shown = [escape(name[:_NAME_CHARS]) for name in names[:_NAMES]]
        more = len(names) - len(shown)
        return f"{', '.join(shown)}{f' and {more} more' if more else ''}"


def _left_out(value: Any, tree: Tree) -> Iterator[str]:
    """Yield what of each level of a value is not picked, from the top."""
    nodes = [("$", value, tree)]
    while nodes:
        levels, below = dict[str, _Level](), list[tuple[str, Any, Tree]]()
        for where, each, taken in nodes:
            if taken is None:
                continue
            levels.setdefault(where, _Level()).add(each, taken)
            inner = isinstance(each, list)
            below += [(f"{where}[*]" if inner else f"{where}.{key}", each[key], taken[key]) for key in taken]
        yield from (
            f"of {escape(where[:_COMPARED])} {said}" for where, level in levels.items() if (said := level.told())
        )
        nodes = below
