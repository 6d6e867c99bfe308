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
from actors.protocol.versions import META_SERVER_INFO, MODERN_VERSIONS
from actors.router import Message as RouterMessage
from supervisor.host.workbench import Workbench
from supervisor.metatools import definitions
from supervisor.metatools.answers import native_lists
from supervisor.metatools.answers.native_lists import Listed
from supervisor.servers.deployment import Deployment
from supervisor.service.arrival import Arrival
from supervisor.service.forward import Forwarder
from supervisor.service.introduction import Introduction
from supervisor.service.lookup import Lookup
from supervisor.service.meta_calls import MetaCalls
from supervisor.service.port import Client, Revisions
from supervisor.service.relay import with_member
from supervisor.service.resources import NO_META, Reading, decoded
from supervisor.service.tool_calls import ToolCalls, Used
from supervisor.service.visible import Visible

LIST_TTL_MS = 60_000
COMPLETIONS_SINCE = "2025-03-26"
"""The first revision in which a server says that it completes arguments."""


class _Completing(msgspec.Struct):
    completions: msgspec.Raw = NO_META


class _Paged(msgspec.Struct):
    cursor: str | None = None


_completing = msgspec.json.Decoder(_Completing)
Handler = Callable[[Client, msgspec.Raw], Awaitable[bytes]]


class Gateway:
    """Implements `supervisor.service.port.Service`.

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
        self._visible = Visible(catalogue, statuses)
        self._deployment = deployment
        self._bench = bench = Workbench()
        forward = Forwarder(router, deployment, bench)
        lookup = Lookup(self._visible, Arrival(router, self._visible, clock), forward)
        tools = ToolCalls(forward, lookup, bench, used)
        self._reading = reading = Reading(forward, lookup, bench)
        self.introduction = Introduction(self._visible, deployment)
        self._calls = MetaCalls(self._visible, tools, reading, bench, self.introduction, deployment)
        self._info = {"name": "mcpvisor", "title": "mcpvisor", "version": version}
        self._meta = b'"_meta":' + encode({META_SERVER_INFO: self._info})
        self._definitions = encode({"tools": definitions.DEFINITIONS})
        self._methods: dict[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._reading.read,
            "prompts/list": self._list_prompts,
            "prompts/get": self._reading.get_prompt,
            "completion/complete": self._reading.complete,
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

    def initialize(self, version: str, principal: Principal) -> bytes:
        """Return an `initialize` result."""
        return encode(
            {
                "protocolVersion": version,
                "capabilities": self._capabilities(version, principal),
                "serverInfo": self._info,
                "instructions": self.introduction.text(principal),
            }
        )

    def _capabilities(self, version: str, principal: Principal) -> dict[str, Any]:
        """Return what is here for a client of `version`: what some server offers, and we pass on. No `logging` yet."""
        told = {"listChanged": self._deployment.value.settings.notify_catalogue_changes}
        lists: dict[str, Any] = {"tools": told, "resources": told, "prompts": told}
        entries = self._visible.now(principal).entries.values()
        if version < COMPLETIONS_SINCE or not any(_completes(entry.offer.capabilities) for entry in entries):
            return lists
        return {**lists, "completions": {}}

    async def perform(self, client: Client, method: str, params: msgspec.Raw) -> bytes:
        """Perform one request; see `Service.perform`. Each is a task of its own, which is all the fairness it needs."""
        await trio.lowlevel.checkpoint_if_cancelled()
        handler = self._methods.get(method)
        modern = client.era == "modern"
        if handler is None or (method == "ping" and modern) or (method == "server/discover" and not modern):
            raise UnknownMethod(f"there is no method {method[:100]!r} here, in protocol version {client.version}")
        return await handler(client, params)

    # Lists ----------------------------------------------------------------------------------------------------------

    async def _ping(self, client: Client, params: msgspec.Raw) -> bytes:
        del client, params
        return b"{}"

    async def _discover_server(self, client: Client, params: msgspec.Raw) -> bytes:
        del params
        capabilities = self._capabilities(client.version, client.principal)
        said = self.introduction.text(client.principal)
        found = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities, "instructions": said}
        return self._own(client, encode(found), cacheable=True)

    async def _list_tools(self, client: Client, params: msgspec.Raw) -> bytes:
        self._first_page_only(params)
        return self._own(client, self._definitions, cacheable=True)

    def _first_page_only(self, params: msgspec.Raw) -> None:
        if _cursor(params) is not None:
            raise InvalidArguments("'cursor' is not one that this list gave")

    async def _call_tool(self, client: Client, params: msgspec.Raw) -> bytes:
        found = await self._calls.perform(client, params)
        return found.body if found.relayed else self._own(client, found.body)

    async def _list_resources(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "resources", "resources", params)

    async def _list_templates(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "templates", "resourceTemplates", params)

    async def _list_prompts(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "prompts", "prompts", params)

    async def _listed(self, client: Client, kind: Listed, member: str, params: msgspec.Raw) -> bytes:
        seen = await self._visible.indexed(client)
        body = await self._bench.run(native_lists.weight(seen, kind), _page, seen, kind, member, _cursor(params))
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


def _completes(capabilities: msgspec.Raw) -> bool:
    """Whether a server declares that it completes arguments, whatever the value (`{}` counts, `null` does not)."""
    try:
        return bytes(_completing.decode(capabilities).completions) not in (b"", b"null")
    except (msgspec.MsgspecError, RecursionError):
        return False


def _cursor(params: msgspec.Raw) -> str | None:
    """Return the cursor of a list's params; an empty string is one, too (2025-11-25 server/utilities/pagination)."""
    if not bytes(params):
        return None
    paged: _Paged = decoded(params, _Paged, "'cursor' must be a string")
    return paged.cursor
