"""Input schemas as a model reads them: references inlined, texts clean; or one line with the names. Pure.

Only local references are followed, and only where that ends: a schema that refers to itself is given with its `$defs`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec

from actors.catalogue.entries import Tool
from actors.protocol.jsonrpc import encode
from supervisor.keywords import DATA, DEFINITIONS, NAMED, REMARKS
from supervisor.mending import mended
from supervisor.shown import clean, clean_json, cleaned, shorten

MAX_SHOWN_PARAMETERS = 20
MAX_PARAMETER_CHARS = 60
SLIM_DESCRIPTION_CHARS = 80
_MAX_DEPTH = 20
_MAX_NODES = 10_000


def signature(tool: Tool, most: int = MAX_SHOWN_PARAMETERS) -> str:
    """Return `name(a, b?)`: the first parameters, optional ones with a question mark."""
    properties = properties_of(tool)
    names = [name if name in tool.required else f"{name}?" for name in properties]
    shown = ", ".join(name[:MAX_PARAMETER_CHARS] for name in names[:most])
    return clean(f"{tool.name}({shown}{', ...' if len(names) > most else ''})")


def properties_of(tool: Tool) -> list[str]:
    """Return the names of the top-level parameters, in the order of the schema."""
    try:
        schema = msgspec.json.decode(tool.input_schema)
    except (msgspec.MsgspecError, RecursionError):
        return []
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def complete(tool: Tool) -> Any:
    """Return a tool's whole input schema as it is shown: JSON text, or a plain value."""
    found = inlined(mended(tool.input_schema))
    return clean_json(found) if isinstance(found, msgspec.Raw) else cleaned(found)


def slim(schema: Any) -> Any:
    """Return a schema that accepts exactly the same, with short descriptions, without titles, comments, examples."""
    if isinstance(schema, msgspec.Raw):
        try:
            schema = msgspec.json.decode(schema)
        except (msgspec.MsgspecError, RecursionError):
            return schema
    return _slim(schema)


def _slim(node: Any) -> Any:
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _slim_value(key, value) for key, value in node.items() if key not in REMARKS}


def _slim_value(key: str, value: Any) -> Any:
    if key == "description" and isinstance(value, str):
        return shorten(value, SLIM_DESCRIPTION_CHARS)
    if key in DATA:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: _slim(schema) for name, schema in value.items()}
    return _slim(value)


def inlined(raw: msgspec.Raw) -> Any:
    """Return a schema whose local references are replaced by what they point to, where that ends."""
    data = bytes(raw)
    if b"$ref" not in data:
        return raw
    try:
        schema = msgspec.json.decode(data)
        if not isinstance(schema, dict):
            return raw
        root = {key: value for key, value in schema.items() if key not in DEFINITIONS}
        result = _Inliner(schema).inline(root, ())
    except (msgspec.MsgspecError, RecursionError, _Endless):
        return raw
    return raw if len(encode(result)) > 4 * len(data) + 4000 else result


class _Endless(Exception):
    """A reference leads back to itself, or nowhere, or to too much: the schema is given as it is."""


class _Inliner:
    """Inlines one schema. Counts what it makes: nested references may double with each level."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes = 0

    def inline(self, node: Any, path: tuple[str, ...]) -> Any:
        """Return a copy without references; `path` are the references that are being followed."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise _Endless
        if isinstance(node, list):
            return [self.inline(item, path) for item in node]
        if not isinstance(node, dict):
            return node
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return {key: self._value(key, value, path) for key, value in node.items()}
        if ref in path or len(path) >= _MAX_DEPTH:
            raise _Endless
        target = self.inline(self._target(ref), (*path, ref))
        beside = {key: self._value(key, value, path) for key, value in node.items() if key != "$ref"}
        return {**target, **beside} if isinstance(target, dict) else target

    def _value(self, key: str, value: Any, path: tuple[str, ...]) -> Any:
        if key in DATA:
            return value
        if key in NAMED and isinstance(value, dict):
            return {name: self.inline(schema, path) for name, schema in value.items()}
        return self.inline(value, path)

    def _target(self, ref: str) -> Any:
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
