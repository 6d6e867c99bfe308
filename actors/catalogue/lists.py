"""From what a server listed to the offer that it makes: page by page, each entry read alone.

- Nothing but the entry that is bad is lost: it is refused with a reason, and named. One of a skill (SEP-2640, "Skill
  Entries") that is not as the extension has it is refused whole: what a client loads by it would not be what was
  listed.
- What is read of an entry is what clients are shown of it, see `actors.protocol.definitions`.
- An entry that was known before, byte for byte, is not read again, and stays the same object: that makes a reading
  without changes cheap.
- All this may run in a worker thread, in which no step takes long. Bounds: a name of at most 256 characters, a
  description of 16 KiB (longer ones are cut), a definition of 1 MiB, 128 levels and 200,000 brackets and commas; of
  parameters and required names, what ranking needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from actors.catalogue.diff import Compared
from actors.catalogue.marks import MARKS, marks_of
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
from actors.errors import ProtocolViolation
from actors.kit.decoding import GivesWay
from actors.protocol.agreement.capabilities import EVENTS, SKETCHED
from actors.protocol.agreement.era import Agreement
from actors.protocol.definitions import Skill as Entry
from actors.protocol.definitions import SkillResource, Unfit, fit
from actors.protocol.listing import MEMBERS, METHODS, SKILLS, Kind, Listed, ListLimits, PageArrived, capability_names
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.mirrors import MARK, Mirror, MisplacedMirror, mirrors_in
from actors.protocol.wire.outline import MalformedJson, Outline, Span, extent

_MANIFEST: Final = "SKILL.md"
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""Of all files of one skill together; both limits are those of the extension."""
_MAX_URI_CHARS: Final = 8192
_MAX_TOOLS: Final = 16
_MAX_TOOL_CHARS: Final = 256

_entry: Final = msgspec.json.Decoder(Entry)
_LEADS_OUT: Final = re.compile(r"/\.{0,2}(?:/|$)|\\")
"""A backslash leads out where the host of a skill keeps it as files, and that is what stands between directories."""
_TOOL: Final = re.compile(r"([^\s,()]+)(?:\([^()]*\))?")
"""`Bash(git:*)` among `allowed-tools` is the tool `Bash`."""


class UnusableSkill(ValueError):
    """Why an entry is none; the text is for operators."""


def _read_skill(definition: msgspec.Raw) -> Skill:
    """Return the skill of an entry that fits the schema. Raises `UnusableSkill`."""
    entry = json.read(_entry, definition)
    root = root_of(entry.uri)
    _check_uri(entry.uri)
    if root is None or root.rpartition("/")[2] != entry.frontmatter.name:
        raise UnusableSkill(f"its URI does not end with its name and {_MANIFEST!r}")
    if entry.resources != "dynamic":
        _check_files(entry.uri, root, entry.resources)
    said = json.members(json.at(definition, "frontmatter")).get("allowed-tools")
    return Skill(
        uri=entry.uri,
        name=entry.frontmatter.name,
        description=entry.frontmatter.description,
        tools=tuple(dict.fromkeys(islice(_tools(said), _MAX_TOOLS))),
        definition=definition,
    )


def root_of(uri: str) -> str | None:
    """Return the directory of a skill by the URI of its `SKILL.md`; None if it is none."""
    root, sign, name = uri.rpartition("/")
    return root if sign and name == _MANIFEST else None


def files_of(skill: Skill) -> Mapping[str, SkillResource] | None:
    """Return the files of a skill by their URIs, none of them percent-encoded; None if they are made when read."""
    resources = json.read(_entry, skill.definition).resources
    return None if resources == "dynamic" else {unquote(file.uri): file for file in resources}


