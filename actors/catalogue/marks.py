"""What is noted of a definition when it is read: its digest, what is suspicious about it, how its name looks. Pure.

That takes a while, so it is done where lists are read, in a thread, and kept with what was read. The digest is one of
all that a definition says, whatever its spelling: the order of members, white space and escapes do not count. The whole
definition counts, not only what a model reads today: clients get all of it at the doors of servers, rows of
`discover_mcp_tools` show `_meta`, and what counts here is what `redefinition` shows as a change.
"""

from __future__ import annotations

import hashlib
import json as stdlib
import zlib
from typing import Any, Final

import msgspec

from actors.catalogue.findings import look
from actors.catalogue.offer import Tool
from actors.catalogue.suspicions import AS_TEXT, alarms_of
from actors.protocol.listing import METHODS
from actors.protocol.wire import json

_READING: Final = "definitions held against the schema of the protocol, and what they say kept there alone"
MARKS: Final = zlib.crc32(f"{AS_TEXT}{_READING}{' '.join(METHODS)}".encode()) or 1
"""Another number for other rules, and for other lists: what was read and marked by earlier ones is read again, see
`validation`."""

TWICE: Final = "schema-twice"


def digest_of(definition: Any) -> bytes:
    """Return the SHA-256 digest of a decoded definition: whoever writes both of two must not make them agree."""
    return hashlib.sha256(msgspec.json.encode(definition, order="sorted")).digest()


def marks_of(definition: dict[str, Any], written: bytes) -> dict[str, Any]:
    """Return the members of a `Tool` that are noted of its definition, which was decoded of what is `written`.

    Where a member is there twice, readers differ in which one counts: then each byte does.
    """
    name, alarms = definition.get("name"), alarms_of(definition)
    seen = look(name) if isinstance(name, str) else ""
    if _has_twice(definition, written):
        return {"digest": hashlib.sha256(written).digest(), "alarms": (*alarms, TWICE), "look": seen}
    return {"digest": digest_of(definition), "alarms": alarms, "look": seen}


def _has_twice(definition: Any, written: bytes) -> bool:
    """Say whether an object in a definition has a member twice, of which the decoded one has the last."""
    members = _members(definition)
    # Behind a text in quotes a colon is the end of a name, or escaped: then it is to be looked at.
    return msgspec.json.format(written, indent=-1).count(b'":') > members and _written_members(written) > members


def _members(definition: Any) -> int:
    """Return how many members all objects of a value have; a loop, as it is done for each tool."""
    count, waiting = 0, [definition]
    while waiting:
        level = waiting.pop()
        if type(level) is dict:
            count += len(level)
            level = level.values()
        waiting += [child for child in level if type(child) is dict or type(child) is list]
    return count


def _written_members(written: bytes) -> int:
    """Return how many members there are in what is written, those that are there twice counted twice."""
    count = 0

    def pairs(members: list[tuple[str, Any]]) -> None:
        nonlocal count
        count += len(members)

    stdlib.loads(written, object_pairs_hook=pairs)
    return count


def digest(tool: Tool) -> bytes:
    """Return the digest of a tool as its server has it, made if it was not marked."""
    own = tool.own or tool
    return own.digest or digest_of([json.read_or(json.VALUE, own.definition, None), own.name])
