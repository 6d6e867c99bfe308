"""Names and descriptions of parameters out of a tool's input schema. Pure; a server wrote the schema, so any shape.

JSON Schema 2020-12 is followed no further than a search needs: `properties`, those of nested objects and of the items
of arrays one level deep. What is not an object or not a string is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_PARAMETERS = 60
"""More parameters than this add nothing to finding a tool."""


def parameters_of(schema: object) -> tuple[tuple[str, str], ...]:
    """Return the (name, description) pairs of an input schema, in its order, at most 60; description may be empty."""
    out: list[tuple[str, str]] = []
    for pair in _pairs(schema, nested=True):
        out.append(pair)
        if len(out) == MAX_PARAMETERS:
            break
    return tuple(out)


def _pairs(schema: object, *, nested: bool) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    for name, property_ in properties.items():
        description = property_.get("description") if isinstance(property_, dict) else None
        yield str(name), description if isinstance(description, str) else ""
        if nested and isinstance(property_, dict):
            yield from _pairs(property_, nested=False)
            yield from _pairs(property_.get("items"), nested=False)
