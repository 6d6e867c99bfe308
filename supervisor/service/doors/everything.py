"""The door of all servers at once: what each of them offers, under names of ours that mean exactly one thing.

Definitions are the servers' own; a name is changed, and `_meta` says whose it is. Calls, results and errors pass as at
the door of one server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio

from actors.catalogue.names.naming import URI_SCHEME, resource_uri, split_resource
from actors.catalogue.names.resolution import Ambiguous, Meaning, Resolved
from actors.catalogue.names.uris import resolve_bare
from actors.catalogue.snapshot import Catalogue, Entry
from actors.codes import ADDED, REMOVED
from actors.errors import InvalidArguments, MalformedRequest, UnknownMethod, UnknownPrompt
from actors.kit import Latest
from actors.principal import Principal
from actors.protocol.asking.input_required import RESPONSES, STATE
from actors.protocol.changes import subscribable
from actors.protocol.listing import MEMBERS
from actors.protocol.tasks.tasks import OF_ONE
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from supervisor.host.loop.workbench import beside
from supervisor.metatools.answers import native_lists
from supervisor.metatools.texts import clean
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import count
from supervisor.service.client import Client
from supervisor.service.doors import task_requests
from supervisor.service.doors.definitions import Names
from supervisor.service.doors.known_lists import KINDS
from supervisor.service.doors.namespaced import SEPARATOR
from supervisor.service.doors.naming import CurrentNames, unknown_tool
from supervisor.service.doors.requests import NO_META, members_of, text_of
from supervisor.service.doors.task_requests import takes_task, with_task
from supervisor.service.doors.tool_failures import run_shown
from supervisor.service.fitting.relay import not_found
from supervisor.service.introduction.self_description import SelfDescription
from supervisor.service.lookup.lookup import ambiguous
from supervisor.service.parts import ServiceParts
from supervisor.service.port import Revisions
from supervisor.service.request import ServerRequest
from supervisor.service.resources import as_read

HOW: Final = "Tools and prompts of many MCP servers. A name begins with that of its server and two underscores."
MAX_PAGE_BYTES: Final = 512 * 1024
"""Some clients take no message of a MiB."""
_PARAMS_COST: Final = 64
"""So many bytes of params, or of contents, cost as much as one that a model wrote."""

Handler = Callable[[Exchange], Awaitable[bytes]]


class Everything:
    """Implements `supervisor.service.port.Service`. `servers` returns what a principal is told of the servers."""

    def __init__(self, parts: ServiceParts, version: str, servers: Callable[[Principal], str]) -> None:
        self.changes: Latest[Any] = parts.catalogue
        self._parts = parts
        self._visible = parts.visible
        self._names = CurrentNames(parts.bench)
        self._of_ours = SelfDescription(
            parts.visible, version, lambda who: f"{HOW}\n{servers(who)}", lambda: True, passes=True
        )
        self._methods: dict[str, Handler] = {
            **dict.fromkeys(KINDS, self._list),
            "tools/call": self._call,
            "resources/read": self._read,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            **dict.fromkeys(OF_ONE, partial(task_requests.perform, parts)),
        }

    def revisions(self, principal: Principal) -> Revisions:
        return self._visible.now(principal).revisions

    async def perform(self, exchange: Exchange) -> bytes:
        await trio.lowlevel.checkpoint_if_cancelled()
        client, method = exchange.client, exchange.method
        if method not in (REMOVED if client.era == "modern" else ADDED):
            match method:
                case "initialize":
                    return self._of_ours.initialize_result(client)
                case "server/discover":
                    return self._of_ours.discover_result(client)
                case "ping":
                    return b"{}"
                case "resources/subscribe" | "resources/unsubscribe":
                    return await self._parts.subscriptions.perform(exchange, self.subscribe)
            if (handler := self._methods.get(method)) is not None:
                return await handler(exchange)
        raise UnknownMethod(f"there is no method {method[:100]!r} here, in protocol version {client.version}")

    async def mirrors_of(self, principal: Principal, tool: str) -> tuple[Mirror, ...]:
        seen = self._visible.now(principal)
        server, own = (await self._names.of(seen)).tools.meaning_of(tool) or ("", "")
        entry = seen.entries.get(server)
        known = entry.tools.get(own) if entry is not None else None
        return known.mirrors if known is not None else ()

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        seen, (server, own) = await self._resource(exchange.client, name)
        entry = seen.entries.get(server)
        if entry is not None and not subscribable(entry.offer.capabilities):
            raise UnknownMethod(f"server {server!r} does not offer subscriptions to resources")
        era = entry.offer.era if entry is not None else None
        await self._parts.subscriptions.add(exchange, name, server, own, era)

    # Lists ----------------------------------------------------------------------------------------------------------

    async def _list(self, exchange: Exchange) -> bytes:
        client, kind = exchange.client, KINDS[exchange.method]
        seen = await self._visible.wait_for_discovery(
            client, self._parts.deployment.value.settings.first_discovery_wait_s
        )
        names = await self._names.of(seen)
        cursor, weight = native_lists.cursor_of(exchange.params), native_lists.weight(seen, kind)
        define = partial(names.definition_of, client.version)
        page, following = await self._parts.bench.run(
            weight, native_lists.native_page, seen, kind, cursor, define, MAX_PAGE_BYTES
        )
        more = {} if following is None else {"nextCursor": following}
        body = await self._parts.bench.run(weight, encode, {MEMBERS[kind]: page, **more})
        return self._of_ours.fit(client, body, cacheable=True)

    # Requests for one server ----------------------------------------------------------------------------------------

    async def _call(self, exchange: Exchange) -> bytes:
        return await run_shown(self._parts, exchange, partial(self._call_tool, exchange))

    async def _call_tool(self, exchange: Exchange) -> bytes:
        since, client = trio.current_time(), exchange.client
        members, name = await self._params_of(exchange, "name")
        seen, meaning = await self._meant(client, lambda names: names.tools.meaning_of(name), name, since)
        if meaning is None:
            raise await beside(partial(unknown_tool, seen, await self._names.of(seen), name))
        server, own = meaning
        entry = seen.entries[server]
        call = self._ask(exchange, entry, server, {**members, "name": own}, own, since)
        return await count(self._parts.used, exchange, server, entry.tools[own], call)

    async def _get_prompt(self, exchange: Exchange) -> bytes:
        since = trio.current_time()
        members, name = await self._params_of(exchange, "name")
        seen, (server, own) = await self._prompt(exchange.client, name, since)
        return await self._ask(exchange, seen.entries.get(server), server, {**members, "name": own}, own, since)

    async def _read(self, exchange: Exchange) -> bytes:
        since, client = trio.current_time(), exchange.client
        members, uri = await self._params_of(exchange, "uri")
        seen, (server, own) = await self._resource(client, uri)
        body = await self._ask(exchange, seen.entries.get(server), server, {**members, "uri": own}, own, since)
        size = len(body) // _PARAMS_COST
        return await self._parts.bench.run(size, as_read, server, body, client.era, own != uri)

    async def _complete(self, exchange: Exchange) -> bytes:
        since, client = trio.current_time(), exchange.client
        members = members_of(exchange.params)
        ref = members_of(members.get("ref", NO_META), "'ref'")
        kind, name, uri = (text_of(ref.get(member)) for member in ("type", "name", "uri"))
        if kind == "ref/prompt" and name:
            seen, (server, own) = await self._prompt(client, name, since)
            ref["name"] = msgspec.Raw(encode(own))
        elif kind == "ref/resource" and uri:
            seen, (server, own) = await self._resource(client, uri)
            ref["uri"] = msgspec.Raw(encode(own))
        else:
            wrong = "'ref' must be a 'ref/prompt' with a 'name' or a 'ref/resource' with a 'uri'"
            raise InvalidArguments(f"completion/complete: {wrong}")
        return await self._ask(exchange, seen.entries.get(server), server, {**members, "ref": ref}, "", since)

    async def _params_of(self, exchange: Exchange, member: str) -> tuple[dict[str, Any], str]:
        """Return the params, and what they are about. Raises `MalformedRequest`."""
        params = exchange.params
        members = await self._parts.bench.run(len(params) // _PARAMS_COST, members_of, params)
        name = text_of(members.get(member))
        if not name:
            raise MalformedRequest(f"{exchange.method}: params need a {member!r}")
        return members, name

    async def _ask(
        self,
        exchange: Exchange,
        entry: Entry | None,
        server: str,
        members: Mapping[str, Any],
        about: str,
        since: float,
    ) -> bytes:
        left_out = {"_meta"} if exchange.retry is None else {"_meta", RESPONSES, STATE}
        offer, wanted = entry.offer if entry is not None else None, NO_META
        if exchange.method == "tools/call":
            wanted = members.get("task", NO_META)
            left_out.add("task")
        rest = encode({name: value for name, value in members.items() if name not in left_out})[1:-1]
        as_task = exchange.method == "tools/call" and takes_task(exchange.client, offer, wanted)
        return await self._parts.forward.ask(
            exchange,
            ServerRequest(
                server,
                exchange.method,
                with_task(rest, wanted) if as_task else rest,
                members.get("_meta", NO_META),
                name=about,
                since=since,
                uri=about if exchange.method == "resources/read" else "",
                written=offer.era if offer is not None else None,
                as_task=as_task,
                tool=entry.tools.get(about) if entry is not None and exchange.method == "tools/call" else None,
            ),
        )

    # What names mean ------------------------------------------------------------------------------------------------

    async def _meant(
        self, client: Client, meaning_of: Callable[[Names], Meaning | None], name: str, since: float
    ) -> tuple[Catalogue, Meaning | None]:
        """Return what a name means; a server that it begins with, and of which nothing is known, is waited for."""
        seen = self._visible.now(client.principal)
        meaning = meaning_of(await self._names.of(seen))
        server = seen.names.literal(name.partition(SEPARATOR)[0])
        if meaning is None and server is not None and server not in seen.entries:
            await self._parts.arrival.of(server, client.principal, since + self._parts.forward.timeout_s(server))
            seen = self._visible.now(client.principal)
            meaning = meaning_of(await self._names.of(seen))
        return seen, meaning

    async def _prompt(self, client: Client, name: str, since: float) -> tuple[Catalogue, Meaning]:
        seen, meaning = await self._meant(client, lambda names: names.prompts.meaning_of(name), name, since)
        if meaning is None:
            raise UnknownPrompt(f"there is no prompt {clean(name[:100])!r}; prompts/list tells which there are")
        return seen, meaning

    async def _resource(self, client: Client, uri: str) -> tuple[Catalogue, Meaning]:
        """Return whose resource a URI is: of the server that it names, listed or not, or the only one that has it."""
        seen = self._visible.now(client.principal)
        if uri.startswith(URI_SCHEME):
            called, own = split_resource(uri) or ("", "")
            server = seen.names.literal(called)
            if server is not None:
                return seen, (server, own)
        else:
            offers = {server: entry.offer for server, entry in seen.entries.items()}
            match await beside(partial(resolve_bare, uri, offers)):
                case Resolved(server=server, name=own):
                    return seen, (server, own)
                case Ambiguous(readings=readings):
                    raise ambiguous(uri, readings, resource_uri)
        text = f"there is no resource {clean(uri[:200])!r}; resources/list tells which there are"
        raise not_found(client.era, text, uri)
