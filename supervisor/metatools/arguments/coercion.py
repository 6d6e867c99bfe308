"""Arguments that miss a tool's schema by a slip a model often makes, set right. Pure.

- the arguments once more inside `arguments`, `params` or the like, where the tool has no such parameter
- an array, an object, a number or a boolean as a string that holds it, where the schema wants no string
- `null` for an optional parameter that may not be null

Only where the schema says plainly what it wants, and where schema and arguments are of a size that can be looked at;
everything else goes to the server as it came, byte for byte.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from actors.catalogue.offer import Tool
from actors.protocol.wire import json
from actors.protocol.wire.json import Members
from actors.protocol.wire.repeated_keys import check_keys
from supervisor.metatools.lenient_json import NotAnObject, Object, members, plain

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_BEGINS = {"array": b"[", "object": b"{"}
_BOOLEANS = {"true": b"true", "false": b"false"}

_MAX_KNOWN_BYTES = 4 * 1024
_MAX_KNOWN = 128
"""So many schemas of that size are kept taken apart, 5 MiB at the very most: those of the tools that are called."""


def coerce_arguments(tool: Tool, given: Object, wrappers: Collection[str]) -> Object:
    """Return the arguments of a call, set right where that is plain; the very same where nothing is to be done."""
    properties, members = properties_of(tool), given.members
    if not properties or members is None:
        return given
    unwrapped = _inside(members, properties, wrappers) if len(members) == 1 else members
    needed, changed = frozenset(tool.required), dict[str, msgspec.Raw | None]()
    for name, raw in unwrapped.items():
        fitted = _coerce(raw, properties.get(name), needed=name in needed)
        if fitted is not raw:
            changed[name] = fitted
    if unwrapped is members and not changed:
        return given
    right = {name: raw for name, raw in {**unwrapped, **changed}.items() if raw is not None}
    return Object(msgspec.Raw(msgspec.json.encode(right)), right)


def properties_of(tool: Tool) -> Mapping[str, Any]:
    """Return what a tool's schema says of its properties, nothing if it does not say it in the usual way."""
    schema = bytes(tool.input_schema)
    return _known_properties(schema) if len(schema) <= _MAX_KNOWN_BYTES else _properties(schema)


def _properties(schema: bytes) -> Mapping[str, Any]:
    value = plain(msgspec.Raw(schema))
    properties = value.get("properties") if isinstance(value, dict) else None
    return properties if isinstance(properties, dict) else {}


_known_properties = lru_cache(maxsize=_MAX_KNOWN)(_properties)


def _inside(given: Members, properties: Mapping[str, Any], wrappers: Collection[str]) -> Members:
    (name,) = given
    if name not in wrappers or name in properties:
        return given
    try:
        return members(given[name])
    except NotAnObject:
        return given


def _coerce(raw: msgspec.Raw, schema: Any, *, needed: bool) -> msgspec.Raw | None:
    """Return one argument as it is to be sent; None if it is to be left out."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return raw
    wanted = schema.get("type")
    if not isinstance(wanted, str) or wanted == "null":
        return raw
    data = bytes(raw).strip()
    if data == b"null":
        return raw if needed or schema.get("nullable") or schema.get("default", 0) is None else None
    return _out_of_text(raw, wanted) if data[:1] == b'"' and (wanted in _KINDS or wanted in _BEGINS) else raw


def _out_of_text(raw: msgspec.Raw, wanted: str) -> msgspec.Raw:
    """Return the value that a string holds, if it is of the kind wanted. Raises `RepeatedKey`."""
    text = str(plain(raw)).strip()
    if wanted in _BEGINS:
        data = text.encode(errors="replace")
        if data[:1] != _BEGINS[wanted] or not json.is_json(data):
            return raw
        check_keys(data)
        return msgspec.Raw(data)
    data = _BOOLEANS.get(text.lower(), text.encode(errors="replace"))
    value = plain(msgspec.Raw(data))
    right = isinstance(value, _KINDS[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    return msgspec.Raw(data) if right else raw
