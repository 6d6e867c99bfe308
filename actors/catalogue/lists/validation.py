"""From what a server listed to entries we can use: each is read alone; what is malformed is refused with a reason.

What is read of an entry is what clients are shown of it, see `actors.protocol.definitions`. All this may run in a
worker thread. Bounds: a name of at most 256 characters, a description of 16 KiB (longer ones are cut), a definition of
1 MiB, 128 levels and 200,000 brackets and commas; of parameters and required names, what ranking needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.catalogue.lists.marks import MARKS, marks_of
from actors.catalogue.lists.skills import UnusableSkill, read_skill
from actors.catalogue.offer import (
    DELIVERIES,
    MAX_DESCRIPTION,
    MAX_NAME,
    NO_RAW,
    Declared,
    EventType,
    Offer,
    Prompt,
    Resource,
    Skill,
    Tool,
    key_of,
    members_of,
    shared,
)
from actors.protocol.agreement.capabilities import EVENTS, SKETCHED
from actors.protocol.definitions import Unfit, fit
from actors.protocol.listing import METHODS, SKILLS, Kind, capability_names
from actors.protocol.wire import json
from actors.protocol.wire.mirrors import MARK, Mirror, MisplacedMirror, mirrors_in
from actors.protocol.wire.outline import MalformedJson, extent

MAX_PROBLEMS = 50
MAX_DEFINITION_BYTES = 1024 * 1024
MAX_DEPTH = 128
MAX_MARKS = 200_000
MAX_REQUIRED = 256


class Unusable(Exception):
    """Why one entry was dropped; the text is for operators."""


class _Texts(msgspec.Struct):
    """What routing and ranking need of an entry that fits the protocol's schema."""

    name: str
    uri: str = ""
    uri_template: str = msgspec.field(name="uriTemplate", default="")
    title: str = ""
    description: str = ""
    mime_type: str = msgspec.field(name="mimeType", default="")
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_RAW)


_texts = msgspec.json.Decoder(_Texts)
_DELIVERY = msgspec.json.Decoder(list[str])


def tool(raw: msgspec.Raw) -> Tool:
    """Read one entry of `tools/list`. Raises `Unusable`."""
    value, fitted = _decode("tools", raw)
    members = members_of(fitted)
    _check_name(members["name"])
    members["input_schema"] = _packed(members["input_schema"])
    schema, needs_task = json.read(json.VALUE, members["input_schema"]), b'"taskSupport"' in bytes(raw)
    mirrors, misplaced = _mirrors(schema) if MARK in bytes(raw) else ((), "")
    return Tool(
        **members,
        required=shared(islice(_needed(schema), MAX_REQUIRED)),
        definition=raw,
        mirrors=mirrors,
        misplaced=misplaced,
        needs_task=needs_task and _needs_task(value.get("execution")),
        **marks_of(value, bytes(raw)),
    )


def resource(raw: msgspec.Raw, *, template: bool = False) -> Resource:
    """Read one entry of `resources/list`, or of `resources/templates/list`. Raises `Unusable`."""
    entry = _read("templates" if template else "resources", raw)
    uri = entry.uri_template if template else entry.uri
    if not uri or len(uri) > 8192 or not uri.isprintable():
        raise Unusable("its URI is empty, over 8192 characters or not printable")
    return Resource(
        uri=uri,
        name=entry.name[:MAX_NAME],
        title=entry.title[:MAX_NAME],
        description=entry.description[:MAX_DESCRIPTION],
        mime_type=entry.mime_type[:MAX_NAME],
        meta=entry.meta,
        definition=raw,
        template=template,
    )


def prompt(raw: msgspec.Raw) -> Prompt:
    """Read one entry of `prompts/list`. Raises `Unusable`."""
    entry = _read("prompts", raw)
    _check_name(entry.name)
    description = entry.description[:MAX_DESCRIPTION]
    return Prompt(name=entry.name, title=entry.title[:MAX_NAME], description=description, definition=raw)


def skill(raw: msgspec.Raw) -> Skill:
    """Read one entry of `skills/list`, or of `skills/get`. Raises `Unusable`."""
    if len(raw) > MAX_DEFINITION_BYTES:
        raise Unusable(f"its definition is over {MAX_DEFINITION_BYTES} bytes")
    _check_extent(bytes(raw))
    try:
        read = read_skill(fit(raw, "skills", "modern").definition)
    except (Unfit, UnusableSkill) as reason:
        raise Unusable(str(reason)) from None
    _check_name(read.name)
    return replace(read, description=read.description[:MAX_DESCRIPTION], definition=raw)


