"""Lists of resources, templates, prompts and skills for MCP's own methods, and the row of a resource for a model. Pure.

A cursor says after which entry of which server to go on. It is opaque to clients and means the same after a change of
the catalogue, apart from the server that changed; clients are told of that by `list_changed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Literal

import msgspec

from actors.catalogue.names.naming import resource_path, resource_uri
from actors.catalogue.offer import Item, Prompt, Resource, Skill, kind_of
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments
from actors.protocol.definitions import Unfit, fit
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.answers.skills import rename_skill
from supervisor.metatools.inventory import encode_cursor, read_cursor
from supervisor.metatools.lenient_json import NotAnObject, holds_object, members, plain
from supervisor.metatools.texts import clean, clean_json, clean_value, shorten

Listed = Literal["tools", "resources", "templates", "prompts", "skills"]

PAGE_SIZE = 500
MAX_ROWS = 1000
"""So many entries of each kind and server are counted for what a list costs."""
MAX_BYTES = 1_048_576
"""About how many bytes a page of a list has at most."""
DESCRIPTION_CHARS = 200
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
        for item in islice(getattr(entry.offer, kind), MAX_ROWS)
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
        row["description"] = shorten(resource.description, DESCRIPTION_CHARS)
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
    define: Callable[[str, Item], dict[str, Any]],
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
        items: tuple[Item, ...] = getattr(entry.offer, kind)
        position = start.position if entry.server == start.server else 0
        for number, item in enumerate(items[position:], position):
            if len(page) == PAGE_SIZE or left < 0:
                return page, encode_cursor(_Cursor(kind, entry.server, number))
            left -= len(item.definition)
            with suppress(Unfit):
                page.append(define(entry.server, item))
    return page, None


def native_definition(catalogue: Catalogue, server: str, item: Item) -> dict[str, Any]:
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
    cursor = read_cursor(text, _Cursor)
    if cursor is None or cursor.kind != kind or cursor.position < 0:
        raise InvalidArguments("'cursor' is not one that this list gave")
    return cursor
