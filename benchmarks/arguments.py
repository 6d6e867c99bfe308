"""Arguments that a model could make up for a tool it knows from an answer only: from its schema, or from its signature.

What is made up is the least that is needed, always the same: required parameters, the first choice, one item. A text is
"text" unless a format, a pattern or a length asks for another. Nothing but what is handed in is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from benchmarks.scalars import number_for, text_for

MAX_DEPTH = 8
"""Deeper than this no choice is followed that goes deeper still."""
MAX_LEVELS = 40
MAX_ITEMS = 20

_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[^",]+|,\s')
_NESTED = ("object", "array")
_NUMBERS = (
    *("number", "count", "limit", "offset", "page", "size", "max", "min", "length", "total", "quantity", "amount"),
    *("width", "height", "depth", "index", "level", "x", "y", "z", "lat", "lon", "latitude", "longitude", "port"),
    *("year", "month", "day", "days", "hours", "minutes", "seconds", "duration", "timeout"),
)
_YES_OR_NO = ("is", "has", "include", "enable", "disable", "allow", "should", "force", "recursive")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")

Json = Any


def from_schema(schema: Json) -> dict[str, Json]:
    """Return arguments for a tool with this input schema, which has `$ref`s to places in itself only."""
    made = _Maker(schema).value(schema, 0)
    return made if isinstance(made, dict) else {}


def from_row(row: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """Return arguments for a tool by the signature of its row, and whether that tells any types.

    Needed is what has no question mark, and what the row says is required. Without a type its name is what there is.
    """
    kinds = dict(parameters(str(row.get("signature", ""))))
    needed = {name: kind for name, kind in kinds.items() if not name.endswith("?")}
    required = row.get("required")
    for name in required if isinstance(required, list) else ():
        needed.setdefault(name, kinds.get(f"{name}?", ""))
    made = {name: _typed(kind) if kind else guessed(name) for name, kind in needed.items()}
    return made, any(kinds.values())


def parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Return name, with a question mark if it is optional, and type of each parameter; the type may be empty.

    A signature is `tool(owner, level?: integer, kind: "a"|"b", ...)`.
    """
    for piece in _pieces(signature.partition("(")[2].rpartition(")")[0]):
        name, _, kind = piece.partition(": ")
        if name.strip() not in ("", "..."):
            yield name.strip(), kind.strip()


def _pieces(inside: str) -> list[str]:
    """Return what commas divide outside of quotes and braces."""
    pieces, depth = [""], 0
    for part in _PARTS.findall(inside):
        if part[0] != '"':
            depth += part.count("{") - part.count("}")
        if part.strip() == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += part
    return pieces


def guessed(name: str) -> Json:
    """Return a value for a parameter of which nothing but the name is known."""
    words = [word.lower() for word in _WORDS.findall(name)] or [""]
    if words[0] in _YES_OR_NO:
        return True
    return 1 if words[-1] in _NUMBERS else "text"


def _typed(kind: str) -> Json:
    """Return a value of the first type of `string|integer`, `string[]`, `"a"|"b"`, `{a: string}`."""
    if kind.startswith("{"):
        inside, _, rest = kind[1:].rpartition("}")
        members = (piece.partition(": ") for piece in _pieces(inside) if piece.strip() != "...")
        made_up = {name.strip(): _typed(one.strip()) if one else guessed(name) for name, _, one in members}
        return [made_up] if rest == "[]" else made_up
    try:
        choice, _ = json.JSONDecoder().raw_decode(kind)
    except ValueError:
        first = kind.partition("|")[0]
    else:
        return choice
    if first.endswith("[]"):
        return [_typed(first.removesuffix("[]"))]
    made: dict[str, Json] = {"integer": 1, "number": 1, "boolean": True, "object": {}, "array": ["text"], "null": None}
    return made.get(first, "text")


