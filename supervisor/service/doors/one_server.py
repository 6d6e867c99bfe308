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

import re
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
import trio

from actors.catalogue.names import tool_path
from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.codes import FORBIDDEN
from actors.errors import InvalidArguments, SupervisorError, UnknownServer, UnknownTool
from actors.launch import is_own
from actors.principal import LOCAL
from actors.protocol import tasks
from actors.protocol.agreement.capabilities import EVENTS, SKETCHED, events_declared
from actors.protocol.agreement.versions import META_SERVER_INFO, META_SUBSCRIPTION, MODERN_VERSIONS, Era
from actors.protocol.changes import OF_RESOURCES
from actors.protocol.definitions import Unfit
from actors.protocol.listing import CAPABILITIES, LISTED_BY, MEMBERS, Kind, capability_names
from actors.protocol.tasks import OF_ONE
from actors.protocol.tasks import SINCE as TASKS_SINCE
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from supervisor.host.workbench import beside
from supervisor.metatools.inventory import cursor_of
from supervisor.metatools.servers import refusal
from supervisor.metatools.texts import clean
from supervisor.servers.launches.names import LaunchNames
from supervisor.servers.safety import WithheldTool
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.failures import run_shown
from supervisor.service.client import Client
from supervisor.service.doors import task_requests
from supervisor.service.doors.task_requests import request_of
from supervisor.service.fitting.relay import with_lifetime, with_member
from supervisor.service.fitting.tool_definitions import fit, fit_page
from supervisor.service.gateway import ServiceParts
from supervisor.service.lookup.lookup import refuse_left_out
from supervisor.service.lookup.visible import ClientView
from supervisor.service.port import Revisions
from supervisor.service.request import PARAMS_COST, Parts, is_method, parts_of, unknown_method, with_name
from supervisor.service.skills import OF_SKILLS

# A list of one server from what is known of it: the definitions as it gave them, page by page.
#
# A cursor is ours if it begins as no server's does by chance; it says with which entry to go on.

OURS: Final = "mcpvisor:known:"
_OURS: Final = re.compile(rf"{OURS}([0-9]{{1,8}})")
PAGE_SIZE: Final = 500
MAX_BYTES: Final = 512 * 1024
"""A page ends with the entry that exceeds it: some clients take no message of a MiB."""


def position_of(params: msgspec.Raw) -> int | None:
    """Return with which entry a page begins; None if only the server knows, or may say what is wrong."""
    try:
        cursor = cursor_of(params)
    except InvalidArguments:
        return None
    if cursor is None:
        return 0
    ours = _OURS.fullmatch(cursor)
    return int(ours[1]) if ours is not None else None


def is_whole(offer: Offer, kind: Kind) -> bool:
    """Say whether everything that the server listed is known, as it gave it: what was left out is a problem."""
    return not offer.problems and not offer.partial and CAPABILITIES[kind] in capability_names(offer.capabilities)


def weight(offer: Offer, kind: Kind, position: int) -> int:
    """Return about how many bytes a page is made from; no entry is read for that."""
    size = 0
    for entry in islice(getattr(offer, kind), position, position + PAGE_SIZE):
        size += len(entry.definition)
        if size > MAX_BYTES:
            break
    return size


def page(offer: Offer, kind: Kind, position: int, version: str) -> bytes:
    """Return one page of a list for clients of a revision: the JSON text of a result, without what their era adds."""
    entries = getattr(offer, kind)
    parts: list[bytes] = []
    size = 0
    following = position
    for entry in islice(entries, position, position + PAGE_SIZE):
        following += 1
        with suppress(Unfit):
            parts.append(bytes(fit(entry.definition, kind, version)))
            size += len(parts[-1])
        if size > MAX_BYTES:
            break
    more = b',"nextCursor":' + encode(f"{OURS}{following}") if following < len(entries) else b""
    return b'{"' + MEMBERS[kind].encode() + b'":[' + b",".join(parts) + b"]" + more + b"}"


# What a client of one server is told when it connects: what that server answered to us, fitted to the hop.
#
# Everything is as the server wrote it, unknown members included, but for the revision, which is agreed on with the
# client by us, and for capabilities that do not get through us. Where the eras differ the same is said in the other
# form. That a server has events is said in both places where clients look for it.

OWN_TTL_MS: Final = 60_000


def initialize_result(server: str, offer: Offer, version: str) -> bytes:
    said = _own_answer(offer, "legacy") or {"capabilities": b"{}", "serverInfo": b"", **_rest(offer)}
    own = {"protocolVersion": version, "capabilities": capabilities(offer, version), "serverInfo": _info(server, offer)}
    return encode({**said, **own})


