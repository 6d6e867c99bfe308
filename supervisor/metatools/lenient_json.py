"""JSON as models write it: an object inside a string, in a fence of Markdown, or as Python prints it. Pure.

- What is an object stays the bytes it was. Values of any shape may come in; nothing but `NotAnObject` is raised, and
  `RepeatedKey` for what stood in a text and has a key twice.
- Nothing here costs more than a few passes over the bytes: values are made of small things only, an object is taken
  apart only if it has few members, and Python is read only where it is short.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.repeated_keys import check_keys, check_unique

EMPTY = msgspec.Raw(b"{}")
MAX_NESTING = 3
"""How often an object may be wrapped in a string, or in another object."""
MAX_MEMBERS = 1000
"""An object with more is passed on, but not taken apart: no model writes that many by hand."""
MAX_PLAIN_BYTES = 65_536
"""Of a value that is no text; a larger one is not made into Python's objects, which take twenty times as much."""
_MAX_COLONS = 20_000
"""An upper bound of the members on all levels; where there are more, counting the members would take too long."""
_MAX_LITERAL_CHARS = 8_000
"""Python's parser takes two microseconds for each."""
_MAX_NAMES = 200
_BEGINS = ("{", "[", '"', "`")
_FENCE = "```"


class NotAnObject(Exception):
    """What was given cannot be read as a JSON object."""


class TooManyMembers(NotAnObject):
    """It is an object, but one that is too large to be taken apart."""


class Object(msgspec.Struct, frozen=True):
    """The JSON text of an object, and its members, each as it was written; None for more than are taken apart."""

    text: msgspec.Raw
    members: Members | None


_NOTHING = Object(EMPTY, {})


def members(raw: msgspec.Raw) -> Members:
    """Return the members of an object, each as it was written. Raises `NotAnObject`, `TooManyMembers`."""
    by_name = read(raw).members
    if by_name is None:
        raise TooManyMembers
    return by_name


def read(raw: msgspec.Raw) -> Object:
    """Return an object: as it is, or out of the strings it was wrapped in.

    Nothing, `null`, an empty string and an empty list are an empty object. Raises `NotAnObject` for the rest, and
    `RepeatedKey`: when the request was looked at, this was a text.
    """
    data = bytes(raw).strip()
    text = raw
    try:
        for _ in range(MAX_NESTING):
            if data[:1] != b'"':
                break
            data = _without_fence(json.read(json.STRING, data).strip()).encode()
            text = msgspec.Raw(data)
        if data[:1] == b"{":
            if text is not raw:
                check_keys(data)
            return _object(data, text)
        if data in (b"", b"null") or (data[:1] == b"[" and not data[1:].strip().removesuffix(b"]")):
            return _NOTHING
    except (json.UnreadableJson, UnicodeEncodeError):
        pass
    raise NotAnObject


def _without_fence(text: str) -> str:
    if not (text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE)):
        return text
    language, newline, rest = text.removesuffix(_FENCE).partition("\n")
    word = language.removeprefix(_FENCE).strip()
    return rest.strip() if newline and (not word or (word.isascii() and word.isalpha())) else text


def _object(data: bytes, text: msgspec.Raw) -> Object:
    """Return an object as it is, or as Python writes one. Raises `UnreadableJson`."""
    try:
        return Object(text, _members_if_few(data))
    except json.UnreadableJson:
        value = _literal(data)
        if value is None:
            raise
    data = msgspec.json.encode(value)
    return Object(msgspec.Raw(data), _members_if_few(data))


def _members_if_few(data: bytes) -> Members | None:
    """Return the members of the text of an object, if they are few. Raises `UnreadableJson`."""
    if data.count(b":") > _MAX_COLONS:
        json.read(json.ANY, data)
        return None
    by_name = json.read(json.MEMBERS, data)
    return by_name if len(by_name) <= MAX_MEMBERS else None


def _literal(data: bytes) -> dict[str, Any] | None:
    """Return what Python reads as a dict with texts for keys, single quotes and all; None if it is none."""
    if len(data) > _MAX_LITERAL_CHARS:
        return None
    try:
        tree = ast.parse(data.decode(), mode="eval")
        value = ast.literal_eval(tree)
    except (ValueError, SyntaxError, MemoryError, TypeError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            check_unique([str(key.value) for key in node.keys if isinstance(key, ast.Constant)])
    return value if isinstance(value, dict) and _is_json(value) else None


def _is_json(value: Any) -> bool:
    """Say whether a literal has nothing that JSON lacks: no sets, no bytes, no keys but texts."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)


def missing_members(given: Object, names: Sequence[str]) -> list[str]:
    """Return which names an object has no member for; of one that is not taken apart, among the first 200 names."""
    if given.members is None:
        return _missing_of_large(given.text, list(dict.fromkeys(names))[:_MAX_NAMES]) if names else []
    if given.members.keys() >= set(names):
        return []
    return [name for name in names if name not in given.members]


def _missing_of_large(raw: msgspec.Raw, names: Sequence[str]) -> list[str]:
    """Read these members alone: what is skipped costs next to nothing."""
    fields = [
        (f"member_{place}", msgspec.Raw, msgspec.field(name=name, default=EMPTY)) for place, name in enumerate(names)
    ]
    asked = msgspec.json.decode(raw, type=msgspec.defstruct("Asked", fields))
    return [name for name, value in zip(names, msgspec.structs.astuple(asked), strict=True) if value is EMPTY]


def is_prose(raw: msgspec.Raw) -> bool:
    text = plain(raw)
    return isinstance(text, str) and bool(text.strip()) and text.lstrip()[:1] not in _BEGINS


def first(given: Members, keys: Sequence[str]) -> Any:
    """Return the first of these that is there, as a plain value."""
    return next((value for key in keys if (value := plain(given.get(key))) is not None), None)


def without(given: Members, key: str) -> Members:
    return {name: value for name, value in given.items() if name != key}


def texts(value: Any) -> list[str]:
    """Return a text, or the texts of a list, as a list; nothing for anything else."""
    listed = value if isinstance(value, list) else [value]
    return listed if all(isinstance(text, str) for text in listed) else []


def number(value: Any) -> float:
    """Return a number, also out of a text; infinite where it is too large for a float, NaN where it is none."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def holds_object(raw: msgspec.Raw | None) -> bool:
    """Say whether this is an object, or a text that is one."""
    data = b"" if raw is None else bytes(raw).strip()
    if data[:1] == b'"':
        data = json.read_or(json.STRING, data, "").strip().encode(errors="replace")
    return data[:1] == b"{" and json.is_json(data)


def plain(raw: msgspec.Raw | None) -> Any:
    """Return a plain value: a text of any size, anything else of up to 64 KiB; an endless number is infinite.

    None for what is not there, larger, or not JSON that Python can hold.
    """
    if raw is None:
        return None
    data = bytes(raw).strip()
    try:
        if data[:1] == b'"':
            return json.read(json.STRING, data)
        return json.read(json.VALUE, data) if len(data) <= MAX_PLAIN_BYTES else None
    except json.UnreadableJson:
        return _endless(data)


def _endless(data: bytes) -> float | None:
    digits = data.removeprefix(b"-")
    return (-math.inf if data[:1] == b"-" else math.inf) if digits.isdigit() else None
