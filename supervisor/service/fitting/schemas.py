"""The schema of a tool's results for clients of 2025-06-18 and 2025-11-25, which take that of an object alone. Pure.

Any other is put into one, as its property `result`, and so are the results (`structured`): that is what the official
TypeScript SDK 2.x does for clients of these revisions, so that a server behind us looks like one that does it itself.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.schemas.keywords import DATA, NAMED

MAX_BYTES: Final = 262_144
MAX_DEPTH: Final = 32
"""A schema that is larger, or refers to itself from deeper, is left out: a client can do without it."""

_HERE: Final = "#/properties/result"
_REFERENCES: Final = ("$ref", "$dynamicRef")
_NAMED: Final = frozenset({*NAMED, "dependencies"})
_RECURSIVE: Final = b'"$recursiveRef"'
_MAY_REFER: Final = re.compile(rb'[Rr]ef"|\\')
"""What a text has that holds a reference; a key may be spelled with escapes."""
_MEANT: Final = {b"true": msgspec.Raw(b"{}"), b"false": msgspec.Raw(b'{"not":{}}')}
_MAY_BE_BOOLEAN: Final = re.compile(rb":\s*(?:true|false)\b")


class _TooDeepError(Exception):
    """A reference is nested too deeply to be led elsewhere."""


def is_of_objects(schema: msgspec.Raw) -> bool:
    """Say whether a schema declares at its root that it is of objects; False for what is no schema."""
    return json.text_at(schema, "type") == "object"


def is_movable(schema: msgspec.Raw) -> bool:
    return len(schema) <= MAX_BYTES and bytes(schema)[:1] == b"{" and _RECURSIVE not in bytes(schema)


def wrap(schema: msgspec.Raw) -> msgspec.Raw | None:
    """Return the schema of an object with one property, `result`, which has this schema; None if there is none.

    Its references to itself are made to lead to the new place, and its dialect is told at the root. What a
    `$recursiveRef` means cannot be kept in another place (JSON Schema 2019-09, core 8.2.4.2).
    """
    if not is_movable(schema):
        return None
    try:
        members = json.read(json.MEMBERS, schema)
        dialect = {"$schema": members["$schema"]} if _text(members.get("$schema")) else {}
        if _has_base(members):  # a document of its own, which says its dialect itself, too
            inner = schema
        else:
            rest = {name: value for name, value in members.items() if name not in dialect}
            inner = _move(msgspec.Raw(encode(rest)) if dialect else schema, MAX_DEPTH)
    except (_TooDeepError, json.UnreadableJson):
        return None
    return msgspec.Raw(encode({**dialect, "type": "object", "properties": {"result": inner}, "required": ["result"]}))


def _move(schema: msgspec.Raw, depth: int) -> msgspec.Raw:
    """Return a schema, or an array of some, with references as they are from the new root. Raises `_TooDeepError`."""
    text = bytes(schema)
    if text[:1] not in (b"{", b"[") or not _MAY_REFER.search(text):
        return schema
    if not depth:
        raise _TooDeepError
    if text[:1] == b"[":
        return msgspec.Raw(encode([_move(item, depth - 1) for item in json.read(json.ELEMENTS, schema)]))
    members = json.read(json.MEMBERS, schema)
    if _has_base(members):
        return schema
    return msgspec.Raw(encode({name: _value(name, value, depth - 1) for name, value in members.items()}))


def _value(keyword: str, value: msgspec.Raw, depth: int) -> Any:
    if keyword in DATA:
        return value
    if keyword in _REFERENCES:
        reference = _text(value)
        return f"{_HERE}{reference[1:]}" if reference == "#" or reference.startswith("#/") else value
    if keyword in _NAMED and bytes(value)[:1] == b"{":
        return {name: _move(each, depth) for name, each in json.read(json.MEMBERS, value).items()}
    return _move(value, depth)


def _has_base(members: dict[str, msgspec.Raw]) -> bool:
    """Say whether references in a schema start from itself: it has an `$id` that is more than a fragment."""
    return "$id" in members and not _text(members["$id"]).startswith("#")


def _text(value: msgspec.Raw | None) -> str:
    return json.read_or(json.STRING, value, "") if value is not None else ""


def without_booleans(schema: msgspec.Raw) -> msgspec.Raw | None:
    """Return a schema with objects in place of properties that are booleans; None if it has none.

    Parsers of revisions before 2026-07-28 demand objects. In JSON Schema a property may be `true`, and some generators
    write that for "anything".
    """
    if not _MAY_BE_BOOLEAN.search(bytes(schema)):
        return None
    try:
        members = json.read(json.MEMBERS, schema)
        properties = json.read(json.MEMBERS, members.get("properties", b"{}"))
    except json.UnreadableJson:
        return None
    booleans = {name: _MEANT[bytes(value)] for name, value in properties.items() if bytes(value) in _MEANT}
    if not booleans:
        return None
    return msgspec.Raw(encode({**members, "properties": {**properties, **booleans}}))
