"""Arguments that a server wants to see in the head of a call, too: `x-mcp-header` in the schema of a tool. Pure.

(MCP 2026-07-28, basic/transports/streamable-http "Custom Headers from Tool Parameters".)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from actors.protocol.wire import json

ANNOTATION: Final = "x-mcp-header"
MARK: Final = ANNOTATION.encode()
"""A definition without these bytes has no annotation."""
MAX_MIRRORS: Final = 64
MAX_NAME_CHARS: Final = 128
MAX_SAFE_INTEGER: Final = 2**53 - 1
_FIELD: Final = "mcp-param-"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_SCHEMAS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose members are schemas, whatever they are called (JSON Schema 2020-12)."""
_DATA: Final = frozenset({"const", "default", "enum", "examples", "example"})
"""Keywords whose values are no schemas."""


class Mirror(msgspec.Struct, frozen=True, gc=False):
    """One argument: the field of the head that repeats it, and its path in the arguments."""

    field: str
    path: tuple[str, ...]


MirrorsOf = Callable[[str], tuple[Mirror, ...]]
"""Gives the mirrors of a tool by its name."""


class MisplacedMirror(Exception):
    """An annotation breaks the rules, so no client over HTTP may use the tool; the text is for operators."""


def mirrors_in(schema: Any) -> tuple[Mirror, ...]:
    """Return what the schema of a tool's arguments wants to be mirrored. Raises `MisplacedMirror`."""
    mirrors: dict[str, Mirror] = {}
    for path, declared in _positions(schema):
        if ANNOTATION not in declared:
            continue
        if not path:
            raise MisplacedMirror(f"{ANNOTATION} stands where no path of properties leads")
        field = _field(declared)
        if field in mirrors:
            raise MisplacedMirror(f"{ANNOTATION} names {field!r} twice")
        if len(mirrors) == MAX_MIRRORS:
            raise MisplacedMirror(f"{ANNOTATION} stands at over {MAX_MIRRORS} properties")
        mirrors[field] = Mirror(field, path)
    return tuple(mirrors.values())


def _field(declared: dict[str, Any]) -> str:
    name, type_ = declared[ANNOTATION], declared.get("type")
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not _TOKEN.fullmatch(name):
        raise MisplacedMirror(f"{ANNOTATION} is no token of 1 to {MAX_NAME_CHARS} characters")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise MisplacedMirror(f"{ANNOTATION} {name!r} stands at what is no string, integer or boolean")
    return _FIELD + name.lower()


def _positions(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Yield each schema in a schema with its path; None for the path where not only `properties` lead there."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(None, each) for each in value]
        if not isinstance(value, dict):
            continue
        yield path, value
        for keyword, inner in value.items():
            if keyword in _SCHEMAS and isinstance(inner, dict):
                on = path if keyword == "properties" else None
                waiting += [(None if on is None else (*on, name), each) for name, each in inner.items()]
            elif keyword not in _DATA:
                waiting.append((None, inner))


# A call --------------------------------------------------------------------------------------------------------------

Arguments = Mapping[str, msgspec.Raw | None]
"""Those that are to be mirrored, as JSON text, by the field of each; None where there is none."""


class _Params(msgspec.Struct):
    arguments: json.Members = {}


class _Request(msgspec.Struct):
    params: _Params


_request = msgspec.json.Decoder(_Request)
_params = msgspec.json.Decoder(_Params)
_INTEGER: Final = re.compile(r"(-?\d{1,16})(?:\.0{1,16})?")
_scalar = msgspec.json.Decoder(bool | int | float | str | None)


def header_texts(mirrors: tuple[Mirror, ...], request: bytes) -> Mapping[str, str]:
    """Return the texts of the arguments that are to be mirrored, by the field of each.

    What is not there, null, or of another kind has none. Nothing of the arguments is read but what lies on the way.
    """
    # They may be large: in one pass.
    arguments = json.read_or(_request, request, _Request(_Params())).params.arguments
    texts = {field: _text(argument) for field, argument in _select(mirrors, arguments).items()}
    return {field: text for field, text in texts.items() if text is not None}


def arguments_in(mirrors: tuple[Mirror, ...], params: msgspec.Raw) -> Arguments:
    read = json.read_or(_params, params, None)
    return {} if read is None else _select(mirrors, read.arguments)


def agree(argument: msgspec.Raw | None, text: str | None) -> bool:
    """Say whether the text of a field, None where there is none, repeats an argument: integers by value, else exactly.

    An argument of a kind that has no text agrees with everything: what its schema says of it is asked elsewhere.
    """
    if argument is None or bytes(argument) == b"null":
        return text is None
    expected = _text(argument)
    if expected is None or text == expected:
        return True
    integer = None if text is None or bytes(argument)[:1] == b'"' else _INTEGER.fullmatch(text)
    return integer is not None and str(int(integer[1])) == expected


def _select(mirrors: tuple[Mirror, ...], arguments: json.Members) -> Arguments:
    objects: dict[tuple[str, ...], json.Members] = {(): arguments}
    return {mirror.field: _at(objects, mirror.path) for mirror in mirrors}


def _at(objects: dict[tuple[str, ...], json.Members], path: tuple[str, ...]) -> msgspec.Raw | None:
    """Return the value at a path; `objects` are those that were read on the way to others."""
    for length in range(1, len(path)):
        if path[:length] not in objects:
            inner = objects[path[: length - 1]].get(path[length - 1], b"{}")
            objects[path[:length]] = json.members(inner)
    return objects[path[:-1]].get(path[-1])


def _text(raw: msgspec.Raw | None) -> str | None:
    match None if raw is None else json.read_or(_scalar, raw, None):
        case bool(value):
            return "true" if value else "false"
        case str(value):
            return value
        case (int() | float()) as value if abs(value) <= MAX_SAFE_INTEGER and value == int(value):
            return str(int(value))
    return None
