"""Which keywords of JSON Schema (2020-12 and draft 7) hold schemas, and which hold what is none. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DEFINITIONS = ("$defs", "definitions")
DATA = ("const", "enum", "default", "examples", "example")
"""Keywords whose value is data: a `$ref` in it is not a reference."""
NAMED = ("properties", "patternProperties", "dependentSchemas", *DEFINITIONS)
"""Keywords whose value has names for keys: a property may be called `$defs`, `enum` or `properties`."""
REMARKS = frozenset({"title", "$comment", "examples", "example"})
"""Keywords that say nothing about what is accepted."""


def rewrite(node: Any, change: Callable[[dict[str, Any], str], dict[str, Any]], name: str = "") -> Any:
    """Return a schema with each schema in it changed, the outer before the inner; of a property `name` is its name."""
    if isinstance(node, list):
        return [rewrite(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _value(key, value, change) for key, value in change(node, name).items()}


def _value(key: str, value: Any, change: Callable[[dict[str, Any], str], dict[str, Any]]) -> Any:
    if key in DATA:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: rewrite(schema, change, name) for name, schema in value.items()}
    return rewrite(value, change)
