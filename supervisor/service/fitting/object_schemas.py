"""Schemas of objects whose properties are objects, too, as parsers of revisions before 2026-07-28 demand them. Pure.

In JSON Schema a property may be `true`, and some generators write that for "anything".
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from actors.protocol.wire.jsonrpc import encode

_MEANT: Final = {b"true": msgspec.Raw(b"{}"), b"false": msgspec.Raw(b'{"not":{}}')}
_MAY_BE_BOOLEAN: Final = re.compile(rb":\s*(?:true|false)\b")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def without_booleans(schema: msgspec.Raw) -> msgspec.Raw | None:
    """Return a schema with objects in place of properties that are booleans; None if it has none."""
    if not _MAY_BE_BOOLEAN.search(bytes(schema)):
        return None
    try:
        members = _members.decode(schema)
        properties = _members.decode(members.get("properties", b"{}"))
    except msgspec.ValidationError:
        return None
    booleans = {name: _MEANT[bytes(value)] for name, value in properties.items() if bytes(value) in _MEANT}
    if not booleans:
        return None
    return msgspec.Raw(encode({**members, "properties": {**properties, **booleans}}))
