"""Input schemas as a model reads them: references inlined, texts clean, without what says nothing. Pure.

Only local references are followed, and only where that ends: a schema that refers to itself is given with its `$defs`.
What is made is counted while it is made, in nodes and in bytes, data such as `enum` included: a reference costs a few
bytes and may stand for all of the schema; one that is itself as long as the schema costs that each time. A schema over
64 KiB is given as it is, or not at all.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from actors.catalogue.offer import Tool
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.search.text import squash
from supervisor.metatools.schemas.keywords import DATA, DEFINITIONS, NAMED, REMARKS, rewrite
from supervisor.metatools.schemas.signatures import MAX_PARAMETER_CHARS, MAX_SHOWN_PARAMETERS
from supervisor.metatools.texts import clean, clean_json, clean_value, is_plain, shorten

SLIM_DESCRIPTION_CHARS = 80
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
    told = rewrite(schema, _without_title)
    older = b'"items":[' in encode(told)
    return {key: value for key, value in told.items() if key != "title" and (key != "$schema" or older)}


def _without_title(schema: dict[str, Any], name: str) -> dict[str, Any]:
    own = schema.get("title")
    repeats = bool(name) and isinstance(own, str) and squash(own) == squash(name)
    return {key: value for key, value in schema.items() if not (repeats and key == "title")}


def _too_large(tool: Tool) -> dict[str, Any]:
    required = [clean(name)[:MAX_PARAMETER_CHARS] for name in tool.required[:MAX_SHOWN_PARAMETERS]]
    said = f"The tool's own schema of {len(tool.input_schema)} bytes is too large to be shown."
    return {"type": "object", "required": required, "description": said}


def slim(schema: Any) -> Any:
    """Return a schema that accepts exactly the same, with short descriptions, without titles, comments, examples."""
    if isinstance(schema, msgspec.Raw):
        schema = json.read_or(json.VALUE, schema, schema)
    return rewrite(schema, _in_short)


def _in_short(schema: dict[str, Any], _: str) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in REMARKS}
    if isinstance(description := kept.get("description"), str):
        kept["description"] = shorten(description, SLIM_DESCRIPTION_CHARS)
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
        root = {key: value for key, value in schema.items() if key not in DEFINITIONS}
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
