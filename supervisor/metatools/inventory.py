"""Everything there is, in the order of servers, kinds and names, and its lists for MCP's own methods. Pure.

A cursor says after which entry to go on. It is opaque to clients and bounded, and means the same after a change of the
catalogue: what is still there and was not shown yet is shown, each once. In a list of MCP's own that holds apart from
the server that changed; clients are told of that by `list_changed`.

Resources, templates, prompts and skills are shown under names of ours; a skill with how the tools are that it names.
"""

from __future__ import annotations

import base64
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any, Final, Literal, TypeVar

import msgspec

from actors.catalogue import offer as offers
from actors.catalogue.documents import uri_of
from actors.catalogue.names import Resolution, Resolved, Unknown, resource_path, resource_uri, split_resource, tool_path
from actors.catalogue.offer import Prompt, Resource, Skill, Tool, kind_of
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments
from actors.protocol.definitions import Unfit, fit
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.search.document import Document
from supervisor.metatools.definitions import KINDS
from supervisor.metatools.lenient_json import NotAnObject, holds_object, members, plain
from supervisor.metatools.texts import clean, clean_json, clean_value, shorten

_MAX_CURSOR_CHARS = 4096
MAX_ITEMS = 500
"""On one page, whatever its budget."""
_KEY_CHARS = 256
"""A longer URI is told apart by its digest: it would make the cursor as long."""

T = TypeVar("T")
Thing = offers.Item


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """After this thing: its server, the place of its kind among `KINDS`, and its key."""

    server: str
    kind: int
    key: str


class Item(msgspec.Struct, frozen=True):
    """One thing that a server offers, and where it stands."""

    at: Position
    thing: Thing


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What to list: of which servers, which kinds, from where on, what of it (None: all), and how many at most."""

    servers: frozenset[str]
    kinds: frozenset[str]
    after: Position | None = None
    wanted: Callable[[Thing], bool] | None = None
    limit: int = MAX_ITEMS

    def items(self, seen: Catalogue) -> Iterator[Item]:
        """Yield what there is, in order, of each server and kind the first 500 at most."""
        after = self.after
        for server, number, things in self._lists(seen):
            if after is not None and (server, number) < (after.server, after.kind):
                continue
            keyed = (Item(Position(server, number, _key_of(thing)), thing) for thing in things)
            rest = keyed if after is None else (item for item in keyed if item.at > after)
            yield from heapq.nsmallest(MAX_ITEMS + 1, rest, key=lambda item: item.at)

    def total(self, seen: Catalogue) -> int:
        return sum(len(things) for *_, things in self._lists(seen))

    def count_shown(self, seen: Catalogue) -> int:
        """Return how many come before the place to go on from, and at it: those that were shown there."""
        after, count = self.after, 0
        for server, number, things in self._lists(seen):
            if after is not None and (server, number) < (after.server, after.kind):
                count += len(things)
            elif after is not None and (server, number) == (after.server, after.kind):
                count += sum(_key_of(thing) <= after.key for thing in things)
        return count

    def _lists(self, seen: Catalogue) -> Iterator[tuple[str, int, Sequence[Thing]]]:
        """Yield each list, in order, after its server and the place of its kind among `KINDS`."""
        for server in sorted(self.servers & seen.entries.keys()):
            for number, kind in enumerate(KINDS):
                if kind in self.kinds:
                    things: Sequence[Thing] = getattr(seen.entries[server].offer, f"{kind}s")
                    yield server, number, things if self.wanted is None else [*filter(self.wanted, things)]


def _key_of(thing: Thing) -> str:
    """Return by what a thing is ordered and told apart on its server, at most 330 characters."""
    name = offers.key_of(thing)
    if len(name) <= _KEY_CHARS:
        return name
    return f"{name[:_KEY_CHARS]}\uffff{sha256(name.encode(errors='replace')).hexdigest()}"


def encode_cursor(at: msgspec.Struct) -> str:
    return base64.urlsafe_b64encode(encode(at)).decode().rstrip("=")


def _read_cursor(text: str, shape: type[T]) -> T | None:
    if len(text) > _MAX_CURSOR_CHARS:
        return None
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    return json.read_or(msgspec.json.Decoder(shape), data, None)


def decode_cursor(text: str) -> Position:
    """Return the position of a cursor. Raises `InvalidArguments` for one that is not ours."""
    position = _read_cursor(text, Position)
    if position is not None and 0 <= position.kind < len(KINDS):
        return position
    raise InvalidArguments("'cursor' is not one that a list gave: repeat the next_cursor of the last answer as it is")


_USABLE: Final = "usable"
_NOT_NOW: Final = "not usable now"
_MISSING: Final = "missing"
_MAX_NAME_CHARS: Final = 100
_OF_CLIENT: Final = re.compile(r"[A-Z][A-Za-z]*")
"""`Bash` and `Read` are tools of whoever loads the skill: there is nothing to say of them."""


def tools_of(
    seen: Catalogue, document: Document, availability: Callable[[str, str], Mapping[str, Any]]
) -> dict[str, str]:
    """Return how the tools are that a skill names, by path, or as it writes them where there are none.

    A name is first one of the skill's own server. `availability` is what says why one cannot be called now.
    """
    entry = seen.entries[document.server]
    uri = (split_resource(uri_of(document)) or ("", ""))[1]
    skill = next((skill for skill in entry.skills_with(uri) if skill.uri == uri), None)
    told: dict[str, str] = {}
    for written in skill.tools if skill is not None else ():
        own = entry.tools.get(written) or entry.by_own_name.get(written)
        meaning: Resolution = Resolved(entry.server, own.name) if own is not None else seen.tool(written)
        if isinstance(meaning, Resolved):
            tool: Tool = seen.entries[meaning.server].tools[meaning.name]
            away = meaning.server not in seen.visible or availability(meaning.server, (tool.own or tool).name)
            told[clean(tool_path(meaning.server, meaning.name))] = _NOT_NOW if away else _USABLE
        elif not (isinstance(meaning, Unknown) and _OF_CLIENT.fullmatch(written)):
            told[clean(written[:_MAX_NAME_CHARS])] = _MISSING
    return told


def rename_skill(entry: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Return the members of an entry of `skills/list` that have URIs, with these under other names."""
    files = json.read_or(json.ELEMENTS, entry["resources"], None)
    named: dict[str, Any] = {"uri": name(json.text_at(entry["uri"]))}
    if files is not None:
        named["resources"] = [_renamed(json.members(file), name) for file in files]
    return named


