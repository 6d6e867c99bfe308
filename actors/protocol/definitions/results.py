"""Schemas of results as clients compile them. Pure.

The official TypeScript SDK 1.x compiles the schemas of all results when it reads a list, with Ajv: one that cannot be
compiled takes the whole list from it (`cacheToolMetadata` of its client). Beyond its form a schema must then have
references that lead somewhere inside of it, and patterns that are regular expressions of ECMAScript with the flag `u`;
and neither `id` of draft 4 nor `nullable` of OpenAPI without a type. A keyword that breaks this is left out: the client
checks less, and the server is the one to check its results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from actors.protocol.definitions.schema import BY_NAME, HOLDING
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

MAX_PATTERN_CHARS: Final = 2000
_REFERENCES: Final = ("$ref", "$dynamicRef")
_LIMITS: Final = ("formatMinimum", "formatMaximum", "formatExclusiveMinimum", "formatExclusiveMaximum")
_BY_PATTERN: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_SUSPECT: Final = re.compile(
    rb'"(?:\$ref|\$dynamicRef|pattern|patternProperties|id|nullable|format(?:Exclusive)?M(?:in|ax)imum)"'
)
_PIECE: Final = re.compile(
    r"""\\(?:[dDwWsSbBnrtfv0^$\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{\w+(?:=\w+)?\})
    |\((?:\?(?::|=|!|<=|<!|<[A-Za-z]\w*>))?(?![*+?{])
    |\[\^?(?:\\(?:[dDwWsSbnrtfv0^$\\.*+?()\[\]{}|/\-]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{\w+(?:=\w+)?\})|[^\\\]])*\]
    |(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![*+?{])
    |[^\\\[\]{}()*+?]|\)""",
    re.VERBOSE,
)
_CLASS_OF_PROPERTY: Final = re.compile(r"\\[pP]\{[^}]*\}")


def compilable(schema: msgspec.Raw, faults: list[str]) -> msgspec.Raw:
    """Return a well-formed schema without what Ajv does not compile, the same object if there is nothing; notes it."""
    if not _SUSPECT.search(bytes(schema)):
        return schema
    try:
        root = json.read(json.VALUE, schema)
        gone = [f"outputSchema: {keyword} left out" for keyword in _clean(root)]
    except (json.UnreadableJson, RecursionError):
        return schema
    faults += gone
    return msgspec.Raw(encode(root)) if gone else schema


def _clean(root: Any) -> Iterator[str]:
    """Leave out of a decoded schema what is not compiled; yield the keywords."""
    schemas = list(_schemas_in(root))
    bases = [root, *(schema for schema in schemas if "$id" in schema)]
    places = {
        *_texts(schemas, "$id"),
        *(f"#{name}" for name in (*_texts(schemas, "$anchor"), *_texts(schemas, "$dynamicAnchor"))),
    }
    for schema in schemas:
        gone: list[str] = [
            keyword for keyword in _REFERENCES if keyword in schema and not _leads(schema[keyword], bases, places)
        ]
        gone += ["pattern"] if "pattern" in schema and not is_ecmascript(schema["pattern"]) else []
        gone += ["id"] if "id" in schema else []
        gone += ["nullable"] if "nullable" in schema and "type" not in schema else []
        gone += [limit for limit in _LIMITS if limit in schema and "format" not in schema]
        if not all(map(is_ecmascript, schema.get("patternProperties", ()))):
            # What only those names allowed is allowed by none now, so nothing else may be refused.
            gone += [keyword for keyword in _BY_PATTERN if keyword in schema]
        for keyword in gone:
            del schema[keyword]
        yield from gone


def _schemas_in(root: Any) -> Iterator[dict[str, Any]]:
    """Yield each schema that is an object, outer ones first."""
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list):
            waiting += schema
        if not isinstance(schema, dict):
            continue
        yield schema
        waiting += [schema[keyword] for keyword in HOLDING & schema.keys()]
        waiting += [each for keyword in BY_NAME & schema.keys() for each in schema[keyword].values()]


def _texts(schemas: list[dict[str, Any]], keyword: str) -> list[str]:
    return [schema[keyword] for schema in schemas if keyword in schema]


def _leads(reference: str, bases: list[Any], places: set[str]) -> bool:
    """Say whether a reference leads to a place in the schema: by a name, or by a pointer (RFC 6901) from a base."""
    base, _, fragment = reference.partition("#")
    if reference in places or reference in ("", "#"):
        return True
    if base and base not in places:
        return False
    parts = [part.replace("~1", "/").replace("~0", "~") for part in unquote(fragment).split("/")]
    return fragment[:1] in ("", "/") and any(_reaches(each, parts[1:]) for each in bases)


def _reaches(node: Any, parts: list[str]) -> bool:
    for part in parts:
        if isinstance(node, list) and part.isascii() and part.isdigit() and len(part) < 6 and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            return False
    return isinstance(node, dict | bool)


def is_ecmascript(pattern: str) -> bool:
    """Say whether a regular expression surely is one of ECMAScript with the flag `u`; False where that is not clear."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return False
    at = 0
    while at < len(pattern):
        if (piece := _PIECE.match(pattern, at)) is None:
            return False
        at = piece.end()
    try:  # for brackets that do not match, ranges the wrong way round, and groups that are named twice
        re.compile(
            _CLASS_OF_PROPERTY.sub("a", pattern)
            .replace("(?<", "(?P<")
            .replace("(?P<=", "(?<=")
            .replace("(?P<!", "(?<!")
        )
    except (re.error, OverflowError, RecursionError):
        return False
    return True
