"""A catalogue of our own making with the schemas that real servers publish, plain ones and nasty ones.

130 tools on 13 servers; each kind of schema comes back under many names. Nothing is random.
"""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string", "description": "A text of any length that says what it is about."}
LONG = "It is described at length, as generated documentation does. Values come from the account's own settings. " * 6
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def schema(required: list[str], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**more, "type": "object", "properties": properties, "required": required}


SHAPES: dict[str, dict[str, Any]] = {
    "plain": schema(["id"], {"id": TEXT, "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}}),
    "nothing": {"type": "object", "properties": {}, "additionalProperties": False},
    "open": {"type": "object"},
    "formats": schema(
        ["mail", "since", "link", "key", "colour"],
        {
            "mail": {"type": "string", "format": "email"},
            "since": {"type": "string", "format": "date-time"},
            "link": {"type": "string", "format": "uri", "maxLength": 200},
            "key": {"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"},
            "colour": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
            "uuid": {"type": "string", "format": "uuid"},
            "long": {"type": "string", "minLength": 12},
        },
        additionalProperties=False,
    ),
    "numbers": schema(
        ["page", "size", "ratio"],
        {
            "page": {"type": "integer", "exclusiveMinimum": 0},
            "size": {"type": "integer", "minimum": 5, "multipleOf": 4},
            "ratio": {"type": "number", "minimum": 0.5, "maximum": 2},
            "level": {"type": "integer", "enum": [3, 2, 1]},
            "fixed": {"const": 7},
        },
    ),
    "enums": schema(
        ["state", "order"],
        {
            "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open", "title": "State"},
            "order": {"enum": ["asc", "desc", None, 5]},
            "scopes": {"type": "array", "items": {"type": "string", "enum": ["read", "write"]}, "minItems": 1},
        },
        title="ListArguments",
    ),
    "definitions": schema(
        ["target", "list"],
        {
            "target": {"$ref": "#/definitions/Target", "description": "Where it goes."},
            "list": {"type": "array", "items": {"$ref": "#/definitions/Target"}, "minItems": 2},
        },
        **{
            "$schema": DRAFT_7,
            "definitions": {
                "Target": schema(
                    ["kind", "place"], {"kind": {"const": "target"}, "place": {"$ref": "#/definitions/P"}}
                ),
                "P": schema(["x"], {"x": {"type": "number"}, "y": {"type": "number", "default": 0}}),
            },
        },
    ),
    "defs": schema(
        ["filter", "address"],
        {
            "filter": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}], "default": None, "title": "Filter"},
            "address": {"$ref": "#/$defs/a~1b%20c"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        **{
            "$schema": DRAFT_2020,
            "$defs": {
                "Filter": schema(
                    ["field", "equals"], {"field": TEXT, "equals": {"type": ["string", "number", "null"]}}
                ),
                "a/b c": schema(["street"], {"street": TEXT, "country": {"$ref": "#/$defs/Country"}}),
                "Country": {"type": "string", "enum": ["CH", "NO"], "description": "ISO 3166"},
            },
        },
    ),
    "recursive": schema(
        ["root"],
        {"root": {"$ref": "#/$defs/Node"}, "depth": {"type": "integer"}},
        **{
            "$defs": {
                "Node": schema(
                    ["label"], {"label": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}
                )
            }
        },
    ),
    "union": schema(
        ["action"],
        {
            "action": {
                "oneOf": [
                    schema(
                        ["type", "x", "y"],
                        {"type": {"const": "click"}, "x": {"type": "integer"}, "y": {"type": "integer"}},
                    ),
                    schema(["type", "text"], {"type": {"const": "type"}, "text": TEXT}),
                ]
            },
            "timeout": {"type": ["integer", "null"], "minimum": 0},
        },
    ),
    "all_of": schema(
        ["body"],
        {"body": {"allOf": [{"$ref": "#/$defs/Base"}, schema(["extra"], {"extra": {"type": "boolean"}})]}},
        **{"$defs": {"Base": schema(["id"], {"id": {"type": "string"}})}},
    ),
    "arrays": schema(
        ["rows", "pair"],
        {
            "rows": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 2, "items": {"type": "number"}},
            },
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2},
            "deep": {
                "type": "array",
                "items": schema(["a"], {"a": {"type": "array", "items": schema(["b"], {"b": TEXT})}}),
            },
        },
        **{"$schema": DRAFT_2020},
    ),
    "keywords": schema(
        ["$ref", "properties", "enum", "title"],
        {
            "$ref": {"type": "string", "description": "A git reference."},
            "properties": schema(["type"], {"type": {"type": "string"}, "description": {"type": "string"}}),
            "enum": {"type": "array", "items": {"type": "string"}},
            "title": {"type": "string", "title": "Title", "default": "x"},
            "required": {"type": "boolean"},
            "$defs": {"type": "object", "default": {"$ref": "#/nowhere"}},
            "description": {"type": "string", "examples": [{"$ref": "#/nowhere"}]},
        },
    ),
    "maps": schema(
        ["labels", "headers"],
        {
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 2},
            "headers": {
                "type": "object",
                "patternProperties": {"^x-": {"type": "string"}},
                "additionalProperties": False,
            },
            "data": {},
            "any": True,
        },
    ),
    "unicode": schema(["größe", "名前"], {"größe": {"type": "integer"}, "名前": {"type": "string"}, "e mail": TEXT}),
    "wordy": schema(
        ["p0", "p7"],
        {
            f"p{n}": {
                "type": "string",
                "title": f"P {n}",
                "description": f"Parameter {n}. {LONG}",
                "examples": ["a", "b"],
            }
            for n in range(14)
        },
    ),
    "huge": schema(
        ["field_0", "field_99"],
        {f"field_{n}": {"type": "object", "description": LONG, "properties": {"value": TEXT}} for n in range(100)},
    ),
}

VERBS = ("create", "list", "delete", "update", "search", "export", "archive", "merge", "schedule", "approve")
THINGS = {
    "tracker": "bug report",
    "mailroom": "mail draft",
    "calendar": "meeting",
    "warehouse": "parcel",
    "bank": "payment",
    "kitchen": "recipe",
    "library": "book loan",
    "studio": "video clip",
    "garden": "plant",
    "clinic": "appointment",
    "school": "course",
    "museum": "exhibit",
    "port": "container ship",
}


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Return the tools of each server, as it lists them."""
    kinds = list(SHAPES)
    out: dict[str, list[dict[str, Any]]] = {}
    for number, (server, thing) in enumerate(THINGS.items()):
        out[server] = [
            {
                "name": f"{verb}_{thing.replace(' ', '_')}",
                "description": f"{verb.capitalize()} a {thing}. {LONG if place % 3 == 0 else ''}".strip(),
                "inputSchema": SHAPES[kinds[(number * len(VERBS) + place) % len(kinds)]],
            }
            for place, verb in enumerate(VERBS)
        ]
    return out
