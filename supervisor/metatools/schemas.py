"""Input schemas as a model reads them: whole, with references inlined and texts clean, or in one line. Pure.

A line, `name(owner: string, level?: integer, kind: "a"|"b")`, says what a call needs. Types are told where the schema
says them plainly and in a few characters: a reference, or a choice of many, is a name alone. Of an object that a call
needs, what it needs itself is told: `rows: {id: string, fields: object, ...}[]`. Nothing is decoded but the keywords
that are looked at.

Only local references are followed, and only where that ends: a schema that refers to itself is given with its `$defs`.
What is made is counted while it is made, in nodes and in bytes, data such as `enum` included: a reference costs a few
bytes and may stand for all of the schema; one that is itself as long as the schema costs that each time. A schema over
64 KiB is given as it is, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from actors.catalogue.offer import NO_RAW, Tool
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.jsonrpc import encode
from actors.search.text import squash
from supervisor.metatools.lenient_json import EMPTY, NotAnObject, TooManyMembers, members, missing_members, plain, read
from supervisor.metatools.texts import clean, clean_json, clean_value, is_plain, shorten

_DEFINITIONS = ("$defs", "definitions")
DATA = ("const", "enum", "default", "examples", "example")
"""Keywords whose value is data: a `$ref` in it is not a reference."""
NAMED = ("properties", "patternProperties", "dependentSchemas", *_DEFINITIONS)
"""Keywords whose value has names for keys: a property may be called `$defs`, `enum` or `properties`."""
_REMARKS = frozenset({"title", "$comment", "examples", "example"})
"""Keywords that say nothing about what is accepted."""


def _rewrite(node: Any, change: Callable[[dict[str, Any], str], dict[str, Any]], name: str = "") -> Any:
    """Return a schema with each schema in it changed, the outer before the inner; of a property `name` is its name."""
    if isinstance(node, list):
        return [_rewrite(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _value(key, value, change) for key, value in change(node, name).items()}


def _value(key: str, value: Any, change: Callable[[dict[str, Any], str], dict[str, Any]]) -> Any:
    if key in DATA:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: _rewrite(schema, change, name) for name, schema in value.items()}
    return _rewrite(value, change)


_MAX_SHOWN_PARAMETERS = 20
_MAX_PARAMETER_CHARS = 60
_MAX_ENUM_BYTES = 100
"""Of a choice that is written out."""
_MAX_CHOICES = 5
_MAX_ALTERNATIVES_BYTES = 2000
_MAX_OBJECT_BYTES = 4000
_MAX_MEMBERS = 5
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


def signature(tool: Tool, most: int = _MAX_SHOWN_PARAMETERS) -> str:
    """Return `name(a: string, b?: integer)`: optional parameters with a question mark, of very many those required.

    Of a schema that is a choice between objects it is `name({a: string} | {b: integer})`.
    """
    try:
        alternatives = _alternatives(tool)
    except NotAnObject:
        shown = [name[:_MAX_PARAMETER_CHARS] for name in tool.required[:most]]
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
    needed = [name[:_MAX_PARAMETER_CHARS] for name in tool.required[:most]]
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
    parts = [part for each in lists if len(each) for part in json.read_or(json.ELEMENTS, each, [])[:_MAX_CHOICES]]
    found = []
    for part in parts:
        path = json.text_at(part, "$ref").removeprefix("#/").split("/")
        found.append(json.read_or(_object, json.at(tool.input_schema, *path) if path != [""] else part, _Object()))
    return found


def _parameter(name: str, kind: str, mark: str = "") -> str:
    return f"{name[:_MAX_PARAMETER_CHARS]}{mark}{f': {kind}' if kind else ''}"


def _kind(schema: msgspec.Raw, depth: int = 0, *, written: bool = False) -> str:
    """Return the type of a parameter in a few characters, empty if it is not plain; `written`: what an object needs."""
    if (typed := json.read_or(_typed, schema, None)) is None:
        return ""
    if 2 < len(typed.enum) <= _MAX_ENUM_BYTES and (choice := _choice(typed.enum)):
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
    if not 0 < len(needed) <= _MAX_MEMBERS:
        return ""
    told = [_parameter(name, _kind(known[name])) for name in needed]
    return f"{{{', '.join([*told, '...'] if len(known) > len(needed) else told)}}}"


def _has_default(schema: msgspec.Raw) -> bool:
    return b'"default"' in bytes(schema) and "default" in json.members(schema)


def _choice(enum: msgspec.Raw) -> str:
    """Return `"a"|"b"` for a small choice, empty for a large one, or for one between more than plain values."""
    values = plain(enum)
    if (
        not isinstance(values, list)
        or len(values) > _MAX_CHOICES
        or any(isinstance(one, list | dict) for one in values)
    ):
        return ""
    shown = [clean(one) if isinstance(one, str) else one for one in values]
    return "|".join(msgspec.json.encode(one).decode() for one in shown)


def _types(raw: msgspec.Raw) -> list[str]:
    """Return what `type` says, without `null`: that is what the question mark is for."""
    if not 0 < len(raw) <= _MAX_ENUM_BYTES:
        return []
    value = plain(raw)
    named: list[Any] = value if isinstance(value, list) else [value]
    return [kind for kind in named if isinstance(kind, str) and kind in _TYPES]


def _types_of(raw: msgspec.Raw) -> list[str]:
    """Return the types of `anyOf`, nothing if one of them is not plain."""
    parts = json.read_or(json.ELEMENTS, raw, [])
    if len(parts) > _MAX_CHOICES:
        return []
    kinds = [_kind(part, 1) for part in parts if b'"null"' not in bytes(part)]
    return list(dict.fromkeys(kinds)) if all(kind in _TYPES for kind in kinds) else []


_SLIM_DESCRIPTION_CHARS = 80
_MAX_DEPTH = 20
_MAX_NODES = 10_000
MAX_WORKED_BYTES = 65_536
"""A larger schema is not worked on: it fits no page, and no model reads it."""
_GROWTH, _SPARE_BYTES = 4, 4000
"""So many times its bytes, and so many, a schema may have when its references are replaced."""


_NOISE = re.compile(rb'"(?:title|\$schema)"')


def growth(tool: Tool) -> int:
    """Return how many bytes more than its own a tool's schema may have when its references are replaced."""
    size = len(tool.input_schema)
    grows = size <= MAX_WORKED_BYTES and b"$ref" in bytes(tool.input_schema)
    return _GROWTH * size + _SPARE_BYTES if grows else 0