def discover_result(server: str, offer: Offer, version: str, *, shared: bool = True) -> bytes:
    """`shared`: see `with_lifetime`."""
    said = _own_answer(offer, "modern")
    if not said:
        said = {**_rest(offer), "_meta": {META_SERVER_INFO: _info(server, offer)}}
    told = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities(offer, version)}
    told |= {} if shared else {"cacheScope": "private"}
    own = {"resultType": "complete", "ttlMs": OWN_TTL_MS, "cacheScope": "private"}
    return encode({**own, **said, **told})


def capabilities(offer: Offer, version: str) -> msgspec.Raw:
    """Return the capabilities of a server for a client of a revision, without what does not get through us.

    Tasks are shown to clients of their own kind only: from 2025-11-25 on, and in the era of the server.
    """
    declared = json.members(offer.capabilities)
    era: Era = "modern" if version in MODERN_VERSIONS else "legacy"
    spoken = offer.era == era and version >= TASKS_SINCE and tasks.speaks(offer.capabilities, era)
    kept = {name: value for name, value in declared.items() if name != "tasks"}
    if spoken and era == "legacy":
        kept["tasks"] = msgspec.Raw(encode(tasks.legacy_capability(offer.capabilities)))
    inner = json.members(kept.get("extensions"))
    if tasks.EXTENSION in inner and not (spoken and era == "modern"):
        del inner[tasks.EXTENSION]
        kept["extensions"] = msgspec.Raw(encode(inner))
    if events := events_declared(kept):
        kept |= {SKETCHED: events, "extensions": msgspec.Raw(encode({**inner, EVENTS: events}))}
    return offer.capabilities if kept == declared and declared else msgspec.Raw(encode(kept))


def _own_answer(offer: Offer, era: Era) -> dict[str, Any]:
    """Return what the server answered to us, if that was in this era; empty if not, or if it is not known any more."""
    said = json.members(offer.answer) if offer.era == era else {}
    return {name: value for name, value in said.items() if bytes(value) != b"null"}


def _rest(offer: Offer) -> dict[str, Any]:
    """Return what an answer of the other era has to say beside capabilities and names."""
    instructions = json.text_at(offer.answer, "instructions") or offer.instructions
    return {"instructions": instructions} if instructions else {}


def _info(server: str, offer: Offer) -> Any:
    """Return who the server says it is; name and version are required by the schema."""
    info = json.members(offer.server_info)
    given = {"name": server, "version": offer.version or "0"}
    return offer.server_info if given.keys() <= info.keys() else {**given, **info}


# Events of a server that are sent to an address (SEP-3415, "Webhook-Based Delivery"): who may ask for that.
#
# A server tells such subscriptions apart by who subscribed, and all whom the daemon serves with one login are one to
# it: each of them could end what another has subscribed to, or give it another secret. So only who has the login of a
# server to themselves, or where there are no users, is told of it, and may ask for it.

LIST: Final = "events/list"
WEBHOOKS: Final = frozenset({"events/subscribe", "events/unsubscribe"})
MODE: Final = "webhook"
_texts: Final = msgspec.json.Decoder(list[str])


class LoginShared(SupervisorError, code=FORBIDDEN, kind="forbidden"):
    """Events of the server are sent to no address here, as others use the server by the same login: it could not tell
    whose subscription is whose."""


def shares_login(launches: LaunchNames, server: str, client: Client) -> bool:
    """Say whether others whom a client must not disturb are the same as it to a server."""
    return client.principal != LOCAL and not is_own(launches.of(server, client.principal))


def webhook_refusal(server: str) -> LoginShared:
    text = f"server {server!r} is used by others by the same login, so its events are sent to no address"
    return LoginShared(f"{text}; poll or stream them", details={"reason": "shared_login"})


def without_webhooks(body: bytes) -> bytes:
    """Return the result of `events/list` without this way of delivery; a type that has no other is left out."""
    entries = json.read_or(json.ELEMENTS, json.at(body, "events"), None)
    if entries is None:
        return body
    return encode({**json.members(body), "events": [kept for each in entries if (kept := _without(each)) is not None]})


def _without(entry: msgspec.Raw) -> msgspec.Raw | None:
    modes = json.read_or(_texts, json.at(entry, "delivery"), [])
    if MODE not in modes:
        return entry
    left = [mode for mode in modes if mode != MODE]
    return msgspec.Raw(encode({**json.members(entry), "delivery": left})) if left else None


CACHED: Final = frozenset({*LISTED_BY, "resources/read", *OF_SKILLS})
"""Methods whose results say in the modern era for how long they hold (MCP 2026-07-28, server/utilities/caching)."""
NOT_PASSED: Final = frozenset({"logging/setLevel", "tasks/list", *OF_RESOURCES})
"""What needs more than one request and its answer: a session of the client, with which the server has none. Tasks of
all clients would be among those that are listed."""


