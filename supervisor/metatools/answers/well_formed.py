"""Definitions and pages of lists as the protocol has them, where what a server wrote is not quite that. Pure.

Clients check what they are given, and one wrong member can cost them a whole list. So what they cannot take goes, or is
put right; everything else stays as it was written, and a page with nothing wrong in it stays the same bytes:

- a tool's schema without `type` gets `"type": "object"` (2025-11-25 server/tools: it is required);
- members that are `null`, which no optional member may be, are left out: those of a definition, of its `annotations`,
  of the arguments of a prompt, and of the page (a cursor that is `null` is none);
- of two definitions of one name the first stays;
- `execution` of a tool is of 2025-11-25 alone.
"""

from __future__ import annotations

import operator
from typing import Final

import msgspec

from actors.protocol.agreement.versions import Era
from actors.protocol.listing import MEMBERS, Kind
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

OBJECT: Final = b'{"type":"object"'
_KEYS: Final[dict[Kind, str]] = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
_NULL: Final = msgspec.Raw(b"null")

Members = dict[str, msgspec.Raw]


def definition(members: Members, kind: Kind, era: Era) -> Members:
    """Return a definition for clients of an era; the same one if there is nothing wrong with it."""
    proper = _without_nulls(members)
    if kind == "tools":
        proper = _tool(proper, era)
    for name, put_right in (("annotations", _object), ("arguments", _array)):
        if b"null" in bytes(proper.get(name, b"")):
            proper = {**proper, name: put_right(proper[name])}
    return members if proper == members else proper


def page(body: bytes, kind: Kind, era: Era) -> bytes:
    """Return the result of a list for clients of an era; what cannot be read is the server's mistake, and stays it."""
    try:
        result = json.read(json.MEMBERS, body)
        entries = json.read(json.ELEMENTS, result[MEMBERS[kind]])
        written = [json.read(json.MEMBERS, entry) for entry in entries]
    except (json.UnreadableJson, KeyError):
        return body
    proper: dict[bytes | int, Members] = {}
    for number, each in enumerate(written):
        key = each.get(_KEYS[kind])
        proper.setdefault(number if key is None else bytes(key), definition(each, kind, era))
    rest = _without_nulls(result)
    if rest == result and len(proper) == len(written) and all(map(operator.is_, proper.values(), written)):
        return body
    return encode({**rest, MEMBERS[kind]: list(proper.values())})


def _without_nulls(members: Members) -> Members:
    return {name: value for name, value in members.items() if value != _NULL}


def _tool(members: Members, era: Era) -> Members:
    schema = members.get("inputSchema", msgspec.Raw(b"{}"))
    proper = {**members, "inputSchema": _with_type(schema)}
    if era == "modern":
        proper.pop("execution", None)
    return proper


def _with_type(schema: msgspec.Raw) -> msgspec.Raw:
    """Return a schema with a type; the same one if it has one, or is no object."""
    if (members := json.read_or(json.MEMBERS, schema, None)) is None:
        return schema
    if "type" in members:
        return schema
    return msgspec.Raw(OBJECT + (b"," + bytes(schema).lstrip()[1:] if members else b"}"))


def _object(raw: msgspec.Raw) -> msgspec.Raw:
    members = json.read_or(json.MEMBERS, raw, None)
    return raw if members is None else msgspec.Raw(encode(_without_nulls(members)))


def _array(raw: msgspec.Raw) -> msgspec.Raw:
    elements = json.read_or(json.OBJECTS, raw, None)
    return raw if elements is None else msgspec.Raw(encode([_without_nulls(each) for each in elements]))