def _check_files(uri: str, root: str, files: list[SkillResource]) -> None:
    if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_BYTES:
        raise UnusableSkill(f"it has more than {MAX_FILES} files, or {MAX_BYTES} bytes")
    named = {file.uri for file in files}
    if len({*map(unquote, named)}) < len(files) or uri not in named:
        raise UnusableSkill(f"its files are not each there once, or its {_MANIFEST!r} is not among them")
    for each in named:
        _check_uri(each)
        if not each.startswith(f"{root}/") or _LEADS_OUT.search(unquote(each[len(root) :])):
            raise UnusableSkill(f"{each[:80]!r} is not in its directory")


def _check_uri(uri: str) -> None:
    if len(uri) > _MAX_URI_CHARS or not unquote(uri).isprintable():
        raise UnusableSkill(f"a URI is over {_MAX_URI_CHARS} characters or not printable")


def _tools(said: msgspec.Raw | None) -> Iterator[str]:
    """Yield the names of tools of `allowed-tools`, which is a text, or a list of texts."""
    value: Any = json.read_or(json.VALUE, said, None) if said is not None else None
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            yield from (match[1] for match in _TOOL.finditer(text) if len(match[1]) <= _MAX_TOOL_CHARS)


MAX_PROBLEMS = 50
_MAX_DEFINITION_BYTES = 1024 * 1024
_MAX_DEPTH = 128
_MAX_MARKS_OF_DEFINITION = 200_000
_MAX_REQUIRED = 256


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
        required=shared(islice(_needed(schema), _MAX_REQUIRED)),
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
    if len(raw) > _MAX_DEFINITION_BYTES:
        raise Unusable(f"its definition is over {_MAX_DEFINITION_BYTES} bytes")
    _check_extent(bytes(raw))
    try:
        read = _read_skill(fit(raw, "skills", "modern").definition)
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


