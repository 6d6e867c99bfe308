"""What we say of ourselves at a door that is not a server's, and how our own results are fitted to an era."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from actors.catalogue.offer import Offer
from actors.principal import Principal
from actors.protocol.agreement.versions import META_SERVER_INFO, MODERN_VERSIONS, Era
from actors.protocol.changes import subscribable
from actors.protocol.listing import capability_names
from actors.protocol.tasks import tasks
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.client import Client
from supervisor.service.fitting.relay import with_member
from supervisor.service.lookup.visible import Visible

LIST_TTL_MS = 60_000
PASSED_ON = {"completions": "2025-03-26", "logging": "2024-11-05"}
"""What servers do that a client is told of if one of them does, since the revision that has a word for it."""


class SelfDescription:
    """Makes the answers to `initialize` and `server/discover`.

    `instructions` are what a principal is told; `told` says whether it is told of changed lists. `passes`: what needs
    more than a call gets through: changes of resources, and tasks, where servers have them.
    """

    def __init__(
        self,
        visible: Visible,
        version: str,
        instructions: Callable[[Principal], str],
        told: Callable[[], bool],
        *,
        passes: bool = False,
    ) -> None:
        self._passes = passes
        self._visible = visible
        self._instructions = instructions
        self._told = told
        self._info = {"name": "mcpvisor", "title": "mcpvisor", "version": version}
        self._meta = b'"_meta":' + encode({META_SERVER_INFO: self._info})

    def answer(self, client: Client, method: str) -> bytes | None:
        """Return the answer to what is asked of us alone; None for any other method."""
        capabilities = partial(self._capabilities, client.version, client.principal)
        match method:
            case "initialize":
                return encode(
                    {
                        "protocolVersion": client.version,
                        "capabilities": capabilities(),
                        "serverInfo": self._info,
                        "instructions": self._instructions(client.principal),
                    }
                )
            case "server/discover":
                said = self._instructions(client.principal)
                body = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities(), "instructions": said}
                return self.fit(client, encode(body), cacheable=True)
            case "ping":
                return b"{}"
        return None

    def fit(self, client: Client, body: bytes, *, cacheable: bool = False) -> bytes:
        """Return a result that we made, with the members its era wants."""
        if client.era == "legacy":
            return body
        if cacheable:
            body = with_member(body, b'"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS)
        return with_member(body, b'"resultType":"complete",' + self._meta)

    def _capabilities(self, version: str, principal: Principal) -> dict[str, Any]:
        """Return what is here for a client of `version`: what some server offers, and we pass on."""
        told = {"listChanged": self._told()}
        lists: dict[str, Any] = {"tools": told, "resources": told, "prompts": told}
        entries = self._visible.now(principal).entries.values()
        if self._passes and any(subscribable(entry.offer.capabilities) for entry in entries):
            lists["resources"] = {**told, "subscribe": True}
        offered = frozenset[str]().union(*(capability_names(entry.offer.capabilities) for entry in entries))
        as_tasks = self._tasks(version, [entry.offer for entry in entries]) if self._passes else {}
        passed = [name for name, since in PASSED_ON.items() if name in offered and version >= since]
        return {**lists, **{name: {} for name in passed}, **as_tasks}

    def _tasks(self, version: str, offers: Iterable[Offer]) -> dict[str, Any]:
        """Return what a client of `version` is told of tasks: what all have that work in the way of its era."""
        era: Era = "modern" if version in MODERN_VERSIONS else "legacy"
        able = [each.capabilities for each in offers if each.era == era and tasks.speaks(each.capabilities, era)]
        if not able or version < tasks.SINCE:
            return {}
        if era == "modern":
            return {"extensions": {tasks.EXTENSION: {}}}
        return {"tasks": min((tasks.legacy_capability(each) for each in able), key=len)}
