"""`Mcp-Param-*`: arguments that a modern client repeats in headers, because the tool's schema asks for it. PURE.

Rules of this file (MCP 2026-07-28, SEP-2243):
- A property asks with `x-mcp-header`, a token that becomes `Mcp-Param-<token>`. It counts if the property is a string,
  an integer or a boolean, is reached from the root through `properties` only, and no other one has the same token in
  any case. An annotation that does not count is as if it were not there.
- What is annotated must agree: no argument, no header; an argument, exactly one header with the same value. Any other
  `Mcp-Param-*` is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from supervisor.front.http.head import Headers, header_text

PREFIX: Final = b"mcp-param-"
MAX_DEPTH: Final = 32

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_WHOLE = re.compile(r"(-?[0-9]{1,64})(?:\.0{1,16})?")
_KINDS: Final = frozenset({"string", "integer", "boolean"})
_MISSING: Final = object()


class ParamHeader(msgspec.Struct, frozen=True):
    """One argument that is repeated: the header's name in lower case, and where the argument is."""

    header: bytes
    path: tuple[str, ...]


def param_headers(schema: object) -> tuple[ParamHeader, ...]:
    """Return what a tool's input schema (decoded JSON) wants repeated in headers."""
    found: dict[bytes, list[ParamHeader]] = {}
    for one in _annotated(schema, ()):
        found.setdefault(one.header, []).append(one)
    return tuple(same[0] for same in found.values() if len(same) == 1)


def _annotated(schema: object, path: tuple[str, ...]) -> Iterator[ParamHeader]:
    properties = schema.get("properties") if isinstance(schema, dict) and len(path) < MAX_DEPTH else None
    if not isinstance(properties, dict):
        return
    for name, inner in properties.items():
        if not isinstance(inner, dict):
            continue
        token, kind = inner.get("x-mcp-header"), inner.get("type")
        if isinstance(token, str) and _TOKEN.fullmatch(token) and isinstance(kind, str) and kind in _KINDS:
            yield ParamHeader(PREFIX + token.lower().encode(), (*path, name))
        yield from _annotated(inner, (*path, name))


def disagreement(wanted: tuple[ParamHeader, ...], arguments: object, headers: Headers) -> str | None:
    """Return the name of the first header that does not agree with the arguments (decoded JSON), or None."""
    given: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name.startswith(PREFIX):
            given.setdefault(name, []).append(value)
    for one in wanted:
        if not _agrees(given.get(one.header, []), _value_at(arguments, one.path)):
            return one.header.decode()
    return None


def _value_at(arguments: Any, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(arguments, dict) or name not in arguments:
            return _MISSING
        arguments = arguments[name]
    return arguments


def _agrees(values: list[bytes], argument: object) -> bool:
    if argument is _MISSING or argument is None:
        return not values
    text = header_text(values[0]) if len(values) == 1 else None
    if text is None:
        return False
    if isinstance(argument, bool):
        return text == ("true" if argument else "false")
    if isinstance(argument, int | float):
        whole = _WHOLE.fullmatch(text)
        return whole is not None and int(whole[1]) == argument
    return text == argument
