"""The service behind the front: the methods of MCP over the catalogue and the router.

Each answer is fitted to the era of the client that asked. Calls are passed through as bytes; only the envelope and the
name of the tool are read on the way.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import trio

from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments, UnknownMethod
from actors.kit import Address, Latest
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.protocol.jsonrpc import encode
from actors.protocol.listing import announced
from actors.protocol.versions import META_SERVER_INFO, MODERN_VERSIONS
from actors.router import Message as RouterMessage
from supervisor.metatools import definitions
from supervisor.metatools.answers import native_lists
from supervisor.metatools.answers.native_lists import Listed
from supervisor.servers.deployment import Deployment
from supervisor.service.client import Client
from supervisor.service.exchange import Exchange
from supervisor.service.introduction import Introduction
from supervisor.service.lookup import Lookup
from supervisor.service.means import Means, Used
from supervisor.service.meta_calls import MetaCalls
from supervisor.service.port import Revisions
from supervisor.service.relay import with_member
from supervisor.service.resources import Reading, decoded
from supervisor.service.tool_calls import ToolCalls

LIST_TTL_MS = 60_000
PASSED_ON = {"completions": "2025-03-26", "logging": "2024-11-05"}
"""What servers do that a client is told of if one of them does, since the revision that has a word for it."""


LEGACY_ONLY = frozenset({"initialize", "ping"})
MODERN_ONLY = frozenset({"server/discover"})


class _Paged(msgspec.Struct):
    cursor: str | None = None


Handler = Callable[[Exchange], Awaitable[bytes]]


class Gateway:
    """Implements `supervisor.service.port.Service`: the door of the meta-tools. `means` are for the other doors, too.

    `used` is told of each call that ended; `clock` gives unix time in seconds. What `introduction` says is kept up to
    date as long as it runs.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        deployment: Latest[Deployment],
        *,
        version: str,
        used: Used,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.changes: Latest[Any] = catalogue
        self.means = means = Means(router, catalogue, statuses, deployment, used, clock)
        self._visible = means.visible
        self._deployment = deployment
        self._bench = bench = means.bench
        forward = means.forward
        lookup = Lookup(self._visible, means.arrival, forward)
        tools = ToolCalls(forward, lookup, bench, used)
        self._reading = reading = Reading(forward, lookup, bench)
        self.introduction = Introduction(self._visible, deployment)
        calls = MetaCalls(self._visible, tools, reading, bench, self.introduction, deployment, self._own)
        self._info = {"name": "mcpvisor", "title": "mcpvisor", "version": version}
        self._meta = b'"_meta":' + encode({META_SERVER_INFO: self._info})
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
        if not self._deployment.value.settings.notify_catalogue_changes:
            return Revisions()
        seen = self._visible.now(principal)
        return Revisions(tools=seen.tools_revision, resources=seen.resources_revision, prompts=seen.prompts_revision)

    def _capabilities(self, version: str, principal: Principal) -> dict[str, Any]:
        """Return what is here for a client of `version`: what some server offers, and we pass on."""
        told = {"listChanged": self._deployment.value.settings.notify_catalogue_changes}
        lists: dict[str, Any] = {"tools": told, "resources": told, "prompts": told}
        entries = self._visible.now(principal).entries.values()
        offered = frozenset[str]().union(*(announced(entry.offer.capabilities) for entry in entries))
        passed = [name for name, since in PASSED_ON.items() if name in offered and version >= since]
        return {**lists, **{name: {} for name in passed}}

    async def perform(self, exchange: Exchange) -> bytes:
        """Perform one request; see `Service.perform`. Each is a task of its own, which is all the fairness it needs."""
        await trio.lowlevel.checkpoint_if_cancelled()
        client, method = exchange.client, exchange.method
        handler = self._methods.get(method)
        modern = client.era == "modern"
        if handler is None or method in (LEGACY_ONLY if modern else MODERN_ONLY):
            raise UnknownMethod(f"there is no method {method[:100]!r} here, in protocol version {client.version}")
        return await handler(exchange)

    # Lists ----------------------------------------------------------------------------------------------------------

    async def _initialize(self, exchange: Exchange) -> bytes:
        client = exchange.client
        return encode(
            {
                "protocolVersion": client.version,
                "capabilities": self._capabilities(client.version, client.principal),
                "serverInfo": self._info,
                "instructions": self.introduction.text(client.principal),
            }
        )

    async def _ping(self, exchange: Exchange) -> bytes:
        del exchange
        return b"{}"

    async def _discover_server(self, exchange: Exchange) -> bytes:
        client = exchange.client
        capabilities = self._capabilities(client.version, client.principal)
        said = self.introduction.text(client.principal)
        result = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities, "instructions": said}
        return self._own(client, encode(result), cacheable=True)

    async def _list_tools(self, exchange: Exchange) -> bytes:
        self._first_page_only(exchange.params)
        return self._own(exchange.client, self._definitions, cacheable=True)

    def _first_page_only(self, params: msgspec.Raw) -> None:
        if _cursor(params) is not None:
            raise InvalidArguments("'cursor' is not one that this list gave")

    async def _list_resources(self, exchange: Exchange) -> bytes:
        return await self._listed(exchange, "resources", "resources")

    async def _list_templates(self, exchange: Exchange) -> bytes:
        return await self._listed(exchange, "templates", "resourceTemplates")

    async def _list_prompts(self, exchange: Exchange) -> bytes:
        return await self._listed(exchange, "prompts", "prompts")

    async def _listed(self, exchange: Exchange, kind: Listed, member: str) -> bytes:
        client = exchange.client
        seen = await self._visible.indexed(client)
        cursor = _cursor(exchange.params)
        body = await self._bench.run(native_lists.weight(seen, kind), _page, seen, kind, member, cursor)
        return self._own(client, body, cacheable=True)

    def _own(self, client: Client, body: bytes, *, cacheable: bool = False) -> bytes:
        """Return a result that we made, with the members its era wants."""
        if client.era == "legacy":
            return body
        if cacheable:
            body = with_member(body, b'"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS)
        return with_member(body, b'"resultType":"complete",' + self._meta)


def _page(seen: Catalogue, kind: Listed, member: str, cursor: str | None) -> bytes:
    page, following = native_lists.native_page(seen, kind, cursor)
    return encode({member: page} if following is None else {member: page, "nextCursor": following})


def _cursor(params: msgspec.Raw) -> str | None:
    """Return the cursor of a list's params; an empty string is one, too (2025-11-25 server/utilities/pagination)."""
    if not bytes(params):
        return None
    paged: _Paged = decoded(params, _Paged, "'cursor' must be a string")
    return paged.cursor
