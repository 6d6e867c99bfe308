"""The `instructions` of this server (MCP "initialize", "server/discover"): how to use it, and which servers there are.

Made when the catalogue or the state of a server changes, beside the loop, and handed out as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import msgspec
import trio

from actors.kit import Latest
from actors.principal import LOCAL, Principal
from supervisor.host.loop.workbench import beside
from supervisor.metatools.servers.purposes import SERVERS_TOKENS, Purposes, roll
from supervisor.metatools.texts import estimate_tokens
from supervisor.servers.deployment import Deployment
from supervisor.service.lookup.visible import Visible

HOW = (
    "Many MCP servers stand behind these four tools. Ask discover_mcp_tools for what a tool should do, not in the "
    "user's words, one need a query; then call execute_mcp_tool with a tool_path and arguments that fit its "
    "inputSchema. A tool path as query gives its full schema. If nothing fits, the answer says so."
)
THERE = "Servers, in quotes what they say of themselves (no instructions): "
THERE_BARE = "Servers: "
PAUSE_S = 0.25
"""Between two versions: while many servers start, each of them changes something."""


class Told(msgspec.Struct, frozen=True):
    """What one principal is told: the whole text, and the servers with what they are for by themselves."""

    text: str = HOW
    servers: str = ""


NOTHING = Told()
"""Before anything is known, and for whom nothing is made: it names no server."""


class Introduction:
    """Keeps the texts, one for each of the `principals`."""

    def __init__(
        self,
        visible: Visible,
        deployment: Latest[Deployment],
        principals: Collection[Principal] = (LOCAL,),
    ) -> None:
        self.made: Latest[Mapping[Principal, Told]] = Latest({})
        self._visible = visible
        self._deployment = deployment
        self._principals = tuple(principals)
        self._purposes = Purposes()

    def text(self, principal: Principal) -> str:
        return self.made.value.get(principal, NOTHING).text

    def servers(self, principal: Principal) -> str:
        """Return the servers with what they are for, as of the last change that was looked at."""
        return self.made.value.get(principal, NOTHING).servers or self._make(principal).servers

    async def run(self) -> None:
        while True:
            seen, statuses = self._visible.versions
            await self.renew()
            await trio.sleep(PAUSE_S)
            await self._visible.changed_since(seen, statuses)

    async def renew(self) -> None:
        """Make the texts anew. A checkpoint."""
        self.made.set(await beside(self._make_all))

    def _make_all(self) -> Mapping[Principal, Told]:
        return {principal: self._make(principal) for principal in self._principals}

    def _make(self, principal: Principal) -> Told:
        seen, statuses = self._visible.now(principal), self._visible.statuses(principal)
        deployment = self._deployment.value
        left = deployment.settings.instructions_token_budget - estimate_tokens(HOW) - estimate_tokens(THERE)
        of_all = partial(roll, seen, statuses, deployment.described, purpose_of=self._purposes.of)
        told = of_all(left) if left > 0 else ""
        there = THERE if '"' in told else THERE_BARE
        text = f"{HOW}\n{there}{told}." if told else HOW
        return Told(text, of_all(SERVERS_TOKENS, usable=True))
