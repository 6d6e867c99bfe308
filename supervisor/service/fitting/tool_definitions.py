"""Definitions as clients of a revision can take them; where nothing is wrong they stay as they are. Pure.

What no revision allows is put right by `well_formed`; here are tools that an older revision has not all words for. One
that a strict parser refuses costs the client the whole list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from actors.protocol.agreement.versions import LATEST_LEGACY, Era
from actors.protocol.listing import MEMBERS, Kind
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.answers import well_formed
from supervisor.service.fitting import schemas
from supervisor.service.fitting.schemas import without_booleans

STRUCTURED_SINCE: Final = "2025-06-18"
"""The first revision that has `outputSchema` of tools, and `structuredContent` of their results."""
EXECUTION_IN: Final = frozenset({"2025-11-25"})
"""Revisions that have `execution` in the definition of a tool: it says whether it can be called as a task."""

_OUTPUT: Final = "outputSchema"
_INPUT: Final = "inputSchema"
_OUTPUT_MARK: Final = encode(_OUTPUT)

Members = dict[str, msgspec.Raw]


class _Output(msgspec.Struct):
    schema: msgspec.Raw = msgspec.field(name=_OUTPUT, default=msgspec.Raw(b""))


_output = msgspec.json.Decoder(_Output)


def fit(members: Members, kind: Kind, version: str) -> Members:
    """Return the members of a definition as clients of a revision can take them; the same object if they can."""
    proper = well_formed.definition(members, kind, _era(version))
    return _fit_tool(proper, version) if kind == "tools" else proper


def _fit_tool(members: Members, version: str) -> Members:
    changed = dict(_changes(members, version))
    if not changed:
        return members
    return {name: value for name, value in {**members, **changed}.items() if value is not None}


def _changes(members: Members, version: str) -> Iterator[tuple[str, msgspec.Raw | None]]:
    if "execution" in members and version not in EXECUTION_IN:
        yield "execution", None
    if version > LATEST_LEGACY:
        return
    arguments, results = members.get(_INPUT), members.get(_OUTPUT)
    if arguments is not None and (plain := without_booleans(arguments)) is not None:
        yield _INPUT, plain
    if results is None:
        return
    if version < STRUCTURED_SINCE:
        yield _OUTPUT, None
    elif _lacks_object(results, version):
        yield _OUTPUT, schemas.wrap(results)
    elif (plain := without_booleans(results)) is not None:
        yield _OUTPUT, plain


def is_projected(definition: msgspec.Raw, version: str) -> bool:
    """Say whether a client of a revision is told that the results of a tool are objects with a `result`."""
    if _OUTPUT_MARK not in bytes(definition):
        return False
    schema = json.read_or(_output, definition, _Output()).schema
    return _lacks_object(schema, version) and schemas.is_movable(schema)


def fit_page(body: bytes, kind: Kind, version: str) -> bytes:
    """Return the result of a list as clients of a revision can take it; the same bytes if they can."""
    proper = well_formed.page(body, kind, _era(version))
    if kind != "tools":
        return proper
    try:
        members = json.read(json.MEMBERS, proper)
        written = json.read(json.OBJECTS, members.get(MEMBERS[kind], b"[]"))
    except json.UnreadableJson:  # whoever reads it may judge
        return proper
    fitted = [_fit_tool(tool, version) for tool in written]
    if all(new is old for new, old in zip(fitted, written, strict=True)):
        return proper
    return encode({**members, MEMBERS[kind]: fitted})


def _era(version: str) -> Era:
    return "modern" if version > LATEST_LEGACY else "legacy"


def _lacks_object(schema: msgspec.Raw, version: str) -> bool:
    """Say whether clients of a revision refuse a schema of results, because it is not of objects."""
    return STRUCTURED_SINCE <= version <= LATEST_LEGACY and not schemas.is_of_objects(schema)