def complete(tool: Tool) -> Any:
    """Return a tool's whole input schema as it is shown: JSON text, or a plain value.

    A schema over 64 KiB is its own text, if nothing can hide in it; else what is returned says that it is too large.
    """
    if len(tool.input_schema) > MAX_WORKED_BYTES:
        return tool.input_schema if is_plain(bytes(tool.input_schema)) else _too_large(tool)
    schema = quiet(inline_references(tool.input_schema))
    return clean_json(schema) if isinstance(schema, msgspec.Raw) else clean_value(schema)


def quiet(schema: Any) -> Any:
    """Return a schema without its dialect, its own title, and titles that only repeat the name of a property.

    The dialect stays where the newest one would read the schema otherwise: `items` was a list in older ones.
    """
    if isinstance(schema, msgspec.Raw):
        if not _NOISE.search(bytes(schema)):
            return schema
        schema = json.read_or(json.VALUE, schema, schema)
    if not isinstance(schema, dict):
        return schema
    told = _rewrite(schema, _without_title)
    older = b'"items":[' in encode(told)
    return {key: value for key, value in told.items() if key != "title" and (key != "$schema" or older)}


def _without_title(schema: dict[str, Any], name: str) -> dict[str, Any]:
    own = schema.get("title")
    repeats = bool(name) and isinstance(own, str) and squash(own) == squash(name)
    return {key: value for key, value in schema.items() if not (repeats and key == "title")}


def _too_large(tool: Tool) -> dict[str, Any]:
    required = [clean(name)[:_MAX_PARAMETER_CHARS] for name in tool.required[:_MAX_SHOWN_PARAMETERS]]
    said = f"The tool's own schema of {len(tool.input_schema)} bytes is too large to be shown."
    return {"type": "object", "required": required, "description": said}


def slim(schema: Any) -> Any:
    """Return a schema that accepts exactly the same, with short descriptions, without titles, comments, examples."""
    if isinstance(schema, msgspec.Raw):
        schema = json.read_or(json.VALUE, schema, schema)
    return _rewrite(schema, _in_short)


def _in_short(schema: dict[str, Any], _: str) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in _REMARKS}
    if isinstance(description := kept.get("description"), str):
        kept["description"] = shorten(description, _SLIM_DESCRIPTION_CHARS)
    return kept


def inline_references(raw: msgspec.Raw) -> Any:
    """Return a schema with what its local references point to, where that ends; the bytes of it have a bound."""
    data = bytes(raw)
    if b"$ref" not in data:
        return raw
    try:
        schema = json.read(json.VALUE, data)
        if not isinstance(schema, dict):
            return raw
        root = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        return _Inliner(schema, _GROWTH * len(data) + _SPARE_BYTES).inline(root, ())
    except (json.UnreadableJson, RecursionError, _Endless):
        return raw


class _Endless(Exception):
    """A reference leads back to itself, or nowhere, or to too much: the schema is given as it is."""


class _Inliner:
    """Inlines one schema into at most `most` bytes of JSON; counts, as nested references may double with each level."""

    def __init__(self, root: Any, most: int) -> None:
        self._root = root
        self._nodes = _MAX_NODES
        self._left = most
        self._targets: dict[str, Any] = {}

    def inline(self, node: Any, path: tuple[str, ...]) -> Any:
        """Return a copy without references; `path` are the references that are being followed."""
        if isinstance(node, list):
            self._count(2 + len(node))
            return [self.inline(item, path) for item in node]
        if not isinstance(node, dict):
            self._count(len(encode(node)))
            return node
        ref = node.get("$ref")
        if not isinstance(ref, str):
            self._count(2 + sum(map(len, node)) + 4 * len(node))
            return {key: self._value(key, value, path) for key, value in node.items()}
        if ref in path or len(path) >= _MAX_DEPTH:
            raise _Endless
        self._count(len(ref))
        target = self.inline(self._target(ref), (*path, ref))
        beside = {key: self._value(key, value, path) for key, value in node.items() if key != "$ref"}
        return {**target, **beside} if isinstance(target, dict) else target

    def _value(self, key: str, value: Any, path: tuple[str, ...]) -> Any:
        if key in DATA:
            self._count(len(encode(value)))
            return value
        if key in NAMED and isinstance(value, dict):
            self._count(2 + sum(map(len, value)) + 4 * len(value))
            return {name: self.inline(schema, path) for name, schema in value.items()}
        return self.inline(value, path)

    def _count(self, made: int) -> None:
        self._nodes -= 1
        self._left -= made
        if self._nodes < 0 or self._left < 0:
            raise _Endless

    def _target(self, ref: str) -> Any:
        if ref not in self._targets:
            self._targets[ref] = self._follow(ref)
        return self._targets[ref]

    def _follow(self, ref: str) -> Any:
        """Follow a JSON pointer (RFC 6901) in a fragment."""
        if not ref.startswith("#/"):
            raise _Endless
        node = self._root
        for part in unquote(ref[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(node):
                node = node[int(key)]
            else:
                raise _Endless
        return node
