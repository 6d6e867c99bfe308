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

from actors.catalogue.resolution import MAX_PATH_CHARS, Unknown, bounded
from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments, UnknownMethod
from actors.kit import Address, Latest
from actors.messages import ServerStatus
from actors.protocol.jsonrpc import encode
from actors.protocol.versions import META_SERVER_INFO, MODERN_VERSIONS
from actors.router import Message as RouterMessage
from actors.search.text import squash
from supervisor import definitions, listings, metatools
from supervisor.discovery import DiscoverySettings, Searched, answered, cut, searched, weight
from supervisor.forward import Forwarder
from supervisor.front.service import Client, Revisions
from supervisor.listings import Listed
from supervisor.loose import EMPTY
from supervisor.reading import NO_META, Reading, decoded
from supervisor.relay import with_member
from supervisor.service.arrival import Arrival
from supervisor.service.lookup import Lookup
from supervisor.toolcalls import ToolCalls, Used
from supervisor.visible import Visible
from supervisor.workbench import SMALL_BYTES, Workbench, is_small

INSTRUCTIONS = (
    "Many MCP servers stand behind these four tools. Call discover_mcp_tools with what you want to do, "
    "then execute_mcp_tool with a tool_path and arguments that fit its inputSchema."
)
LIST_TTL_MS = 60_000
ENVELOPE_COST = 16
"""So many bytes of an envelope cost as much as one that a model wrote: they are passed over."""
SEARCH_COST = 8
"""A character of a query costs as much as so many bytes that a model wrote."""
SEARCHES_AT_ONCE, MAX_SEARCHES_WAITING = 2, 256
"""Of searches by meaning: most of one is arithmetic in C, on one processor."""
PAGE_COST = 8
"""So many bytes of definitions cost as much as a byte that a model wrote."""
COMPLETIONS_SINCE = "2025-03-26"
"""The first revision in which a server says that it completes arguments."""
_OWN = {squash(name): name for name in definitions.SCHEMAS}
"""The meta-tools in any spelling: `discover-mcp-tools`, `executeMcpTool`."""


class GatewaySettings(DiscoverySettings, frozen=True, kw_only=True):
    """What a deployment may change: seconds, and what discovering is bounded by."""

    call_timeout_s: float = 60.0
    first_discovery_wait_s: float = 3.0
    notify_catalogue_changes: bool = True


class _Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = EMPTY
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


class _Completing(msgspec.Struct):
    completions: msgspec.Raw = NO_META


class _Paged(msgspec.Struct):
    cursor: str | None = None


_call = msgspec.json.Decoder(_Call)
_completing = msgspec.json.Decoder(_Completing)
Handler = Callable[[Client, msgspec.Raw], Awaitable[bytes]]