class _Maker:
    """Makes values for the parts of one schema. `place` makes the items of an array differ."""

    def __init__(self, root: Json) -> None:
        self._root = root

    def value(self, schema: Json, depth: int, place: int = 0) -> Json:
        """Return a value; null where a schema leads on without an end."""
        if depth > MAX_LEVELS:
            return None
        node = self._plain(schema, depth)
        if "const" in node:
            return node["const"]
        choices = node.get("enum")
        if isinstance(choices, list) and choices:
            return choices[place % len(choices)]
        kind = _kind(node)
        if kind == "object":
            return self._object(node, depth, place)
        if kind == "array":
            return self._array(node, depth)
        if kind in ("integer", "number"):
            return number_for(node, place, whole=kind == "integer")
        scalars: dict[str, Json] = {"boolean": place % 2 == 0, "null": None}
        return scalars[kind] if kind in scalars else text_for(node, place)

    def _object(self, node: Mapping[str, Json], depth: int, place: int) -> dict[str, Json]:
        known = _members(node, "properties")
        needed = [name for name in node.get("required", ()) if isinstance(name, str)]
        # A constant says which of several alternatives is meant, though it is rarely required.
        needed += [name for name, schema in known.items() if "const" in _dict(schema) and name not in needed]
        fewest = node.get("minProperties", 0)
        names = list(dict.fromkeys([*needed, *(name for name in known if len(needed) < fewest)]))
        names = names[: max(len(needed), fewest)]
        names += [f"name{number}" for number in range(len(names), fewest)]
        rest = node.get("additionalProperties", True)
        return {name: self.value(known.get(name, rest), depth + 1, place) for name in names}

    def _array(self, node: Mapping[str, Json], depth: int) -> list[Json]:
        first = node.get("prefixItems")
        items = node.get("items", True)
        if isinstance(items, list):  # a tuple, until draft 2019-09
            first, items = items, node.get("additionalItems", True)
        kinds = list(first) if isinstance(first, list) else []
        fewest = node.get("minItems", len(kinds) or (depth < MAX_DEPTH))
        most = node.get("maxItems", MAX_ITEMS)
        kinds += [node.get("contains", items)] * (min(fewest, most, MAX_ITEMS) - len(kinds))
        return [self.value(kind, depth + 1, place) for place, kind in enumerate(kinds[: max(fewest, 0)])]

    def _plain(self, schema: Json, depth: int) -> dict[str, Json]:
        """Return a schema with its reference, all of `allOf` and the first choice of `anyOf` and `oneOf` in it."""
        node = dict(schema) if isinstance(schema, dict) else {}
        for _ in range(MAX_LEVELS):
            if isinstance(node.get("$ref"), str):
                node = _both(self._target(node.pop("$ref")), node)
            elif node.get("allOf"):
                for part in node.pop("allOf"):
                    node = _both(node, part)
            elif choices := node.pop("anyOf", None) or node.pop("oneOf", None):
                node = _both(node, self._choice(choices, depth))
            else:
                break
        return node

    def _choice(self, choices: list[Json], depth: int) -> Json:
        """Return the first alternative that is not null, and deep inside one that leads no deeper."""
        kinds = [(self._plain(one, MAX_LEVELS), one) if depth < MAX_LEVELS else (_dict(one), one) for one in choices]
        useful = [(_kind(node), one) for node, one in kinds if _kind(node) != "null"]
        shallow = [one for kind, one in useful if kind not in _NESTED]
        return ((depth >= MAX_DEPTH and shallow) or [one for _, one in useful] or choices)[0]

    def _target(self, ref: str) -> Json:
        """Follow a JSON pointer (RFC 6901) in a fragment; a schema that says nothing if it leads nowhere."""
        node = self._root
        for part in unquote(ref.partition("#")[2]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                node = _dict(node).get(key)
        return _dict(node)


def _both(node: Json, more: Json) -> dict[str, Json]:
    """Return two schemas as one; what `more` says goes first."""
    node, more = _dict(node), _dict(more)
    merged = {**node, **more}
    if "properties" in node and "properties" in more:
        merged["properties"] = {**_members(node, "properties"), **_members(more, "properties")}
    if "required" in node and "required" in more:
        merged["required"] = list(dict.fromkeys([*node["required"], *more["required"]]))
    return merged


def _kind(node: Mapping[str, Json]) -> str:
    """Return the first type of a schema that is not null, or the one that its keywords are about."""
    said = node.get("type")
    kinds = [said] if isinstance(said, str) else [one for one in said or () if isinstance(one, str)]
    if kinds:
        return next((kind for kind in kinds if kind != "null"), "null")
    if "const" in node and node["const"] is None:
        return "null"
    if {"properties", "required", "minProperties"} & node.keys():
        return "object"
    if {"items", "prefixItems", "minItems"} & node.keys():
        return "array"
    return "number" if {"minimum", "maximum", "multipleOf"} & node.keys() else "string"


def _members(node: Mapping[str, Json], key: str) -> dict[str, Json]:
    return _dict(node.get(key))


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
