"""Definitions of servers as they stand in the lists of everything: another name, and whose they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from actors.catalogue.names.naming import resource_uri
from actors.catalogue.offer import Prompt, Resource, Tool
from actors.catalogue.snapshot import Entry
from actors.protocol.listing import Kind
from actors.protocol.wire import json
from supervisor.metatools.answers.native_lists import rewrite_meta
from supervisor.service.doors.namespaced import Namespace, Uris
from supervisor.service.fitting.tool_definitions import fit

SERVER_KEY: Final = "mcpvisor/server"
NAME_KEY: Final = "mcpvisor/name"
"""Members of `_meta`: the server, and what it calls this itself (a tool, a prompt, a URI)."""


def names_of(entries: Mapping[str, Entry]) -> Names:
    """Return the names of everything that servers offer; 10 ms for a thousand names, in which others have no turn."""
    offers = {server: entry.offer for server, entry in entries.items()}
    return Names(
        Namespace({server: [tool.name for tool in offer.tools] for server, offer in offers.items()}),
        Namespace({server: [prompt.name for prompt in offer.prompts] for server, offer in offers.items()}),
        Uris({server: [each.uri for each in (*offer.resources, *offer.templates)] for server, offer in offers.items()}),
    )


class Names(msgspec.Struct, frozen=True):
    """The names of everything at one moment."""

    tools: Namespace
    prompts: Namespace
    uris: Uris

    def definition_of(self, version: str, server: str, item: Tool | Prompt | Resource) -> dict[str, Any]:
        """Return the definition of what a server offers for clients of a revision, under its name here.

        All else is the server's own, as far as such clients take it.
        """
        kind: Kind = "resources"
        if isinstance(item, Tool):
            kind = "tools"
            member, name, own = "name", self.tools.name_of(server, item.name), item.name
        elif isinstance(item, Prompt):
            kind = "prompts"
            member, name, own = "name", self.prompts.name_of(server, item.name), item.name
        elif item.template:  # nobody knows whose URIs fit it
            member, name, own = "uriTemplate", resource_uri(server, item.uri), item.uri
        else:
            member, name, own = "uri", self.uris.name_of(server, item.uri), item.uri
        definition: dict[str, Any] = dict(fit(json.MEMBERS.decode(item.definition), kind, version))
        definition[member] = name
        definition["_meta"] = self._meta(server, own, definition.get("_meta"))
        return definition

    def _meta(self, server: str, own: str, meta: msgspec.Raw | None) -> Any:
        ours = {SERVER_KEY: server, NAME_KEY: own}
        if meta is None:
            return ours
        rewritten = rewrite_meta(server, meta, self.uris.name_of)
        try:
            members = rewritten if isinstance(rewritten, dict) else json.read(json.MEMBERS, meta)
        except json.UnreadableJson:  # no object: it is the server's mistake, and stays it
            return meta
        return {**members, **ours}
