"""Entries of lists in every wrong shape: each member of each kind of entry, at each depth, with each wrong value.

Nothing is written by hand but one right entry of each kind: what is wrong follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from actors.protocol.listing import Kind

ICONS: Final = [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}]
COMMON: Final = {"title": "One", "description": "Does it.", "icons": ICONS, "_meta": {"own": {"a": 1}}}
NOTES: Final = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-12T15:00:58Z"}
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "All",
    "description": "Everything.",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a+$", "format": "uri", "enum": ["a"]},
        "count": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 1, "default": None},
        "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True, "examples": [["a"]]},
        "other": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/other"}], "deprecated": True, "not": {"const": 1}},
    },
    "required": ["text"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {"type": "string"}},
    "dependentRequired": {"text": ["count"]},
    "$defs": {"other": {"type": "boolean", "readOnly": True}},
}
RIGHT: Final[dict[Kind, dict[str, Any]]] = {
    "tools": {
        **COMMON,
        "name": "right",
        "inputSchema": SCHEMA,
        "outputSchema": SCHEMA,
        "annotations": {"title": "One", "readOnlyHint": True, "destructiveHint": False},
        "execution": {"taskSupport": "optional"},
    },
    "resources": {
        **COMMON,
        "name": "right",
        "uri": "file:///right",
        "mimeType": "a/b",
        "size": 12,
        "annotations": NOTES,
    },
    "templates": {**COMMON, "name": "right", "uriTemplate": "right://{id}", "mimeType": "a/b", "annotations": NOTES},
    "prompts": {
        **COMMON,
        "name": "right",
        "arguments": [{"name": "a", "title": "A", "description": "The first.", "required": True}],
    },
    "events": {
        "name": "right",
        "description": "What happens.",
        "delivery": ["poll", "push"],
        "inputSchema": {"type": "object"},
        "payloadSchema": {"type": "object"},
        "_meta": {"a": 1},
    },
    "skills": {
        "uri": "skill://a/right/SKILL.md",
        "frontmatter": {"name": "right", "description": "Does it.", "license": None},
        "resources": [{"uri": "skill://a/right/SKILL.md", "digest": f"sha256:{'0a' * 32}", "size": 12}],
    },
}
"""An entry of each list with all that the protocol has."""
KEYS: Final[dict[Kind, str]] = {
    "tools": "name",
    "resources": "uri",
    "templates": "uriTemplate",
    "prompts": "name",
    "skills": "uri",
    "events": "name",
}
GONE: Final = object()
WRONG: Final[tuple[Any, ...]] = (
    GONE,
    None,
    5,
    -1,
    True,
    "Object",
    "x(?P<y>",
    [],
    [None],
    ["x", 5],
    {},
    {"x": "y"},
    {"x": None},
)
"""`GONE` leaves the member out."""


def misshapen(kind: Kind) -> Iterator[Any]:
    """Yield entries of a list that are wrong in one place each, and called by a number each if they can be."""
    yield from (5, None, "text", [], {})
    for number, (path, value) in enumerate((path, value) for path in _paths(RIGHT[kind]) for value in WRONG):
        entry = deepcopy(_alone(RIGHT[kind], path))
        if path[0] != KEYS[kind]:
            entry[KEYS[kind]] = f"file:///{number}" if kind == "resources" else f"x{number}"
        _put(entry, path, value)
        yield entry


def _alone(entry: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Return an entry with what must be there, and of the rest only what is on a path."""
    if "frontmatter" in entry:
        return entry
    kept = {name: value for name, value in entry.items() if name in ("name", path[0])}
    if "delivery" in entry:
        kept = {"delivery": ["poll"], **kept}
    elif "inputSchema" in entry:
        kept = {"inputSchema": {"type": "object"}, **kept}
    if path[0] in ("inputSchema", "outputSchema") and len(path) > 1:
        schema = {"type": "object", path[1]: SCHEMA[path[1]], "$defs": SCHEMA["$defs"]}
        if path[1] == "properties" and len(path) > 2:
            schema["properties"] = {path[2]: schema["properties"][path[2]]}
        kept[path[0]] = schema
    return kept


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (key,)
        yield from ((key, *path) for path in _paths(child))


def _put(entry: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        entry = entry[key]
    if value is GONE:
        del entry[path[-1]]
    else:
        entry[path[-1]] = value
