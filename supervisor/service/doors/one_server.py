"""The door of one server: its names, its answers and its errors, as if its client had connected to it.

- What belongs to the hop between client and us is answered here: `initialize` and `server/discover` with what the
  server said of itself, `ping`. Everything else is passed on, methods that we do not know included.
- Lists come from the server while it runs. While it sleeps they come from what is known, if that is all it listed.
- Where the configuration changes what is seen of its tools, they come from what is known alone, and no other tool can
  be called.
- A call that fails by our own doing is a result that says so, because that is what a model is shown; an error of the
  server stays an error.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from actors.catalogue.names.naming import tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments, UnknownServer, UnknownTool
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.changes import OF_RESOURCES
from actors.protocol.listing import LISTED_BY
from actors.protocol.tasks import OF_ONE
from actors.protocol.wire import json
from actors.protocol.wire.mirrors import Mirror
from supervisor.host.loop.workbench import beside
from supervisor.metatools.servers.availability import refusal
from supervisor.metatools.texts import clean
from supervisor.servers.safety import WithheldTool
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.failures import run_shown
from supervisor.service.client import Client
from supervisor.service.doors import event_types, greeting, known_lists, task_requests
from supervisor.service.doors.task_requests import request_of
from supervisor.service.fitting.relay import with_lifetime, with_member
from supervisor.service.fitting.tool_definitions import fit_page
from supervisor.service.gateway import ServiceParts
from supervisor.service.lookup.lookup import refuse_left_out
from supervisor.service.port import Revisions
from supervisor.service.request import PARAMS_COST, Parts, is_method, parts_of, unknown_method, with_name
from supervisor.service.skills import OF_SKILLS

CACHED: Final = frozenset({*LISTED_BY, "resources/read", *OF_SKILLS})
"""Methods whose results say in the modern era for how long they hold (MCP 2026-07-28, server/utilities/caching)."""
NOT_PASSED: Final = frozenset({"logging/setLevel", "tasks/list", *OF_RESOURCES})
"""What needs more than one request and its answer: a session of the client, with which the server has none. Tasks of
all clients would be among those that are listed."""


class OneServer:
    """Implements `supervisor.service.port.Service` for one configured server."""

    def __init__(self, server: str, parts: ServiceParts) -> None:
        self.changes = parts.changes
        self._server = server
        self._parts = parts
        self._visible = parts.visible

    def revisions(self, principal: Principal) -> Revisions:
        entry = self._visible.now(principal).entries.get(self._server)
        return Revisions() if entry is None else entry.revisions

    async def perform(self, exchange: Exchange) -> bytes:
        client, method = exchange.client, exchange.method
        match method:
            case "initialize":
                return greeting.initialize_result(self._server, (await self._entry(client)).offer, client.version)
            case "server/discover":
                offer, shared = (await self._entry(client)).offer, client.principal == LOCAL
                return greeting.discover_result(self._server, offer, client.version, shared=shared)
            case "ping":
                return b"{}"
            case "resources/subscribe" | "resources/unsubscribe":
                return await self._parts.subscriptions.perform(exchange, self.subscribe)
            case _ if method in event_types.WEBHOOKS and self._shares_login(client):
                raise event_types.refusal(self._server)
            case _ if method in OF_ONE:
                return await task_requests.perform(self._parts, exchange, self._server)
        if method in NOT_PASSED or method.startswith(("notifications/", "subscriptions/")) or not is_method(method):
            raise unknown_method(exchange)
        known = await self._known_page(exchange) if method in LISTED_BY else None
        return await self._passed_on(exchange) if known is None else known

    async def mirrors_of(self, principal: Principal, tool: str) -> tuple[Mirror, ...]:
        entry = self._visible.now(principal).entries.get(self._server)
        known = entry.tools.get(tool) if entry is not None else None
        return known.mirrors if known is not None else ()

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        offer = (await self._entry(exchange.client)).offer
        await self._parts.subscriptions.add(exchange, name, self._server, name, offer)

    async def _entry(self, client: Client) -> Entry:
        """Return what the server offers, or did before it slept. Raises `ServerError` if it cannot come up."""
        refused = refusal(self._server, self._visible.statuses(client.principal).get(self._server))
        if refused is not None:
            raise refused
        seen = self._visible.now(client.principal)
        entry = seen.entries.get(self._server)
        if entry is None and self._server not in seen.names:
            raise UnknownServer(f"there is nothing of server {self._server!r} here", server=self._server)
        if entry is None:
            by = trio.current_time() + self._parts.forward.timeout_s(self._server)
            await self._parts.arrival.of(self._server, client.principal, by)
            return await self._entry(client)
        return entry

    def _shares_login(self, client: Client) -> bool:
        return event_types.shares_login(self._parts.launches, self._server, client)

    async def _known_page(self, exchange: Exchange) -> bytes | None:
        """Return a page of a list from what is known; None if the server has to be asked."""
        kind, client = LISTED_BY[exchange.method], exchange.client
        entry = await self._entry(client)
        offer, ours = entry.offer, kind == "tools" and entry.is_altered
        position = known_lists.position_of(exchange.params)
        if position is None and ours:
            raise InvalidArguments("'cursor' is not one that this list gave")
        if position is None:
            return None
        # What the server itself would list, but must not: what cannot be called, or seen, and pages without end.
        if not (ours or (kind == "tools" and offer.barred) or kind in offer.circular):
            if position == 0 and self._visible.is_awake(client.principal, self._server):
                return None
            if not known_lists.is_whole(entry.own, kind):
                return None
        cost = known_lists.weight(offer, kind, position)
        body = await self._parts.bench.run(cost, known_lists.page, offer, kind, position, client.version)
        if client.era == "legacy":
            return body
        return with_member(body, b'"resultType":"complete","ttlMs":%d,"cacheScope":"private"' % greeting.OWN_TTL_MS)

    async def _passed_on(self, exchange: Exchange) -> bytes:
        if exchange.method == "tools/call":
            pending = PendingCall(exchange, self._server)
            call = self._parts.calls.count(exchange, pending, self._call(exchange, pending))
            return await run_shown(self._parts.deployment.value, exchange, call)
        since, parts = trio.current_time(), await self._take_apart(exchange)
        return await self._ask(exchange, await self._entry(exchange.client), parts, since)

    async def _take_apart(self, exchange: Exchange) -> Parts:
        params = exchange.params
        cost = len(params) // PARAMS_COST
        return await self._parts.bench.run(cost, parts_of, exchange.method, params, exchange.retry)

    async def _call(self, exchange: Exchange, pending: PendingCall) -> bytes:
        client, since = exchange.client, trio.current_time()
        parts = await self._take_apart(exchange)
        pending.named, pending.arguments = parts.name, parts.arguments
        known = self._visible.now(client.principal).entries.get(self._server)
        if known is not None and (tool := known.tools.get(parts.name)) is not None:
            pending.find(self._server, tool)  # before its server is waited for: it may be in vain
        entry = await self._entry(client)
        refused = refuse_left_out(entry, parts.name)
        if refused is not None:
            raise refused
        tool = entry.tools.get(parts.name)
        if tool is None and entry.is_altered:
            raise await beside(partial(_unknown_tool, self._visible.now(client.principal), entry, parts.name))
        if tool is not None:
            pending.find(self._server, tool)
            if tool.own is not None:
                parts = with_name(parts, tool.own.name)
        return await self._ask(exchange, entry, parts, since, tool)

    async def _ask(
        self, exchange: Exchange, entry: Entry, parts: Parts, since: float, tool: Tool | None = None
    ) -> bytes:
        """Ask the server, and say in the modern era for how long the answer of a legacy one holds: it may not."""
        client, method = exchange.client, exchange.method
        request = request_of(exchange, entry, parts, since, tool, labelled=False)
        body = await self._parts.forward.ask(exchange, request)
        if method == event_types.LIST and self._shares_login(client):
            body = await self._parts.bench.run(len(body), event_types.without_webhooks, body)
        body = json.with_meta(body, META_SUBSCRIPTION, exchange.id)  # the result that closes a stream names its request
        if method in LISTED_BY:
            kind = LISTED_BY[method]
            body = await self._parts.bench.run(len(body), fit_page, body, kind, client.version)
        if client.era != "modern" or method not in CACHED:
            return body
        return with_lifetime(body, entry.offer.era, shared=client.principal == LOCAL)


def _unknown_tool(seen: Catalogue, entry: Entry, name: str) -> UnknownTool:
    """Return the error for a name that no tool has which is shown of a server."""
    now = entry.renamed.get(name)
    paths = [tool_path(entry.server, now)] if now else seen.nearest(tool_path(entry.server, name), server=entry.server)
    nearest = [clean(path.partition(":")[2]) for path in paths]
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "tools/list tells which there are"
    text = f"server {entry.server!r} has no tool {clean(name[:100])!r}; {hint}"
    if (why := entry.hidden_tools.get(name)) is not None:
        return WithheldTool(text, entry.server, name, {"nearest": nearest}, why)
    return UnknownTool(text, server=entry.server, details={"nearest": nearest})
