"""The service behind the front: the methods of MCP over the catalogue and the router.

Each answer is fitted to the era of the client that asked. Calls are passed through as bytes; only the envelope and the
name of the tool are read on the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from actors.catalogue.snapshot import Catalogue
from actors.codes import ADDED, REMOVED
from actors.errors import InvalidArguments, UnknownMethod
from actors.kit import Latest
from actors.principal import Principal
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from supervisor.metatools import definitions
from supervisor.metatools.answers import native_lists
from supervisor.metatools.answers.native_lists import Listed
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.meta_calls import MetaCalls
from supervisor.service.calls.tool_calls import ToolCalls
from supervisor.service.introduction.instructions import Introduction
from supervisor.service.introduction.self_description import SelfDescription
from supervisor.service.lookup.lookup import Lookup
from supervisor.service.parts import ServiceParts
from supervisor.service.port import Revisions
from supervisor.service.resources import Reading

Handler = Callable[[Exchange], Awaitable[bytes]]


class Gateway:
    """Implements `supervisor.service.port.Service`: the door of the meta-tools.

    What `introduction` says is kept up to date as long as it runs.
    """

    def __init__(self, parts: ServiceParts, version: str) -> None:
        self.changes: Latest[Any] = parts.catalogue
        self.parts = parts
        self._visible, self._deployment, self._bench = parts.visible, parts.deployment, parts.bench
        lookup = Lookup(parts.visible, parts.arrival, parts.looks, parts.forward)
        tools = ToolCalls(parts.forward, lookup, parts.bench, parts.used)
        self._reading = reading = Reading(parts.forward, lookup, parts.bench)
        self.introduction = introduction = Introduction(parts.visible, parts.deployment)
        self.of_ours = SelfDescription(parts.visible, version, introduction.text, self._tells)
        calls = MetaCalls(parts.visible, tools, reading, parts.bench, introduction, parts.deployment, self.of_ours.fit)
        self._definitions = encode({"tools": definitions.DEFINITIONS})
        self._methods: dict[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": calls.perform,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._reading.read,
            "prompts/list": self._list_prompts,
            "prompts/get": self._reading.get_prompt,
            "completion/complete": self._reading.complete,
            "initialize": self._initialize,
            "ping": self._ping,
            "server/discover": self._discover_server,
        }

    # The Service protocol -------------------------------------------------------------------------------------------

    def revisions(self, principal: Principal) -> Revisions:
        """Return what `principal` sees now; constant if the operator switched these notifications off."""
        if not self._tells():
            return Revisions()
        return self._visible.now(principal).revisions

    def _tells(self) -> bool:
        return self._deployment.value.settings.notify_catalogue_changes

    async def perform(self, exchange: Exchange) -> bytes:
        """Perform one request; see `Service.perform`. Each is a task of its own, which is all the fairness it needs."""
        await trio.lowlevel.checkpoint_if_cancelled()
        client, method = exchange.client, exchange.method
        handler = self._methods.get(method)
        if handler is None or method in (REMOVED if client.era == "modern" else ADDED):
            raise UnknownMethod(f"there is no method {method[:100]!r} here, in protocol version {client.version}")
        return await handler(exchange)

    async def mirrors_of(self, principal: Principal, tool: str) -> tuple[Mirror, ...]:
        """Return none: the schemas of the meta-tools mark nothing."""
        del principal, tool
        return ()

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        """Refuse a subscription: there are none at this door."""
        await trio.lowlevel.checkpoint()
        raise UnknownMethod(f"there are no subscriptions to resources here: {name[:100]!r}")

    # Lists ----------------------------------------------------------------------------------------------------------

    async def _initialize(self, exchange: Exchange) -> bytes:
        return self.of_ours.initialize_result(exchange.client)

    async def _ping(self, exchange: Exchange) -> bytes:
        del exchange
        return b"{}"

    async def _discover_server(self, exchange: Exchange) -> bytes:
        return self.of_ours.discover_result(exchange.client)

    async def _list_tools(self, exchange: Exchange) -> bytes:
        if native_lists.cursor_of(exchange.params) is not None:
            raise InvalidArguments("'cursor' is not one that this list gave")
        return self.of_ours.fit(exchange.client, self._definitions, cacheable=True)

    async def _list_resources(self, exchange: Exchange) -> bytes:
        return await self._list(exchange, "resources", "resources")

    async def _list_templates(self, exchange: Exchange) -> bytes:
        return await self._list(exchange, "templates", "resourceTemplates")

    async def _list_prompts(self, exchange: Exchange) -> bytes:
        return await self._list(exchange, "prompts", "prompts")

    async def _list(self, exchange: Exchange, kind: Listed, member: str) -> bytes:
        client = exchange.client
        seen = self._visible.now(client.principal)
        cursor = native_lists.cursor_of(exchange.params)
        body = await self._bench.run(native_lists.weight(seen, kind), _page, seen, kind, member, cursor)
        return self.of_ours.fit(client, body, cacheable=True)


def _page(seen: Catalogue, kind: Listed, member: str, cursor: str | None) -> bytes:
    define = partial(native_lists.native_definition, seen)
    page, following = native_lists.native_page(seen, kind, cursor, define)
    return encode({member: page} if following is None else {member: page, "nextCursor": following})