def _renamed(file: Mapping[str, msgspec.Raw], name: Callable[[str], str]) -> dict[str, Any]:
    return {**file, "uri": name(json.text_at(file.get("uri")))}


Listed = Literal["tools", "resources", "templates", "prompts", "skills"]

_PAGE_SIZE = 500
_MAX_ROWS = 1000
"""So many entries of each kind and server are counted for what a list costs."""
MAX_BYTES = 1_048_576
"""About how many bytes a page of a list has at most."""
_DESCRIPTION_CHARS = 200
META_BYTES = 4096
"""Of a `_meta`, as its server wrote it, at most so much is shown to a model; a larger one is left out whole."""


class _Sized(msgspec.Struct):
    size: int | None = None


_sized = msgspec.json.Decoder(_Sized)


class _Paged(msgspec.Struct):
    cursor: str | None = None


_paged = msgspec.json.Decoder(_Paged)


def cursor_of(params: msgspec.Raw) -> str | None:
    """Return the cursor, also an empty one (2025-11-25 server/utilities/pagination). Raises `InvalidArguments`."""
    try:
        return json.read(_paged, params).cursor if bytes(params) else None
    except json.UnreadableJson:
        raise InvalidArguments("'cursor' must be a string") from None


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Go on with this entry of this server, or with the next server if it is gone."""

    kind: Listed
    server: str
    position: int


def rewrite_meta(server: str, meta: msgspec.Raw, name: Callable[[str, str], str] = resource_path) -> Any:
    """Return `_meta` with the UI resource's URI as `name` gives it, in both spellings (MCP Apps, SEP-1865)."""
    if b"resourceUri" not in bytes(meta):
        return meta
    try:
        rewritten: dict[str, Any] = dict(members(meta))
        ui = members(rewritten["ui"]) if holds_object(rewritten.get("ui")) else {}
    except NotAnObject:
        return meta
    uri, flat = plain(ui.get("resourceUri")), plain(rewritten.get("ui/resourceUri"))
    if isinstance(uri, str):
        rewritten["ui"] = {**ui, "resourceUri": name(server, uri)}
    if isinstance(flat, str):
        rewritten["ui/resourceUri"] = name(server, flat)
    return rewritten


