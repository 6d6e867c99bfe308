"""Entries of lists as clients of a revision can take them; where nothing is wrong they stay as they are. Pure.

What no revision allows is put right by `actors.protocol.definitions`; here are tools that an older revision has not all
words for. One that a strict parser refuses costs the client the whole list.

The schema of a tool's results is that of an object for clients of 2025-06-18 and 2025-11-25. Any other is put into one,
as its property `result`, and so are the results (`results`): that is what the official TypeScript SDK 2.x does for
clients of these revisions, so that a server behind us looks like one that does it itself.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from actors.protocol import definitions
from actors.protocol.agreement.versions import LATEST_LEGACY, Era
from actors.protocol.listing import MEMBERS, Kind
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.schemas import DATA, NAMED

STRUCTURED_SINCE: Final = "2025-06-18"
"""The first revision that has `outputSchema` of tools, and `structuredContent` of their results."""
EXECUTION_IN: Final = frozenset({"2025-11-25"})
"""Revisions that have `execution` in the definition of a tool: it says whether it can be called as a task."""

_OUTPUT: Final = "outputSchema"
_OUTPUT_MARK: Final = encode(_OUTPUT)

Members = dict[str, msgspec.Raw]
MAX_BYTES: Final = 262_144
MAX_DEPTH: Final = 32
"""A schema that is larger, or refers to itself from deeper, is left out: a client can do without it."""

_HERE: Final = "#/properties/result"
_REFERENCES: Final = ("$ref", "$dynamicRef")
_NAMED: Final = frozenset({*NAMED, "dependencies"})
_RECURSIVE: Final = b'"$recursiveRef"'
_MAY_REFER: Final = re.compile(rb'[Rr]ef"|\\')
"""What a text has that holds a reference; a key may be spelled with escapes."""
_KEYS: Final[dict[Kind, str]] = {
    "tools": "name",
    "resources": "uri",
    "templates": "uriTemplate",
    "prompts": "name",
    "skills": "uri",
}
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


def fit(definition: msgspec.Raw, kind: Kind, version: str) -> msgspec.Raw:
    """Return an entry of a list as clients of a revision can take it; the same object if they can. Raises `Unfit`."""
    era = _era(version)
    if kind != "tools":
        return definitions.fit(definition, kind, era).definition
    proper = definitions.fit(definition, kind, "modern").definition
    members = json.read(json.MEMBERS, proper)
    if changed := dict(_changes(members, version)):
        kept = {name: value for name, value in {**members, **changed}.items() if value is not None}
        proper = msgspec.Raw(encode(kept))
    return proper if era == "modern" else definitions.fit(proper, kind, era).definition


def _changes(members: Members, version: str) -> Iterator[tuple[str, msgspec.Raw | None]]:
    if "execution" in members and version not in EXECUTION_IN:
        yield "execution", None
    results = members.get(_OUTPUT)
    if results is None or version > LATEST_LEGACY:
        return
    if version < STRUCTURED_SINCE:
        yield _OUTPUT, None
    elif not is_of_objects(results):
        yield _OUTPUT, wrap(results)


def is_projected(definition: msgspec.Raw, version: str) -> bool:
    """Say whether a client of a revision is told that the results of a tool are objects with a `result`."""
    if _OUTPUT_MARK not in bytes(definition) or not STRUCTURED_SINCE <= version <= LATEST_LEGACY:
        return False
    if is_of_objects(json.at(definition, _OUTPUT)):
        return False
    try:
        schema = json.at(definitions.fit(definition, "tools", "modern").definition, _OUTPUT)
    except definitions.Unfit:
        return False
    return len(schema) > 0 and not is_of_objects(schema) and is_movable(schema)


def fit_page(body: bytes, kind: Kind, version: str) -> bytes:
    """Return the result of a list as clients of a revision can take it; the same bytes if they can.

    An entry of which nothing can be made is left out, and of two of one name the second. A result that has no list is
    the server's mistake, and stays it; `null` is a list without entries.
    """
    proper, name = definitions.fit_page(body), MEMBERS[kind]
    try:
        members = json.read(json.MEMBERS, proper)
        written = json.read(_LIST, members[name]) or []
    except (json.UnreadableJson, KeyError):
        return body
    fitted: dict[str, msgspec.Raw] = {}
    for entry in written:
        with suppress(definitions.Unfit):
            made = fit(entry, kind, version)
            fitted.setdefault(json.text_at(made, _KEYS[kind]), made)
    entries = list(fitted.values())
    if len(entries) == len(written) and all(map(operator.is_, entries, written)) and bytes(members[name]) != b"null":
        return proper
    return encode({**members, name: entries})


def _era(version: str) -> Era:
    return "modern" if version > LATEST_LEGACY else "legacy"


class _TooDeepError(Exception):
    """A reference is nested too deeply to be led elsewhere."""


def is_of_objects(schema: msgspec.Raw) -> bool:
    """Say whether a schema declares at its root that it is of objects; False for what is no schema."""
    return json.text_at(schema, "type") == "object"


def is_movable(schema: msgspec.Raw) -> bool:
    return len(schema) <= MAX_BYTES and bytes(schema)[:1] == b"{" and _RECURSIVE not in bytes(schema)


def wrap(schema: msgspec.Raw) -> msgspec.Raw | None:
    """Return the schema of an object with one property, `result`, which has this schema; None if there is none.

    Its references to itself are made to lead to the new place, and its dialect is told at the root. What a
    `$recursiveRef` means cannot be kept in another place (JSON Schema 2019-09, core 8.2.4.2).
    """
    if not is_movable(schema):
        return None
    try:
        members = json.read(json.MEMBERS, schema)
        dialect = {"$schema": members["$schema"]} if json.text_at(members.get("$schema")) else {}
        if _has_base(members):  # a document of its own, which says its dialect itself, too
            inner = schema
        else:
            rest = {name: value for name, value in members.items() if name not in dialect}
            inner = _move(msgspec.Raw(encode(rest)) if dialect else schema, MAX_DEPTH)
    except (_TooDeepError, json.UnreadableJson):
        return None
    return msgspec.Raw(encode({**dialect, "type": "object", "properties": {"result": inner}, "required": ["result"]}))


def _move(schema: msgspec.Raw, depth: int) -> msgspec.Raw:
    """Return a schema, or an array of some, with references as they are from the new root. Raises `_TooDeepError`."""
    text = bytes(schema)
    if text[:1] not in (b"{", b"[") or not _MAY_REFER.search(text):
        return schema
    if not depth:
        raise _TooDeepError
    if text[:1] == b"[":
        return msgspec.Raw(encode([_move(item, depth - 1) for item in json.read(json.ELEMENTS, schema)]))
    members = json.read(json.MEMBERS, schema)
    if _has_base(members):
        return schema
    return msgspec.Raw(encode({name: _value(name, value, depth - 1) for name, value in members.items()}))


def _value(keyword: str, value: msgspec.Raw, depth: int) -> Any:
    if keyword in DATA:
        return value
    if keyword in _REFERENCES:
        reference = json.text_at(value)
        return f"{_HERE}{reference[1:]}" if reference == "#" or reference.startswith("#/") else value
    if keyword in _NAMED and bytes(value)[:1] == b"{":
        return {name: _move(each, depth) for name, each in json.read(json.MEMBERS, value).items()}
    return _move(value, depth)


def _has_base(members: dict[str, msgspec.Raw]) -> bool:
    """Say whether references in a schema start from itself: it has an `$id` that is more than a fragment."""
    return "$id" in members and not json.text_at(members["$id"]).startswith("#")
