"""A tool in one line, `name(owner: string, level?: integer, kind: "a"|"b")`: what a call needs. Pure.

Types are told where the schema says them plainly and in a few characters: a reference, or a choice of many, is a name
alone. Of an object that a call needs, what it needs itself is told: `rows: {id: string, fields: object, ...}[]`.
Nothing is decoded but the keywords that are looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from actors.catalogue.offer import NO_RAW, Tool
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from supervisor.metatools.lenient_json import EMPTY, NotAnObject, TooManyMembers, members, missing_members, plain, read
from supervisor.metatools.texts import clean

MAX_SHOWN_PARAMETERS = 20
MAX_PARAMETER_CHARS = 60
MAX_ENUM_BYTES = 100
"""Of a choice that is written out."""
MAX_CHOICES = 5
_MAX_ALTERNATIVES_BYTES = 2000
_MAX_OBJECT_BYTES = 4000
MAX_MEMBERS = 5
"""Of an object that a call needs, and that is written out."""
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})
_NAMED = {f'"{kind}"'.encode(): [kind] for kind in _TYPES}
"""What `type` says nearly always, as it is written."""


class _Root(msgspec.Struct):
    properties: msgspec.Raw = EMPTY
    allOf: msgspec.Raw = NO_RAW
    anyOf: msgspec.Raw = NO_RAW
    oneOf: msgspec.Raw = NO_RAW


class _Alternative(NamedTuple):
    known: Members
    needed: frozenset[str]


class _Typed(msgspec.Struct):
    type: msgspec.Raw = NO_RAW
    enum: msgspec.Raw = NO_RAW
    items: msgspec.Raw = NO_RAW
    anyOf: msgspec.Raw = NO_RAW


class _Object(msgspec.Struct):
    properties: msgspec.Raw = EMPTY
    required: list[str] = []


_root = msgspec.json.Decoder(_Root)
_object = msgspec.json.Decoder(_Object)
_typed = msgspec.json.Decoder(_Typed)


def signature(tool: Tool, most: int = MAX_SHOWN_PARAMETERS) -> str:
    """Return `name(a: string, b?: integer)`: optional parameters with a question mark, of very many those required.

    Of a schema that is a choice between objects it is `name({a: string} | {b: integer})`.
    """
    try:
        alternatives = _alternatives(tool)
    except NotAnObject:
        shown = [name[:MAX_PARAMETER_CHARS] for name in tool.required[:most]]
        return clean(f"{tool.name}({', '.join([*shown, '...'])})")
    told = [_parameters(each.known, each.needed, most // len(alternatives)) for each in alternatives]
    return clean(f"{tool.name}({told[0] if len(told) == 1 else ' | '.join(f'{{{each}}}' for each in told)})")


def _parameters(known: Members, needed: Collection[str], most: int) -> str:
    names = list(known)
    if len(names) > most:
        names.sort(key=lambda name: name not in needed)
    shown = [
        _parameter(name, _kind(known[name], written=name in needed), "" if name in needed else "?")
        for name in names[:most]
    ]
    return f"{', '.join(shown)}{', ...' if len(names) > most else ''}"


def requirements(tool: Tool, most: int) -> str:
    """Return `(a, b, ...)`: the required parameters by name, with dots if there are others."""
    needed = [name[:MAX_PARAMETER_CHARS] for name in tool.required[:most]]
    try:
        more = any(each.known.keys() - set(tool.required[:most]) for each in _alternatives(tool))
    except NotAnObject:
        more = True
    return clean(f"({', '.join([*needed, '...'] if more else needed)})")


def has_parameter(tool: Tool, name: str) -> bool:
    """Say whether a tool has a top-level parameter of that name, however large its schema is."""
    try:
        properties = [json.read(_root, tool.input_schema).properties, *(part.properties for part in _parts_of(tool))]
        return any(not missing_members(read(each), [name]) for each in properties)
    except (json.UnreadableJson, NotAnObject):
        return False


def _alternatives(tool: Tool) -> list[_Alternative]:
    """Return what a call can consist of: the parameters of the schema, with those of each object that it is a choice
    between, and of those that it demands besides. Raises `NotAnObject` if there are too many.
    """
    try:
        root = json.read(_root, tool.input_schema)
        common = members(root.properties)
    except TooManyMembers:
        raise
    except (json.UnreadableJson, NotAnObject):
        return [_Alternative({}, frozenset(tool.required))]
    needed = {*tool.required}
    for part in _read_parts(tool, root.allOf):
        common = {**common, **members(part.properties)}
        needed |= {*part.required}
    chosen = [part for part in _read_parts(tool, root.anyOf, root.oneOf) if len(part.properties) > len(EMPTY)]
    return [
        _Alternative({**common, **members(part.properties)}, frozenset({*needed, *part.required})) for part in chosen
    ] or [_Alternative(common, frozenset(needed))]


def _parts_of(tool: Tool) -> list[_Object]:
    root = json.read(_root, tool.input_schema)
    return _read_parts(tool, root.allOf, root.anyOf, root.oneOf)


def _read_parts(tool: Tool, *lists: msgspec.Raw) -> list[_Object]:
    """Return the objects that lists of schemas name, a few of them; one level of references is followed."""
    parts = [part for each in lists if len(each) for part in json.read_or(json.ELEMENTS, each, [])[:MAX_CHOICES]]
    found = []
    for part in parts:
        path = json.text_at(part, "$ref").removeprefix("#/").split("/")
        found.append(json.read_or(_object, json.at(tool.input_schema, *path) if path != [""] else part, _Object()))
    return found


def _parameter(name: str, kind: str, mark: str = "") -> str:
    return f"{name[:MAX_PARAMETER_CHARS]}{mark}{f': {kind}' if kind else ''}"


def _kind(schema: msgspec.Raw, depth: int = 0, *, written: bool = False) -> str:
    """Return the type of a parameter in a few characters, empty if it is not plain; `written`: what an object needs."""
    if (typed := json.read_or(_typed, schema, None)) is None:
        return ""
    if 2 < len(typed.enum) <= MAX_ENUM_BYTES and (choice := _choice(typed.enum)):
        return choice
    kinds = _NAMED.get(bytes(typed.type)) or _types(typed.type)
    if not kinds and depth == 0 and 0 < len(typed.anyOf) <= _MAX_ALTERNATIVES_BYTES:
        kinds = _types_of(typed.anyOf)
    if kinds == ["array"] and depth == 0:
        item = _kind(typed.items, 1, written=written) if len(typed.items) else ""
        return f"{item}[]" if item in _TYPES or item[:1] == "{" else "array"
    if written and kinds == ["object"]:
        return _members_of(schema) or "object"
    return "|".join(kinds)


def _members_of(schema: msgspec.Raw) -> str:
    """Return `{a: string, b: integer, ...}`, what an object must have; empty if that is nothing or much."""
    if len(schema) > _MAX_OBJECT_BYTES:
        return ""
    try:
        declared = json.read(_object, schema)
        known = members(declared.properties)
    except (json.UnreadableJson, NotAnObject):
        return ""
    needed = [name for name in dict.fromkeys(declared.required) if name in known and not _has_default(known[name])]
    if not 0 < len(needed) <= MAX_MEMBERS:
        return ""
    told = [_parameter(name, _kind(known[name])) for name in needed]
    return f"{{{', '.join([*told, '...'] if len(known) > len(needed) else told)}}}"


def _has_default(schema: msgspec.Raw) -> bool:
    return b'"default"' in bytes(schema) and "default" in json.members(schema)


def _choice(enum: msgspec.Raw) -> str:
    """Return `"a"|"b"` for a small choice, empty for a large one, or for one between more than plain values."""
    values = plain(enum)
    if not isinstance(values, list) or len(values) > MAX_CHOICES or any(isinstance(one, list | dict) for one in values):
        return ""
    shown = [clean(one) if isinstance(one, str) else one for one in values]
    return "|".join(msgspec.json.encode(one).decode() for one in shown)


def _types(raw: msgspec.Raw) -> list[str]:
    """Return what `type` says, without `null`: that is what the question mark is for."""
    if not 0 < len(raw) <= MAX_ENUM_BYTES:
        return []
    value = plain(raw)
    named: list[Any] = value if isinstance(value, list) else [value]
    return [kind for kind in named if isinstance(kind, str) and kind in _TYPES]


def _types_of(raw: msgspec.Raw) -> list[str]:
    """Return the types of `anyOf`, nothing if one of them is not plain."""
    parts = json.read_or(json.ELEMENTS, raw, [])
    if len(parts) > MAX_CHOICES:
        return []
    kinds = [_kind(part, 1) for part in parts if b'"null"' not in bytes(part)]
    return list(dict.fromkeys(kinds)) if all(kind in _TYPES for kind in kinds) else []