_READ: dict[Kind, Callable[[msgspec.Raw], Declared]] = {
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


_LATER: dict[Kind, tuple[str, ...]] = {"skills": (SKILLS,), "events": (EVENTS, SKETCHED)}
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
    for kind, read in _READ.items():
        kept: list[Declared] = []
        for entry in getattr(offer, kind):
            try:
                kept.append(read(entry.definition) if len(entry.definition) > len(b"{}") else entry)
            except Unusable as reason:
                problems.append(f"{METHODS[kind]}: {key_of(entry)[:80]!r} left out: {reason}")
        lists[kind] = tuple(kept)
    told = (*offer.problems, *problems[: max(0, MAX_PROBLEMS - len(offer.problems))])
    declared = capability_names(offer.capabilities)
    unread = any(not lists[kind] and not declared.isdisjoint(names) for kind, names in _LATER.items())
    return replace(offer, **lists, problems=told, marked_by=MARKS, read_at=0.0 if unread else offer.read_at)


def _check_extent(data: bytes) -> None:
    opening = data.count(b"{") + data.count(b"[")
    if opening <= _MAX_DEPTH and data.count(b",") <= _MAX_MARKS_OF_DEFINITION // 2:
        return  # most are neither so deep nor have so many values
    try:
        depth, marks = extent(data)
    except MalformedJson:
        raise Unusable("its definition is not JSON") from None
    if depth > _MAX_DEPTH:
        raise Unusable(f"its definition is nested more than {_MAX_DEPTH} levels deep")
    if marks > _MAX_MARKS_OF_DEFINITION:
        raise Unusable(f"its definition has more than {_MAX_MARKS_OF_DEFINITION} brackets and commas")


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


_MAX_CURSOR_BYTES = 64 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_MAX_MARKS_OF_PAGE = 100_000
_MAX_TTL_DIGITS = 15
_LEVELS = 3
_NAMED = re.compile(rb'"(?:name|uri|uriTemplate)"\s*:\s*"((?:[^"\\]|\\.){1,80})')
_WORDS: dict[Kind, str] = {
    "tools": "tool",
    "resources": "resource",
    "templates": "resource template",
    "prompts": "prompt",
    "skills": "skill",
    "events": "event type",
}


class ListRoom(msgspec.Struct, frozen=True):
    """What is left of a list's limits, and how many entries of it there are already."""

    entries: int
    size: int
    seen: int = 0


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page that was read.

    `entries` by name or URI, `broken` by a digest, with what is wrong with each. `size` in bytes. `cut`: the limit that
    was reached. `failure`: why nothing could be read. `foreign`: the message is no answer to the request. `good_for_s`:
    for how long the server says that it is good (2026-07-28, server/utilities/caching `ttlMs`); 0 if it says nothing.
    """

    entries: Mapping[str, Declared] = {}
    broken: Mapping[int, str] = {}
    size: int = 0
    cursor: str | None = None
    cut: str = ""
    failure: str = ""
    foreign: bool = False
    good_for_s: float = 0.0


class Known:
    """The entries that were known before a walk, found again by their text."""

    def __init__(self, offer: Offer | None) -> None:
        self._offer = offer or Offer()
        self._by_text: dict[Kind, dict[bytes, Declared]] = {}

    def find(self, kind: Kind, text: bytes) -> Declared | None:
        """Return the entry whose definition is exactly this text."""
        by_text = self._by_text.get(kind)
        if by_text is None:  # made by the thread that asks first
            entries: tuple[Declared, ...] = getattr(self._offer, kind)
            by_text = self._by_text[kind] = {bytes(entry.definition): entry for entry in entries}
        return by_text.get(text)


def read_page(arrived: PageArrived, room: ListRoom, known: Known) -> ListPage:
    """Read the message. Raises nothing; what cannot be read at all is a page with a `failure`."""
    if arrived.failure:
        return ListPage(failure=arrived.failure)
    try:
        outline = Outline(arrived.line, _LEVELS, _MAX_MARKS_OF_PAGE)
        answer = outline.members(outline.root())
        if arrived.id is not None and not _answers(outline, answer, arrived.id):
            return ListPage(foreign=True)
        failure = _failure(outline, answer)
        if failure:
            return ListPage(failure=failure)
        result = outline.members(answer[b"result"])
        elements, whole = _elements(outline, result[MEMBERS[arrived.kind].encode()])
    except (MalformedJson, KeyError):
        return ListPage(failure="the answer is malformed")
    reader = _Reader(arrived.kind, room, known)
    reader.read(outline, elements)
    good_for_s = _good_for_s(outline, result.get(b"ttlMs"))
    if reader.cut or not whole:
        return reader.page(None, reader.cut or f"{reader.count} entries", good_for_s)
    try:
        return reader.page(_cursor(outline, result.get(b"nextCursor")), "", good_for_s)
    except MalformedJson:
        return reader.page(None, "a cursor that we cannot use", good_for_s)


def _elements(outline: Outline, span: Span) -> tuple[list[Span], bool]:
    """Return the entries of a list, and whether it was seen to its end; `null` is an empty one. Raises `Malformed`."""
    return (
        ([], True)
        if outline.take(Span(span.start, min(span.end, span.start + 5))) == b"null"
        else outline.elements(span)
    )


def _answers(outline: Outline, answer: Mapping[bytes, Span], id_: bytes) -> bool:
    given = answer.get(b"id")
    return given is not None and outline.take(given) == id_ and b"method" not in answer


def _failure(outline: Outline, answer: Mapping[bytes, Span]) -> str:
    version, error = answer.get(b"jsonrpc"), answer.get(b"error")
    if version is None or outline.take(version) != b'"2.0"':
        return "the answer is malformed"
    if error is None or outline.take(error) == b"null":
        return ""
    if error.end - error.start > _MAX_ERROR_BYTES:
        return f"an error of over {_MAX_ERROR_BYTES} bytes"
    try:
        refusal = jsonrpc.decode_error(msgspec.Raw(outline.take(error)))
    except ProtocolViolation as violation:
        return f"it answered with {violation.message}"
    return f"{refusal.code} {refusal.message[:200]}"


def _cursor(outline: Outline, span: Span | None) -> str | None:
    """Return the cursor, None if there is none or it is no string. Raises `Malformed`."""
    if span is None:
        return None
    if span.end - span.start > _MAX_CURSOR_BYTES:
        raise MalformedJson
    try:
        cursor = json.read(json.VALUE, outline.take(span))
    except json.UnreadableJson:
        raise MalformedJson from None
    return cursor if isinstance(cursor, str) else None


def _good_for_s(outline: Outline, span: Span | None) -> float:
    """Return a `ttlMs` in seconds; 0.0 for one that is absent, zero, negative, or no number of at most 15 digits."""
    text = outline.take(span) if span is not None and span.end - span.start <= _MAX_TTL_DIGITS else b""
    return int(text) / 1000 if text.isdigit() else 0.0


class _Reader:
    def __init__(self, kind: Kind, room: ListRoom, known: Known) -> None:
        self.cut = ""
        self._kind = kind
        self._room = room
        self._known = known
        self._entries: dict[str, Declared] = {}
        self._broken: dict[int, str] = {}
        self._size = 0

    @property
    def count(self) -> int:
        """How many entries of the list were seen, those of earlier pages included."""
        return self._room.seen + len(self._entries) + len(self._broken)

    def page(self, cursor: str | None, cut: str, good_for_s: float) -> ListPage:
        return ListPage(
            entries=self._entries, broken=self._broken, size=self._size, cursor=cursor, cut=cut, good_for_s=good_for_s
        )

    def read(self, outline: Outline, elements: list[Span]) -> None:
        turns = GivesWay()
        for element in elements:
            turns.between()
            size = element.end - element.start
            if self.count - self._room.seen >= self._room.entries:
                self.cut = f"{self.count} entries"
            elif self._size + size > self._room.size:
                self.cut = f"{self.count} entries, for their size"
            if self.cut:
                return
            self._size += size
            self._add(outline, element)

    def _add(self, outline: Outline, element: Span) -> None:
        if element.end - element.start > _MAX_DEFINITION_BYTES:
            head = outline.take(Span(element.start, element.start + 4096))
            self._leave_out(head, f"its definition is over {_MAX_DEFINITION_BYTES} bytes")
            return
        text = outline.take(element)
        try:
            entry = self._known.find(self._kind, text) or _READ[self._kind](msgspec.Raw(text))
        except Unusable as reason:
            self._leave_out(text, str(reason))
            return
        key = key_of(entry)
        before = self._entries.setdefault(key, entry)
        if bytes(before.definition) != text:
            self._leave_out(text, f"a second {_WORDS[self._kind]} of the name {key[:80]!r}")

    def _leave_out(self, text: bytes, reason: str) -> None:
        if len(self._broken) >= MAX_PROBLEMS:
            self._broken.setdefault(hash(text), "")
            return
        named = _NAMED.search(text, 0, 4096)
        name = f" ({named[1].decode(errors='replace')!r})" if named else ""
        self._broken.setdefault(hash(text), f"{_WORDS[self._kind]} {self.count + 1}{name} left out: {reason}")


E = TypeVar("E", Tool, Resource, Prompt, Skill, EventType)


class _Part:
    """One list so far. `broken` are digests of the entries that were left out."""

    __slots__ = ("broken", "entries", "size")

    def __init__(self) -> None:
        self.entries: dict[str, Declared] = {}
        self.broken: set[int] = set()
        self.size = 0


class Drafted(msgspec.Struct, frozen=True, eq=False):
    """What a walk has brought: the offer, the names of the tools that were read, and how they differ from before."""

    offer: Offer
    read: frozenset[str]
    compared: Compared


class Draft:
    """One walk. Of two entries of one name the first stays, so that a later one cannot shadow it."""

    def __init__(self, limits: ListLimits, known: Offer | None) -> None:
        self.known = Known(known)
        self._before = known
        self._limits = limits
        self._parts: dict[Kind, _Part] = {kind: _Part() for kind in METHODS}
        self._problems: list[str] = []
        self._good_for_s = 0.0

    def count(self, kind: Kind) -> int:
        return len(self._parts[kind].entries)

    def names(self, kind: Kind) -> frozenset[str]:
        """Return what was read of a list, by name or URI, without what was only known before."""
        return frozenset(self._parts[kind].entries)

    def room(self, kind: Kind) -> ListRoom:
        part = self._parts[kind]
        seen = len(part.entries) + len(part.broken)
        return ListRoom(self._limits.max_entries - seen, self._limits.bytes_of(kind) - part.size, seen)

    def add(self, kind: Kind, page: ListPage) -> bool:
        """Take a page; return whether it brought anything new."""
        part = self._parts[kind]
        before = len(part.entries) + len(part.broken)
        for key, entry in page.entries.items():
            first = part.entries.setdefault(key, entry)
            if first is not entry and bytes(first.definition) != bytes(entry.definition):
                self._note(f"{METHODS[kind]}: {key[:80]!r} is there twice; the first one counts")
        for digest, problem in page.broken.items():
            if digest not in part.broken and problem:
                self._note(problem)
        part.broken.update(page.broken)
        part.size += page.size
        if page.good_for_s:  # all lists are read together, so the shortest time counts
            self._good_for_s = min(self._good_for_s or page.good_for_s, page.good_for_s)
        return len(part.entries) + len(part.broken) > before

    def offer(self, agreement: Agreement, listed: Listed) -> Offer:
        """Return what the server offers; what it offered before stays in lists that were not read to their end."""
        tools = self._list("tools", Tool, listed)
        return Offer(
            tools=tools,
            resources=self._list("resources", Resource, listed),
            templates=self._list("templates", Resource, listed),
            prompts=self._list("prompts", Prompt, listed),
            skills=self._list("skills", Skill, listed),
            events=self._list("events", EventType, listed),
            instructions=agreement.instructions[:MAX_DESCRIPTION],
            server_info=agreement.server_info,
            capabilities=_with_tools(agreement.capabilities) if tools else agreement.capabilities,
            answer=agreement.answer,
            era=agreement.era,
            version=agreement.version,
            problems=(*listed.problems, *self._problems)[:MAX_PROBLEMS],
            partial="tools" in listed.missing,
            circular=tuple(sorted(listed.circular)),
            good_for_s=self._good_for_s,
            marked_by=MARKS,
        )

    def _list(self, kind: Kind, of: type[E], listed: Listed) -> tuple[E, ...]:
        part = self._parts[kind]
        entries = [entry for entry in part.entries.values() if isinstance(entry, of)]
        if kind in listed.missing and self._before is not None:
            entries += self._carry_over(kind, of)
        before: tuple[E, ...] = getattr(self._before, kind, ())
        made = tuple(entries)
        return before if made == before else made

    def _carry_over(self, kind: Kind, of: type[E]) -> list[E]:
        """Return what was known of a list that was not read to its end, as far as there is room for it."""
        room, part, kept = self.room(kind), self._parts[kind], []
        size, count = room.size, room.entries
        for entry in getattr(self._before, kind):
            size -= len(bytes(entry.definition))
            if count <= 0 or size < 0:
                break
            if isinstance(entry, of) and key_of(entry) not in part.entries:
                kept.append(entry)
                count -= 1
        return kept

    def _note(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)


def _with_tools(capabilities: msgspec.Raw) -> msgspec.Raw:
    """Return the capabilities of a server that has tools; some do not announce them."""
    declared = capability_names(capabilities)
    if "tools" in declared:
        return capabilities
    members = json.members(capabilities) if declared else {}
    return msgspec.Raw(msgspec.json.encode({**members, "tools": {}}))