class OneServer:
    """Implements `supervisor.service.port.Service` for one configured server."""

    def __init__(self, server: str, parts: ServiceParts, view: ClientView) -> None:
        self.changes = view.visible.changes
        self._server = server
        self._parts = parts
        self._view = view
        self._visible = view.visible
        self._calls = parts.counter(view)

    @property
    def revisions(self) -> Revisions:
        entry = self._visible.catalogue.entries.get(self._server)
        return Revisions() if entry is None else entry.revisions

    async def perform(self, exchange: Exchange) -> bytes:
        client, method = exchange.client, exchange.method
        match method:
            case "initialize":
                return initialize_result(self._server, (await self._entry(client)).offer, client.version)
            case "server/discover":
                offer, shared = (await self._entry(client)).offer, client.principal == LOCAL
                return discover_result(self._server, offer, client.version, shared=shared)
            case "ping":
                return b"{}"
            case "resources/subscribe" | "resources/unsubscribe":
                return await self._parts.subscriptions.perform(exchange, self.subscribe)
            case _ if method in WEBHOOKS and self._shares_login(client):
                raise webhook_refusal(self._server)
            case _ if method in OF_ONE:
                return await task_requests.perform(self._parts, exchange, self._server)
        if method in NOT_PASSED or method.startswith(("notifications/", "subscriptions/")) or not is_method(method):
            raise unknown_method(exchange)
        known = await self._known_page(exchange) if method in LISTED_BY else None
        return await self._passed_on(exchange) if known is None else known

    async def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        entry = self._visible.catalogue.entries.get(self._server)
        known = entry.tools.get(tool) if entry is not None else None
        return known.mirrors if known is not None else ()

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        offer = (await self._entry(exchange.client)).offer
        await self._parts.subscriptions.add(exchange, name, self._server, name, offer)

    async def _entry(self, client: Client) -> Entry:
        """Return what the server offers, or did before it slept. Raises `ServerError` if it cannot come up."""
        refused = refusal(self._server, self._visible.statuses.get(self._server))
        if refused is not None:
            raise refused
        seen = self._visible.catalogue
        entry = seen.entries.get(self._server)
        if entry is None and self._server not in seen.names:
            raise UnknownServer(f"there is nothing of server {self._server!r} here", server=self._server)
        if entry is None:
            by = trio.current_time() + self._parts.forward.timeout_s(self._server)
            await self._view.arrival.of(self._server, client.principal, by)
            return await self._entry(client)
        return entry

    def _shares_login(self, client: Client) -> bool:
        return shares_login(self._parts.launches, self._server, client)

    async def _known_page(self, exchange: Exchange) -> bytes | None:
        """Return a page of a list from what is known; None if the server has to be asked."""
        kind, client = LISTED_BY[exchange.method], exchange.client
        entry = await self._entry(client)
        offer, ours = entry.offer, kind == "tools" and entry.is_altered
        position = position_of(exchange.params)
        if position is None and ours:
            raise InvalidArguments("'cursor' is not one that this list gave")
        if position is None:
            return None
        # What the server itself would list, but must not: what cannot be called, or seen, and pages without end.
        if not (ours or (kind == "tools" and offer.barred) or kind in offer.circular):
            if position == 0 and self._visible.is_awake(self._server):
                return None
            if not is_whole(entry.own, kind):
                return None
        cost = weight(offer, kind, position)
        body = await self._parts.bench.run(cost, page, offer, kind, position, client.version)
        if client.era == "legacy":
            return body
        return with_member(body, b'"resultType":"complete","ttlMs":%d,"cacheScope":"private"' % OWN_TTL_MS)

    async def _passed_on(self, exchange: Exchange) -> bytes:
        if exchange.method == "tools/call":
            pending = PendingCall(exchange, self._server)
            call = self._calls.count(exchange, pending, self._call(exchange, pending))
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
        known = self._visible.catalogue.entries.get(self._server)
        if known is not None and (tool := known.tools.get(parts.name)) is not None:
            pending.find(self._server, tool)  # before its server is waited for: it may be in vain
        entry = await self._entry(client)
        refused = refuse_left_out(entry, parts.name)
        if refused is not None:
            raise refused
        tool = entry.tools.get(parts.name)
        if tool is None and entry.is_altered:
            raise await beside(partial(_unknown_tool, self._visible.catalogue, entry, parts.name))
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
        if method == LIST and self._shares_login(client):
            body = await self._parts.bench.run(len(body), without_webhooks, body)
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