def shown_meta(server: str, meta: msgspec.Raw) -> Any:
    """Return a `_meta` for a model's eyes: small, clean, its UI resource under its path; None if there is none."""
    if not bytes(meta) or len(bytes(meta)) > META_BYTES:
        return None
    return clean_json(msgspec.Raw(encode(rewrite_meta(server, meta))))


def ui_meta(server: str, meta: msgspec.Raw) -> dict[str, Any]:
    """Return what of a tool's `_meta` a client of MCP Apps needs, clean; the rest is of frameworks and says nothing."""
    if b"resourceUri" not in bytes(meta) or len(bytes(meta)) > META_BYTES:
        return {}
    rewritten = rewrite_meta(server, meta)
    if not isinstance(rewritten, dict):
        return {}
    shown = {
        name: plain(msgspec.Raw(encode(rewritten[name]))) for name in ("ui", "ui/resourceUri") if name in rewritten
    }
    return {name: clean_value(value) for name, value in shown.items()}


def weight(catalogue: Catalogue, *kinds: Listed) -> int:
    """Return about how many bytes a list of these kinds is made from; it is not read for that."""
    return sum(
        len(item.definition)
        for entry in _visible(catalogue)
        for kind in kinds
        for item in islice(getattr(entry.offer, kind), _MAX_ROWS)
    )


def _visible(catalogue: Catalogue) -> Iterable[Entry]:
    return (entry for entry in catalogue.entries.values() if entry.available)


def resource_row(entry: Entry, resource: Resource) -> dict[str, Any]:
    """Return a resource, or a template, as a model sees it in a list."""
    uri = resource_path(entry.server, resource.uri)
    row: dict[str, Any] = {"uriTemplate" if resource.template else "uri": clean(uri), "name": clean(resource.name)}
    if resource.title and resource.title != resource.name:
        row["title"] = clean(resource.title)
    if resource.description:
        row["description"] = shorten(resource.description, _DESCRIPTION_CHARS)
    if resource.mime_type:
        row["mimeType"] = clean(resource.mime_type)
    if (size := json.read_or(_sized, resource.definition, _Sized()).size) is not None:
        row["size"] = size
    row["server"] = entry.server
    meta = shown_meta(entry.server, resource.meta)
    if meta is not None:
        row["_meta"] = meta
    return row


def native_page(
    catalogue: Catalogue,
    kind: Listed,
    cursor: str | None,
    define: Callable[[str, Thing], dict[str, Any]],
    max_bytes: int = MAX_BYTES,
) -> tuple[list[Any], str | None]:
    """Return one page of definitions, and the cursor of the next page if there is one.

    `define` says what of a server is shown, under which name, and raises `Unfit` for what cannot be. A page ends with
    the entry that exceeds `max_bytes`. Raises `InvalidArguments` for a cursor that is not ours.
    """
    start = _Cursor(kind, "", 0) if cursor is None else _decode_cursor(kind, cursor)
    page: list[Any] = []
    left = max_bytes
    for entry in _visible(catalogue):
        if entry.server < start.server:
            continue
        items: tuple[Thing, ...] = getattr(entry.offer, kind)
        position = start.position if entry.server == start.server else 0
        for number, item in enumerate(items[position:], position):
            if len(page) == _PAGE_SIZE or left < 0:
                return page, encode_cursor(_Cursor(kind, entry.server, number))
            left -= len(item.definition)
            with suppress(Unfit):
                page.append(define(entry.server, item))
    return page, None


def native_definition(catalogue: Catalogue, server: str, item: Thing) -> dict[str, Any]:
    """Return the definition of what is no tool under its name at the door of the meta-tools. Raises `Unfit`."""
    fitted = fit(item.definition, kind_of(item), "legacy").definition  # the eras have the same of all but tools
    definition: dict[str, Any] = dict(json.MEMBERS.decode(fitted))
    if isinstance(item, Prompt):
        definition["name"] = catalogue.prompt_name(server, item.name)
    elif isinstance(item, Skill):
        definition |= rename_skill(definition, partial(resource_uri, server))
    elif isinstance(item, Resource):
        definition["uriTemplate" if item.template else "uri"] = resource_uri(server, item.uri)
    if "_meta" in definition:
        definition["_meta"] = rewrite_meta(server, definition["_meta"], resource_uri)
    return definition


def _decode_cursor(kind: Listed, text: str) -> _Cursor:
    cursor = _read_cursor(text, _Cursor)
    if cursor is None or cursor.kind != kind or cursor.position < 0:
        raise InvalidArguments("'cursor' is not one that this list gave")
    return cursor
