"""The door of all servers at once: what each of them offers, under names of ours that mean exactly one thing.

Definitions are the servers' own; a name is changed, and `_meta` says whose it is. Calls, results and errors pass as at
the door of one server.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
import trio

from actors.catalogue.snapshot import Catalogue
from actors.principal import Principal
from actors.protocol.tasks import OF_ONE
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.failures import run_shown
from supervisor.service.client import Client
from supervisor.service.doors import task_requests
from supervisor.service.doors.naming import CurrentNames
from supervisor.service.doors.task_requests import request_of
from supervisor.service.gateway import Define, Handler, ManyServers, ServiceParts
from supervisor.service.introduction import SelfDescription, Told
from supervisor.service.request import MAX_NAME_CHARS, named_params, parts_from
from supervisor.service.resources import Reading
from supervisor.usage.records import UNKNOWN

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

    def __init__(self, parts: ServiceParts, version: str, told: Callable[[], Told]) -> None:
        self._names = CurrentNames(parts)
        said = partial(SelfDescription, parts.visible, version, WHAT, lambda: introduce(told()), self._tells)
        how = said(parts.has_events, passes=True)
        methods: dict[str, Handler] = {
            **Reading(parts.visible, parts.forward, parts.bench, self._names, transparent=True).methods,
            "tools/call": self._call,
            **dict.fromkeys(OF_ONE, partial(task_requests.perform, parts)),
        }
        super().__init__(parts, how, self._names, methods)

    async def mirrors_of(self, principal: Principal, tool: str) -> tuple[Mirror, ...]:
        seen = self.parts.visible.now(principal)
        server, own = (await self._names.of(seen)).tools.meaning_of(tool) or ("", "")
        entry = seen.entries.get(server)
        known = entry.tools.get(own) if entry is not None else None
        return known.mirrors if known is not None else ()

    async def _view(self, client: Client) -> tuple[Catalogue, Define]:
        wait_s = self.parts.deployment.value.settings.first_discovery_wait_s
        seen = await self.parts.visible.wait_for_discovery(client, wait_s)
        return seen, partial((await self._names.of(seen)).definition_of, client.version)

    async def _call(self, exchange: Exchange) -> bytes:
        pending = PendingCall(exchange, UNKNOWN)
        call = self.parts.calls.count(exchange, pending, self._call_tool(exchange, pending))
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
