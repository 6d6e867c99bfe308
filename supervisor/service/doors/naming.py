"""What everything is called at the door of all servers, and what a name means there.

A definition is its server's own, under another name, and its `_meta` says whose it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from actors.catalogue.names.naming import URI_SCHEME, resource_uri, split_resource
from actors.catalogue.names.resolution import Ambiguous, Meaning, Resolved
from actors.catalogue.names.uris import resolve_bare
from actors.catalogue.offer import LISTS, Item, Prompt, Skill, Tool, kind_of
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import ToolHeld, UnknownPrompt, UnknownTool
from actors.protocol.wire import json
from supervisor.host.loop.workbench import beside
from supervisor.metatools.answers.native_lists import rewrite_meta
from supervisor.metatools.answers.skills import rename_skill
from supervisor.metatools.servers.availability import unlisted_of
from supervisor.metatools.texts import clean
from supervisor.servers.safety import WithheldTool
from supervisor.service.client import Client
from supervisor.service.doors.namespaced import SEPARATOR, Namespace, Uris, name_for
from supervisor.service.fitting.relay import not_found
from supervisor.service.fitting.tool_definitions import fit
from supervisor.service.gateway import ServiceParts
from supervisor.service.lookup.lookup import ambiguous, refuse_left_out

SERVER_KEY: Final = "mcpvisor/server"
NAME_KEY: Final = "mcpvisor/name"
"""Members of `_meta`: the server, and what it calls this itself (a tool, a prompt, a URI)."""
MAX_NAME_SHOWN: Final = 100
_NAME_COST: Final = 8
"""A name costs as much as so many bytes that a model wrote."""

Lists = dict[str, tuple[tuple[object, ...], ...]]


class Names(msgspec.Struct, frozen=True):
    """The names of everything at one moment."""

    tools: Namespace
    prompts: Namespace
    uris: Uris

    def definition_of(self, version: str, server: str, item: Item) -> dict[str, Any]:
        """Return the definition of what a server offers for clients of a revision, under its name here.

        All else is the server's own, as far as such clients take it. Raises `Unfit` if they cannot.
        """
        if isinstance(item, Tool):
            member, name, own = "name", self.tools.name_of(server, item.name), (item.own or item).name
        elif isinstance(item, Prompt):
            member, name, own = "name", self.prompts.name_of(server, item.name), item.name
        elif isinstance(item, Skill):  # all of its files under one name, as they refer to one another
            member, name, own = "uri", resource_uri(server, item.uri), item.uri
        elif item.template:  # nobody knows whose URIs fit it
            member, name, own = "uriTemplate", resource_uri(server, item.uri), item.uri
        else:
            member, name, own = "uri", self.uris.name_of(server, item.uri), item.uri
        definition: dict[str, Any] = dict(json.MEMBERS.decode(fit(item.definition, kind_of(item), version)))
        if isinstance(item, Skill):
            definition |= rename_skill(definition, partial(resource_uri, server))
        definition[member] = name
        definition["_meta"] = self._meta(server, own, definition.get("_meta"))
        return definition

    def _meta(self, server: str, own: str, meta: msgspec.Raw | None) -> Any:
        ours = {SERVER_KEY: server, NAME_KEY: own}
        if meta is None:
            return ours
        rewritten = rewrite_meta(server, meta, self.uris.name_of)
        return {**(rewritten if isinstance(rewritten, dict) else json.members(meta)), **ours}


def names_of(entries: Mapping[str, Entry]) -> Names:
    """Return the names of everything that servers offer; 10 ms for a thousand names, in which others have no turn."""
    offers = {server: entry.offer for server, entry in entries.items()}
    return Names(
        Namespace({server: [tool.name for tool in offer.tools] for server, offer in offers.items()}),
        Namespace({server: [prompt.name for prompt in offer.prompts] for server, offer in offers.items()}),
        Uris({server: [each.uri for each in (*offer.resources, *offer.templates)] for server, offer in offers.items()}),
    )


class CurrentNames:
    """Names for the newest catalogue that was asked about: made anew when a list changed. Implements `Naming`."""

    def __init__(self, parts: ServiceParts) -> None:
        self._parts = parts
        self._entries: Mapping[str, Entry] = {}
        self._lists: Lists = {}
        self._made = names_of({})

    async def of(self, seen: Catalogue) -> Names:
        """Return the names of everything in a catalogue, unavailable servers included. A checkpoint if it is large."""
        entries = seen.entries
        if entries is self._entries:
            return self._made
        lists = {server: tuple(getattr(entry.offer, name) for name in LISTS) for server, entry in entries.items()}
        if _same(self._lists, lists):
            made = self._made
        else:
            weight = _NAME_COST * sum(len(each) for of_server in lists.values() for each in of_server)
            made = await self._parts.bench.run(weight, names_of, entries)
        self._made, self._lists, self._entries = made, lists, entries
        return made

    async def tool(self, client: Client, name: str, since: float) -> tuple[Entry, Tool]:
        """Raises `UnknownTool`, and what `Arrival.of` raises."""
        seen, meaning = await self._meant(client, lambda names: names.tools, name, since)
        if meaning is None:
            raise await beside(partial(_unknown_tool, seen, await self.of(seen), name))
        server, own = meaning
        return seen.entries[server], seen.entries[server].tools[own]

    async def prompt(self, client: Client, name: str, since: float) -> Meaning:
        _, meaning = await self._meant(client, lambda names: names.prompts, name, since)
        if meaning is None:
            raise UnknownPrompt(f"there is no prompt {clean(name[:100])!r}; prompts/list tells which there are")
        return meaning

    async def _meant(
        self, client: Client, kind: Callable[[Names], Namespace], name: str, since: float
    ) -> tuple[Catalogue, Meaning | None]:
        """Return what a name means; a server that it begins with, and of which nothing is known, is waited for."""
        seen = self._parts.visible.now(client.principal)
        meaning = kind(await self.of(seen)).meaning_of(name)
        server = seen.names.literal(name.partition(SEPARATOR)[0])
        if meaning is None and server is not None and server not in seen.entries:
            await self._parts.arrival.of(server, client.principal, since + self._parts.forward.timeout_s(server))
            seen = self._parts.visible.now(client.principal)
            meaning = kind(await self.of(seen)).meaning_of(name)
        return seen, meaning

    async def resource(self, client: Client, uri: str, since: float) -> Meaning:
        """Return whose resource a URI is: of the server that it names, listed or not, or the only one that has it."""
        del since  # no server is waited for
        seen = self._parts.visible.now(client.principal)
        if uri.startswith(URI_SCHEME):
            called, own = split_resource(uri) or ("", "")
            server = seen.names.literal(called)
            if server is not None:
                return server, own
        else:
            offers = {server: entry.offer for server, entry in seen.entries.items()}
            match await beside(partial(resolve_bare, uri, offers)):
                case Resolved(server=server, name=own):
                    return server, own
                case Ambiguous(readings=readings):
                    raise ambiguous(uri, readings, resource_uri)
        text = f"there is no resource {clean(uri[:200])!r}; resources/list tells which there are"
        raise not_found(client.era, text, uri)


def _same(before: Lists, after: Lists) -> bool:
    """Say whether these are the same lists: a list that did not change is the same object."""
    return before.keys() == after.keys() and all(
        old is new for server, lists in after.items() for old, new in zip(before[server], lists, strict=True)
    )


def _unknown_tool(seen: Catalogue, names: Names, name: str) -> UnknownTool | ToolHeld:
    server = seen.names.literal(name.partition(SEPARATOR)[0])
    entry = seen.entries.get(server) if server is not None else None
    if entry is not None:
        for own in (*entry.offer.barred, *entry.hidden, *entry.held):
            refused = refuse_left_out(entry, own)
            if refused is not None and name_for(entry.server, own) == name:
                return refused
    paths = (path.partition(":") for path in seen.nearest(name.replace(SEPARATOR, ":", 1)))
    nearest = [names.tools.name_of(server, own) for server, _, own in paths]
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "tools/list tells which there are"
    unread = unlisted_of(seen, server)
    known = f" that is known of server {server!r}: {unread}; tell the user" if unread else ""
    text = f"there is no tool {clean(name[:MAX_NAME_SHOWN])!r}{known}; {hint}"
    hidden = [own for own in entry.hidden_tools if name_for(entry.server, own) == name] if entry is not None else []
    if entry is not None and hidden:
        return WithheldTool(text, entry.server, hidden[0], {"nearest": nearest}, entry.hidden_tools[hidden[0]])
    return UnknownTool(text, server=entry.server if entry is not None else None, details={"nearest": nearest})