class Gateway:
    """Implements `supervisor.front.service.Service`.

    `used` is told of each call that ended; `clock` gives unix time in seconds.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        settings: GatewaySettings,
        *,
        version: str,
        used: Used,
        deadlines: Mapping[str, float] | None = None,
        masks: Mapping[str, Callable[[str], str]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.changes: Latest[Any] = catalogue
        self._catalogue = catalogue
        self._visible = Visible(catalogue, statuses)
        self._settings = settings
        self._bench = bench = Workbench()
        self._searches = Workbench(MAX_SEARCHES_WAITING, SEARCHES_AT_ONCE)
        forward = Forwarder(router, settings.call_timeout_s, deadlines or {}, masks or {}, bench)
        lookup = Lookup(self._visible, Arrival(router, self._visible, clock), forward)
        self._tools = ToolCalls(forward, lookup, bench, used)
        self._reading = Reading(forward, lookup, bench)
        told = {"listChanged": settings.notify_catalogue_changes}
        self._lists: dict[str, Any] = {"tools": told, "resources": told, "prompts": told}
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

    def revisions(self, principal: str) -> Revisions:
        """Return what `principal` sees now; constant if the operator switched these notifications off."""
        if not self._settings.notify_catalogue_changes:
            return Revisions()
        seen = self._visible.now(principal)
        return Revisions(tools=seen.tools_revision, resources=seen.resources_revision, prompts=seen.prompts_revision)

    def initialize(self, version: str) -> bytes:
        """Return an `initialize` result."""
        return encode(
            {
                "protocolVersion": version,
                "capabilities": self._capabilities(version),
                "serverInfo": self._info,
                "instructions": INSTRUCTIONS,
            }
        )

    def _capabilities(self, version: str) -> dict[str, Any]:
        """Return what is here for a client of `version`: what some server offers, and we pass on. No `logging` yet."""
        entries = self._catalogue.value.entries.values()
        if version < COMPLETIONS_SINCE or not any(_completes(entry.offer.capabilities) for entry in entries):
            return self._lists
        return {**self._lists, "completions": {}}

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
        capabilities = self._capabilities(client.version)
        found = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities, "instructions": INSTRUCTIONS}
        return self._own(client, encode(found), cacheable=True)

    async def _list_tools(self, client: Client, params: msgspec.Raw) -> bytes:
        self._first_page_only(params)
        return self._own(client, self._definitions, cacheable=True)

    def _first_page_only(self, params: msgspec.Raw) -> None:
        if _cursor(params) is not None:
            raise InvalidArguments("'cursor' is not one that this list gave")

    async def _list_resources(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "resources", "resources", params)

    async def _list_templates(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "templates", "resourceTemplates", params)

    async def _list_prompts(self, client: Client, params: msgspec.Raw) -> bytes:
        return await self._listed(client, "prompts", "prompts", params)

    async def _listed(self, client: Client, kind: Listed, member: str, params: msgspec.Raw) -> bytes:
        seen = await self._visible.indexed(client)
        body = await self._bench.run(listings.weight(seen, kind), _page, seen, kind, member, _cursor(params))
        return self._own(client, body, cacheable=True)

    def _own(self, client: Client, body: bytes, *, cacheable: bool = False) -> bytes:
        """Return a result that we made, with the members its era wants."""
        if client.era == "legacy":
            return body
        if cacheable:
            body = with_member(body, b'"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS)
        return with_member(body, b'"resultType":"complete",' + self._meta)

    # Tools ----------------------------------------------------------------------------------------------------------

    async def _call_tool(self, client: Client, params: msgspec.Raw) -> bytes:
        try:
            cost = len(params) // ENVELOPE_COST
            call = _call.decode(params) if is_small(cost) else await self._bench.run(cost, _call.decode, params)
        except (msgspec.MsgspecError, RecursionError):
            text = "tools/call: params need a 'name' and may have 'arguments'"
            raise InvalidArguments(text, details={"tools": list(definitions.SCHEMAS)}) from None
        match self._own_name(client, call.name):
            case definitions.EXECUTE:
                given, cost = call.arguments, len(call.arguments)
                wanted = (
                    metatools.execute(given)
                    if is_small(cost)
                    else await self._bench.run(cost, metatools.execute, given)
                )
                return await self._tools.call(client, wanted, call.meta)
            case definitions.DISCOVER:
                return self._own(client, await self._discover(client, call.arguments))
            case definitions.LIST_RESOURCES:
                return self._own(client, await self._list_for_model(client))
            case definitions.READ_RESOURCE:
                return self._own(client, await self._reading.for_model(client, call.arguments, call.meta))
        direct = metatools.Execute(tool_path=bounded(call.name), arguments=call.arguments)
        return await self._tools.call(client, direct, call.meta)

    def _own_name(self, client: Client, name: str) -> str:
        """Return the meta-tool that a name is a spelling of, unless it names a server: then it is no other's."""
        own = _OWN.get(squash(name[:MAX_PATH_CHARS]), name)
        meant = own == name or isinstance(self._visible.now(client.principal).tool(name), Unknown)
        return own if meant else name

    async def _discover(self, client: Client, arguments: msgspec.Raw) -> bytes:
        settings = self._settings
        most = settings.discover_limit_max
        wanted = cut(await self._bench.run(len(arguments), metatools.discover, arguments, most), settings)
        await self._visible.indexed(client)
        seen = await self._visible.discovered(client, settings.first_discovery_wait_s)
        done = await self._searched(seen, wanted)
        found = await self._bench.run(
            weight(seen, done) // PAGE_COST, answered, seen, self._visible.statuses, done, settings
        )
        return _content(found)

    async def _searched(self, seen: Catalogue, wanted: metatools.Discover) -> Searched:
        """Search; never on the loop where a query is embedded first."""
        cost = SEARCH_COST * len(wanted.query)
        if seen.index.embedder is None:
            return await self._bench.run(cost, searched, seen, wanted, time.perf_counter)
        return await self._searches.run(cost + SMALL_BYTES + 1, searched, seen, wanted, time.perf_counter)

    async def _list_for_model(self, client: Client) -> bytes:
        seen = await self._visible.indexed(client)
        heavy = listings.weight(seen, "resources", "templates")
        return await self._bench.run(heavy, lambda: _content(listings.resources(seen)))


def _page(seen: Catalogue, kind: Listed, member: str, cursor: str | None) -> bytes:
    page, following = listings.native_page(seen, kind, cursor)
    return encode({member: page} if following is None else {member: page, "nextCursor": following})


def _completes(capabilities: msgspec.Raw) -> bool:
    """Whether a server declares that it completes arguments, whatever the value (`{}` counts, `null` does not)."""
    try:
        return bytes(_completing.decode(capabilities).completions) not in (b"", b"null")
    except (msgspec.MsgspecError, RecursionError):
        return False


def _content(answer: dict[str, Any]) -> bytes:
    """Return a tool result that carries an object as text and as structured content."""
    body = encode(answer)
    return b'{"content":[{"type":"text","text":' + encode(body.decode()) + b'}],"structuredContent":' + body + b"}"


def _cursor(params: msgspec.Raw) -> str | None:
    """Return the cursor of a list's params; an empty string is one, too (2025-11-25 server/utilities/pagination)."""
    if not bytes(params):
        return None
    paged: _Paged = decoded(params, _Paged, "'cursor' must be a string")
    return paged.cursor
