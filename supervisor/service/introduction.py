"""What we say of ourselves to clients: the answers to "initialize" and "server/discover", `instructions` among them.

Instructions say how to use this server, and which servers there are. They are made when the catalogue or the state of a
server changes, beside the loop, and handed out as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

import msgspec
import trio

from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.protocol import tasks
from actors.protocol.agreement.capabilities import EVENTS, SKETCHED
from actors.protocol.agreement.versions import META_SERVER_INFO, MODERN_VERSIONS, Era
from actors.protocol.changes import subscribable
from actors.protocol.listing import SKILLS, capability_names
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.host.workbench import beside
from supervisor.metatools.servers import SERVERS_TOKENS, Purposes, list_names, roll
from supervisor.metatools.texts import estimate_tokens
from supervisor.servers.deployment import Deployment
from supervisor.service.client import Client
from supervisor.service.fitting.relay import with_member
from supervisor.service.lookup.visible import Visible, end_when_changed

FINDS = "Finds and runs tools of many MCP servers"
"""What the door of the meta-tools is for. The names of the servers follow: a client that holds tools back shows its
model no more than that of the text (Codex 250 characters), and the model has to see that what it needs is here."""
_HOW = (
    "Ask discover_mcp_tools for what a tool should do, not in the user's words, one need a query; then call {execute} "
    "with a tool_path and arguments that fit its inputSchema. If nothing fits, the answer says so."
)
HOW = _HOW.format(execute="execute_mcp_tool")
HOW_BY_EFFECT = _HOW.format(execute="execute_read_only_mcp_tool if its row says read_only, else execute_mcp_tool,")
NAMES_TOKENS = 40
"""For names of servers alone: they are in the first 250 characters then."""
THERE = "Servers, in quotes what they say of themselves (no instructions): "
PAUSE_S = 0.25
"""Between two versions: while many servers start, each of them changes something."""


class Told(msgspec.Struct, frozen=True):
    """What clients of one view are told: the whole text, and by themselves the servers, and their names alone.

    Before anything is known it names no server.
    """

    text: str
    servers: str = ""
    names: str = ""


class Introduction:
    """Keeps the text for the clients of one view, which says `how` the tools there are used."""

    def __init__(self, visible: Visible, deployment: Latest[Deployment], how: str = HOW) -> None:
        self._how = how
        self._nothing = Told(f"{FINDS}. {how}")
        self.made: Latest[Told] = Latest(self._nothing)
        self._visible = visible
        self._deployment = deployment
        self._purposes = Purposes()
        self._others: WeakSet[Introduction] = WeakSet()
        self.others_changed: Latest[int] = Latest(0)
        """Told whenever those of whom the others speak see something else: that may be later than anybody else."""
        self._made_of: tuple[Catalogue, Mapping[str, ServerStatus], Deployment] | None = None
        self._making = trio.Lock()  # one at a time: what was begun before may be done after what is newer

    def text(self) -> str:
        return self.made.value.text

    def servers(self) -> str:
        """Return the servers with what they are for, as of the last change that was looked at."""
        return self.told().servers

    def told(self) -> Told:
        """Return what there is to tell, as of the last change that was looked at."""
        return self.made.value if self.made.value.servers else self._make(*self._view())

    async def run(self) -> None:
        while True:
            versions, configured = self._visible.versions, self._deployment.version
            others = self.others_changed.version
            await self.renew()
            await trio.sleep(PAUSE_S)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(end_when_changed, self._deployment, configured, nursery.cancel_scope)
                nursery.start_soon(end_when_changed, self.others_changed, others, nursery.cancel_scope)
                await self._visible.changed_since(*versions)
                nursery.cancel_scope.cancel()

    async def renew(self) -> None:
        """Make the texts anew, and those of all others that are kept up to date with these, where they may differ."""
        for each in (self, *self._others):
            await trio.lowlevel.checkpoint()  # there are as many as people
            await each._renew()

    async def _renew(self) -> None:
        async with self._making:
            made_of = *self._view(), self._deployment.value
            if not self._is_made_of(*made_of):
                self.made.set(await beside(partial(self._make, *made_of[:2])))
                self._made_of = made_of

    def _is_made_of(self, seen: Catalogue, statuses: Mapping[str, ServerStatus], deployment: Deployment) -> bool:
        before = self._made_of
        return before is not None and before[0] is seen and before[2] is deployment and before[1] == statuses

    def include(self, other: Introduction) -> None:
        """Keep the texts of another one up to date, too, as long as anybody holds it."""
        self._others.add(other)

    async def prepare(self) -> None:
        """Have there be texts, which takes long with many tools. A checkpoint the first time."""
        if self.made.value is self._nothing:
            await self._renew()

    def _view(self) -> tuple[Catalogue, Mapping[str, ServerStatus]]:
        return self._visible.catalogue, self._visible.statuses

    def _make(self, seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> Told:
        deployment = self._deployment.value
        self._purposes.keep(seen.entries)
        names = list_names(sorted(seen.visible), NAMES_TOKENS)
        ours = sum(map(estimate_tokens, (FINDS, names, self._how, THERE)))
        left = deployment.settings.instructions_token_budget - ours
        of_all = partial(roll, seen, statuses, deployment.described, purpose_of=self._purposes.of)
        told = of_all(left) if left > 0 else ""
        servers = of_all(SERVERS_TOKENS, usable=True)
        text = self._nothing.text
        if '"' in told:
            text = f"{FINDS}{': ' if names else ''}{names}. {self._how}\n{THERE}{told}."
        elif told:  # names alone, all of which stand in front
            text = f"{FINDS}: {told}. {self._how}"
        return Told(text, servers, names)


LIST_TTL_MS = 60_000
DESCRIBED_SINCE = "2025-11-25"
"""The first revision in which a server has a description of itself beside its title."""
PASSED_ON = {"completions": "2025-03-26", "logging": "2024-11-05"}
"""What servers do that a client is told of if one of them does, since the revision that has a word for it."""


class SelfDescription:
    """Makes the answers to `initialize` and `server/discover`.

    `description` says in a line what the door is for, `instructions` are what clients are told; `told` says whether
    they are told of changed lists, `has_events` whether somebody sees any event type. `passes`: tasks get through,
    where servers have them.
    """

    def __init__(
        self,
        visible: Visible,
        version: str,
        description: str,
        instructions: Callable[[], str],
        told: Callable[[], bool],
        has_events: Callable[[Principal], bool],
        *,
        passes: bool = False,
    ) -> None:
        self._has_events = has_events
        self._passes = passes
        self._visible = visible
        self._instructions = instructions
        self._told = told
        self._info = {"name": "mcpvisor", "title": "mcpvisor", "version": version}
        self._described = {**self._info, "description": description}
        self._meta = b'"_meta":' + encode({META_SERVER_INFO: self._described})

    def answer(self, client: Client, method: str) -> bytes | None:
        """Return the answer to what is asked of us alone; None for any other method."""
        capabilities = partial(self._capabilities, client.version, client.principal)
        match method:
            case "initialize":
                return encode(
                    {
                        "protocolVersion": client.version,
                        "capabilities": capabilities(),
                        "serverInfo": self._info if client.version < DESCRIBED_SINCE else self._described,
                        "instructions": self._instructions(),
                    }
                )
            case "server/discover":
                said = self._instructions()
                body = {"supportedVersions": MODERN_VERSIONS, "capabilities": capabilities(), "instructions": said}
                return self.fit(client, encode(body), cacheable=True)
            case "ping":
                return b"{}"
        return None

    def fit(self, client: Client, body: bytes, *, cacheable: bool = False) -> bytes:
        if client.era == "legacy":
            return body
        if cacheable:
            body = with_member(body, b'"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS)
        return with_member(body, b'"resultType":"complete",' + self._meta)

    def _capabilities(self, version: str, principal: Principal) -> dict[str, Any]:
        told = {"listChanged": self._told()}
        lists: dict[str, Any] = {"tools": told, "resources": told, "prompts": told}
        entries = self._visible.catalogue.entries.values()
        if any(subscribable(entry.offer.capabilities) for entry in entries):
            lists["resources"] = {**told, "subscribe": True}
        offered = frozenset[str]().union(*(capability_names(entry.offer.capabilities) for entry in entries))
        as_tasks = self._tasks(version, [entry.offer for entry in entries]) if self._passes else {}
        passed = [name for name, since in PASSED_ON.items() if name in offered and version >= since]
        extensions = {**as_tasks.pop("extensions", {}), **self._skills([entry.offer for entry in entries])}
        of_events: dict[str, Any] = {}
        if self._has_events(principal):
            extensions[EVENTS] = of_events[SKETCHED] = told
        told_of = {"extensions": extensions} if extensions else {}
        return {**lists, **{name: {} for name in passed}, **of_events, **as_tasks, **told_of}

    def _skills(self, offers: Iterable[Offer]) -> dict[str, Any]:
        """Return what clients are told of skills: that there are some, and what all have that offer them."""
        offered = [json.at(each.capabilities, "extensions", SKILLS) for each in offers]
        able = [json.members(each) for each in offered if each]
        reads = all(bytes(each.get("directoryRead", b"")) == b"true" for each in able)
        return {SKILLS: {"directoryRead": True} if reads else {}} if able else {}

    def _tasks(self, version: str, offers: Iterable[Offer]) -> dict[str, Any]:
        """Return what a client of `version` is told of tasks: what all have that work in the way of its era."""
        era: Era = "modern" if version in MODERN_VERSIONS else "legacy"
        able = [each.capabilities for each in offers if each.era == era and tasks.speaks(each.capabilities, era)]
        if not able or version < tasks.SINCE:
            return {}
        if era == "modern":
            return {"extensions": {tasks.EXTENSION: {}}}
        return {"tasks": min((tasks.legacy_capability(each) for each in able), key=len)}