def event_type(raw: msgspec.Raw) -> EventType:
    """Read one entry of `events/list`. Raises `Unusable`."""
    entry = _read("events", raw)
    _check_name(entry.name)
    delivery = json.read(_DELIVERY, json.at(fit(raw, "events", "modern").definition, "delivery"))
    return EventType(
        name=entry.name,
        description=entry.description[:MAX_DESCRIPTION],
        delivery=tuple(mode for mode in DELIVERIES if mode in delivery),
        definition=raw,
    )


READ: dict[Kind, Callable[[msgspec.Raw], Declared]] = {
    "tools": tool,
    "resources": resource,
    "templates": partial(resource, template=True),
    "prompts": prompt,
    "skills": skill,
    "events": event_type,
}
"""Reads an entry of each list. Raises `Unusable`."""


def _read(kind: Kind, raw: msgspec.Raw) -> _Texts:
    return json.read(_texts, _decode(kind, raw)[1])


def _decode(kind: Kind, raw: msgspec.Raw) -> tuple[dict[str, Any], msgspec.Raw]:
    """Return an entry as its server wrote it, and what fits the protocol: all is read, so nothing surprises later."""
    data = bytes(raw)
    _check_extent(data)
    try:
        value = json.read(json.VALUE, data)
    except json.UnreadableJson as error:
        raise Unusable(f"its definition is not JSON that we can read: {str(error)[:150]}") from None
    try:
        return value, fit(raw, kind, "modern").definition
    except Unfit as reason:
        raise Unusable(str(reason)) from None


LATER: dict[Kind, tuple[str, ...]] = {"skills": (SKILLS,), "events": (EVENTS, SKETCHED)}
"""Lists that earlier versions did not read, and what announces them: an offer of theirs has none, whatever there is."""


def read_again(offer: Offer) -> Offer:
    """Return an offer that was read by rules of before as it is read by those of today. Takes a while.

    It is in doubt, so that its server is asked soon, if that says to have a list of a kind that was not always read and
    none is known.
    """
    if offer.marked_by == MARKS:
        return offer
    problems: list[str] = []
    lists: dict[str, tuple[Declared, ...]] = {}
    for kind, read in READ.items():
        kept: list[Declared] = []
        for entry in getattr(offer, kind):
            try:
                kept.append(read(entry.definition) if len(entry.definition) > len(b"{}") else entry)
            except Unusable as reason:
                problems.append(f"{METHODS[kind]}: {key_of(entry)[:80]!r} left out: {reason}")
        lists[kind] = tuple(kept)
    told = (*offer.problems, *problems[: max(0, MAX_PROBLEMS - len(offer.problems))])
    declared = capability_names(offer.capabilities)
    unread = any(not lists[kind] and not declared.isdisjoint(names) for kind, names in LATER.items())
    return replace(offer, **lists, problems=told, marked_by=MARKS, read_at=0.0 if unread else offer.read_at)


def _check_extent(data: bytes) -> None:
    opening = data.count(b"{") + data.count(b"[")
    if opening <= MAX_DEPTH and data.count(b",") <= MAX_MARKS // 2:
        return  # most are neither so deep nor have so many values
    try:
        depth, marks = extent(data)
    except MalformedJson:
        raise Unusable("its definition is not JSON") from None
    if depth > MAX_DEPTH:
        raise Unusable(f"its definition is nested more than {MAX_DEPTH} levels deep")
    if marks > MAX_MARKS:
        raise Unusable(f"its definition has more than {MAX_MARKS} brackets and commas")


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME:
        raise Unusable(f"its name is empty or over {MAX_NAME} characters")
    if not name.isprintable() or name != name.strip():
        raise Unusable("its name has control or invisible characters, or spaces around it")


def _packed(schema: msgspec.Raw) -> msgspec.Raw:
    """Return a schema without white space, which would cost tokens in every answer; the same if it has none."""
    plain = msgspec.json.format(bytes(schema), indent=-1)
    return msgspec.Raw(plain) if len(plain) < len(schema) else schema  # a part of the definition costs no memory


def _needed(schema: dict[str, Any]) -> Iterable[str]:
    """Yield what is required and has no default: the libraries that servers are written with (Zod, Pydantic) call a
    parameter required that they fill in themselves, so a call without it is the server's to judge.
    """
    filled_in = schema.get("properties", {})
    for name in schema.get("required", ()):
        declared = filled_in.get(name)
        if len(name) <= MAX_NAME and not (isinstance(declared, dict) and "default" in declared):
            yield name


def _needs_task(execution: Any) -> bool:
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _mirrors(schema: Any) -> tuple[tuple[Mirror, ...], str]:
    try:
        return mirrors_in(schema), ""
    except MisplacedMirror as reason:
        return (), str(reason)
