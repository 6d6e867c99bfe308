"""The door of all servers at once: what each of them offers, under names of ours that mean exactly one thing.

Definitions are the servers' own; a name is changed, and `_meta` says whose it is. Calls, results and errors pass as at
the door of one server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
import trio

from actors.catalogue.names import URI_SCHEME, Ambiguous, Meaning, Resolved, resolve_bare, resource_uri, split_resource
from actors.catalogue.offer import LISTS, Item, Prompt, Skill, Tool, kind_of
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import ToolHeld, UnknownPrompt, UnknownTool
from actors.protocol.tasks import OF_ONE
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from supervisor.host.workbench import beside
from supervisor.metatools.inventory import rename_skill, rewrite_meta
from supervisor.metatools.servers import unlisted_of
from supervisor.metatools.texts import clean
from supervisor.servers.safety import WithheldTool
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.failures import run_shown
from supervisor.service.client import Client
from supervisor.service.doors import task_requests
from supervisor.service.doors.task_requests import request_of
from supervisor.service.fitting.relay import not_found
from supervisor.service.fitting.tool_definitions import fit
from supervisor.service.gateway import Define, Handler, ManyServers, ServiceParts
from supervisor.service.introduction import SelfDescription, Told
from supervisor.service.lookup.lookup import ambiguous, refuse_left_out
from supervisor.service.lookup.visible import ClientView
from supervisor.service.request import MAX_NAME_CHARS, named_params, parts_from
from supervisor.service.resources import Reading
from supervisor.usage.records import UNKNOWN

# Names under which everything of all servers can stand in one list, and what they mean, exactly.
#
# - `server__tool`, where that fits what model APIs allow, `[A-Za-z0-9_-]{1,64}`, and can be cut in one place only. Any
#   other name is spelled as far as it fits and ends with a mark, `_` and twelve hexadecimal digits of its digest; a
#   name that looks as if it ended with one gets one.
# - So a name depends on its server and its tool alone: not on other servers, their order, or the run of the daemon.
# - Two with one mark (one in 2**48, or made on purpose) both get a longer one: neither is shadowed by the other.
# - A URI stays the server's own if no other server lists it, and is `mcp://server/uri` otherwise.

MAX_CHARS: Final = 64
MAX_SERVER_CHARS: Final = 24
"""Of a name with a mark, so that there is room for the tool's."""
DIGITS, MORE_DIGITS = 12, 32
SEPARATOR: Final = "__"

_FITS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MARKED: Final = re.compile(rf".*_(?:[0-9a-f]{{{DIGITS}}}|[0-9a-f]{{{MORE_DIGITS}}})")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")

Digest = Callable[[str], str]


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MORE_DIGITS // 2).hexdigest()


class Namespace:
    """All names of one kind. `digest` returns hexadecimal digits."""

    def __init__(self, offered: Mapping[str, Iterable[str]], digest: Digest = _digest) -> None:
        """`offered`: the own names of what each server offers."""
        alike: dict[str, set[Meaning]] = {}
        for server, names in offered.items():
            for name in names:
                alike.setdefault(name_for(server, name, digest), set()).add((server, name))
        self._meant: dict[str, Meaning] = {}
        for short, meanings in alike.items():
            if len(meanings) == 1:
                self._meant[short] = next(iter(meanings))
            else:
                self._meant.update({with_mark(*each, digest, MORE_DIGITS): each for each in meanings})
        self._names = {meaning: name for name, meaning in self._meant.items()}

    def name_of(self, server: str, own: str) -> str:
        """Return the name of what a server offers. Raises KeyError for anything else."""
        return self._names[server, own]

    def meaning_of(self, name: str) -> Meaning | None:
        return self._meant.get(name)


def name_for(server: str, own: str, digest: Digest = _digest) -> str:
    """Return the name of something where no other has the same."""
    name = f"{server}{SEPARATOR}{own}"
    one_cut = SEPARATOR not in server and not server.endswith("_")
    plain = one_cut and _FITS.fullmatch(name) is not None and _MARKED.fullmatch(name) is None
    return name if plain else with_mark(server, own, digest, DIGITS)


def with_mark(server: str, own: str, digest: Digest, digits: int) -> str:
    mark = f"_{digest(f'{len(server)}:{server}{own}')[:digits]}"
    spelled = _FOREIGN.sub("-", f"{server[:MAX_SERVER_CHARS]}{SEPARATOR}{own[:MAX_CHARS]}")
    return spelled[: MAX_CHARS - len(mark)] + mark


