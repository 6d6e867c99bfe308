"""Schemas that no metaschema accepts, made valid for those who read them. Pure.

Real servers publish drafts of ten years ago and types of their own language; some clients refuse a whole list for one
of them. What is wrong is left out, which accepts more, never less: the server has the last word. Draft 4's boolean
limits become numbers.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from actors.protocol.wire import json
from supervisor.metatools.lenient_json import texts
from supervisor.metatools.schemas.keywords import DATA, NAMED

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_LISTS = ("anyOf", "oneOf", "allOf")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_SUSPECT = re.compile(
    rb'"exclusiveM(?:in|ax)imum":(?:true|false)'
    rb'|"(?:required|enum|properties|items|anyOf|oneOf|allOf|description|title|format|pattern|type)":(?:true|false|null|"")'
    rb'|"(?:anyOf|oneOf|allOf)":\[\]'
    rb'|"type":"(?!(?:string|number|integer|boolean|object|array|null)")'
)
"""What is wrong in practice; only a schema with one of these is walked through."""


def repair(raw: msgspec.Raw) -> msgspec.Raw:
    """Return a valid schema in place of one that is wrong in a known way; the same bytes for all others."""
    if not _SUSPECT.search(bytes(raw)):
        return raw
    try:
        return msgspec.Raw(msgspec.json.encode(_repair(json.read(json.VALUE, raw))))
    except (json.UnreadableJson, RecursionError):
        return raw


def _repair(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    for limit in ("Minimum", "Maximum"):
        if node.get(f"exclusive{limit}") is True and limit.lower() in node:
            rest = {key: value for key, value in node.items() if key != limit.lower()}
            node = {**rest, f"exclusive{limit}": node[limit.lower()]}
    return {key: _value(key, value) for key, value in node.items() if _right(key, value)}


def _value(key: str, value: Any) -> Any:
    if key in NAMED and isinstance(value, dict):
        return {name: _repair(schema) for name, schema in value.items()}
    if key in DATA:
        return value
    if key in (*_LISTS, "prefixItems", "items") and isinstance(value, list):
        return [_repair(schema) for schema in value]
    return _repair(value) if key in _SCHEMAS else value


def _right(key: str, value: Any) -> bool:
    """Say whether a keyword has a value of the shape that JSON Schema wants."""
    match key:
        case "exclusiveMinimum" | "exclusiveMaximum":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "type":
            return bool(texts(value)) and _TYPES.issuperset(texts(value))
        case "required" | "enum":
            return isinstance(value, list)
        case "anyOf" | "oneOf" | "allOf":
            return isinstance(value, list) and bool(value)
        case "description" | "title" | "format" | "pattern":
            return isinstance(value, str)
    if key in NAMED:
        return isinstance(value, dict)
    return key not in _SCHEMAS or isinstance(value, dict | list | bool)