class Uris:
    """Which URIs of resources and templates only one server lists."""

    def __init__(self, offered: Mapping[str, Iterable[str]]) -> None:
        """`offered`: the URIs that each server lists."""
        self._owners: dict[str, str] = {}
        self._shared: set[str] = set()
        for server, uris in offered.items():
            for uri in uris:
                if self._owners.setdefault(uri, server) != server:
                    self._shared.add(uri)

    def name_of(self, server: str, uri: str) -> str:
        """Return the URI under which a resource of a server can be read, listed or not."""
        alone = self._owners.get(uri) == server and uri not in self._shared
        return uri if alone and not uri.startswith(URI_SCHEME) else resource_uri(server, uri)


# What everything is called at the door of all servers, and what a name means there.
#
# A definition is its server's own, under another name, and its `_meta` says whose it is.

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

    def __init__(self, parts: ServiceParts, view: ClientView) -> None:
        self._parts = parts
        self._view = view
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
        seen = self._view.visible.catalogue
        meaning = kind(await self.of(seen)).meaning_of(name)
        server = seen.names.literal(name.partition(SEPARATOR)[0])
        if meaning is None and server is not None and server not in seen.entries:
            await self._view.arrival.of(server, client.principal, since + self._parts.forward.timeout_s(server))
            seen = self._view.visible.catalogue
            meaning = kind(await self.of(seen)).meaning_of(name)
        return seen, meaning

    async def resource(self, client: Client, uri: str, since: float) -> Meaning:
        """Return whose resource a URI is: of the server that it names, listed or not, or the only one that has it."""
        del since  # no server is waited for
        seen = self._view.visible.catalogue
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


WHAT: Final = "Tools and prompts of many MCP servers"
NAMES: Final = "A name begins with that of its server and two underscores."


def introduce(told: Told) -> str:
    """Return the instructions. The names of the servers are in the first line, and early.

    A client that keeps tools from its model shows it little more: Codex 0.171.0 the first line, up to 250 characters.
    Without a name there the model does not know what it could search for.
    """
    there = f": {told.names}" if told.names else ""
    return f"{WHAT}{there}. {NAMES}\n{told.servers}"


class Everything(ManyServers):
    """Implements `supervisor.service.port.Service`. `told` returns what clients are told of the servers."""

    MAX_PAGE_BYTES = 512 * 1024
    """Some clients take no message of a MiB."""

    def __init__(self, parts: ServiceParts, view: ClientView, version: str, told: Callable[[], Told]) -> None:
        self._names = CurrentNames(parts, view)
        self._calls = parts.counter(view)
        said = partial(SelfDescription, view.visible, version, WHAT, lambda: introduce(told()), self._tells)
        how = said(self.has_events, passes=True)
        methods: dict[str, Handler] = {
            **Reading(view.visible, parts.forward, parts.bench, self._names, transparent=True).methods,
            "tools/call": self._call,
            **dict.fromkeys(OF_ONE, partial(task_requests.perform, parts)),
        }
        super().__init__(parts, view, how, self._names, methods)

    async def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        seen = self.view.visible.catalogue
        server, own = (await self._names.of(seen)).tools.meaning_of(tool) or ("", "")
        entry = seen.entries.get(server)
        known = entry.tools.get(own) if entry is not None else None
        return known.mirrors if known is not None else ()

    async def _view(self, client: Client) -> tuple[Catalogue, Define]:
        wait_s = self.parts.deployment.value.settings.first_discovery_wait_s
        seen = await self.view.visible.wait_for_discovery(wait_s)
        return seen, partial((await self._names.of(seen)).definition_of, client.version)

    async def _call(self, exchange: Exchange) -> bytes:
        pending = PendingCall(exchange, UNKNOWN)
        call = self._calls.count(exchange, pending, self._call_tool(exchange, pending))
        return await run_shown(self.parts.deployment.value, exchange, call)

    async def _call_tool(self, exchange: Exchange, pending: PendingCall) -> bytes:
        since = trio.current_time()
        members, name = await named_params(self.parts.bench, exchange, "name")
        pending.named, pending.arguments = name, members.get("arguments", pending.arguments)
        entry, tool = await self._names.tool(exchange.client, name[:MAX_NAME_CHARS], since)
        pending.find(entry.server, tool)
        members["name"] = msgspec.Raw(encode((tool.own or tool).name))
        rest = parts_from("tools/call", members, exchange.retry)
        return await self.parts.forward.ask(exchange, request_of(exchange, entry, rest, since, tool))
