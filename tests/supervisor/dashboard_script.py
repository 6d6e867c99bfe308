"""A daemon with three servers, and a script of calls of two users, of which each is known before it is made."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from actors.transport.base import Transport
from actors.transport.stdio.containment import default_containment
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.reach import transport_of
from tests.e2e.daemons import stand_in
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.scenario.daemon import World, world

IDENTITY: Final[dict[str, Any]] = {
    "users": {"ana": {"role": "admin"}, "ben": {}},
    "teams": {"core": {"members": ["ana", "ben"]}},
}
TIMEOUT_S: Final = 0.3
SERVERS: Final[dict[str, Any]] = {
    "desk": {"command": "x", "call_timeout_s": TIMEOUT_S},
    "shop": {"command": "x", "ask": "everyone"},
    "stand": stand_in("growing", backoff_initial_s=0.1),
}
TOOLS: Final = {
    "desk": ["echo", "fail", "hang", "refuse"],
    "shop": ["ask", "echo"],
    "stand": ["big", "echo", "grow", "hang", "wait"],
}
CLIENTS: Final = {"ana": "ide", "ben": "bot"}


class Call(NamedTuple):
    """A call as it must be remembered: sizes in bytes; `waited`: its server was asleep."""

    user: str
    server: str
    tool: str
    outcome: str = "ok"
    bytes_in: int = 2
    bytes_out: int = 0
    error: str = ""
    waited: bool = False

    @property
    def client(self) -> str:
        return CLIENTS[self.user]

    @property
    def failed(self) -> bool:
        return self.outcome not in ("ok", "cancelled")


class FailingServer(FakeServer):
    """It has a tool `fail`, whose result says that it failed."""

    async def _call(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        if message["params"]["name"] != "fail":
            return await super()._call(peer, message)
        return await self._send(peer, {"id": message["id"], "result": FAILED})


ANY_SIZE: Final = -1
"""Of an answer of ours."""
FAILED: Final = {"content": [{"type": "text", "text": "it did not work"}], "isError": True}


def connect(server: DeployedServer) -> Transport:
    if server.name == "stand":
        return transport_of(default_containment(), None, server)
    return MemoryTransport(FailingServer(tools=[tool(name) for name in TOOLS[server.name]]).serve)


class Script:
    """The calls that were made, the oldest first. `meta` are those of the meta-tools that reached no server."""

    def __init__(self, at: World) -> None:
        self.at = at
        self.ana = at["ana"]
        self.calls: list[Call] = []
        self.meta: list[Call] = []
        self.longest_ms: dict[str, float] = {}
        """Of each tool: how long a client waited for an answer at most."""

    async def ask(self, user: str, name: str, arguments: str) -> Any:
        """Call a meta-tool as one client; `arguments` is their JSON, byte for byte."""
        info = {"name": CLIENTS[user], "version": "1"}
        body = modern("tools/call", {"name": name, "arguments": "ARGUMENTS"}, clientInfo=info)
        content = body.replace(b'"ARGUMENTS"', arguments.encode())
        return await self.at[user].ask("POST", "/mcp", content=content, headers=modern_headers("tools/call", name))

    async def execute(self, user: str, path: str, arguments: str = "{}", **more: Any) -> None:
        server, _, name = path.partition(":")
        began = time.perf_counter()
        await self.ask(user, "execute_mcp_tool", f'{{"tool_path":"{path}","arguments":{arguments}}}')
        took_ms = (time.perf_counter() - began) * 1000
        self.longest_ms[path] = max(self.longest_ms.get(path, 0.0), took_ms)
        self.calls.append(Call(user, server, name, bytes_in=len(arguments), **more))

    @asynccontextmanager
    async def hanging(self, user: str, path: str) -> AsyncIterator[None]:
        """Have a call in flight during the block, which is not answered; then its client leaves."""
        server, _, name = path.partition(":")
        async with trio.open_nursery() as nursery:
            ask = partial(self.ask, user, "execute_mcp_tool", f'{{"tool_path":"{path}","arguments":{{}}}}')
            nursery.start_soon(ask)
            await self.ana.until(f"/api/servers/{server}", lambda row: row["in_flight"] == 1)
            yield
            nursery.cancel_scope.cancel()
        self.calls.append(Call(user, server, name, "cancelled"))
        made = len(self.calls)
        await self.ana.until("/api/calls", lambda told: len(told["calls"]) == made)

    async def play(self) -> None:
        """Make all calls, of which the server `shop` is woken by one, and `stand` was started twice."""
        pid = (await self.ana.row("stand"))["pid"]
        os.kill(pid, signal.SIGKILL)
        await self.ana.until("/api/servers/stand", lambda row: row["state"] == "ready" and row["pid"] != pid)
        await self.at.ordered("shop", "sleep")
        await self.execute("ben", "shop:echo", '{"text":"a"}', bytes_out=size_of(echo_of({"text": "a"})), waited=True)
        for size in range(1, 6):
            text = {"text": "x" * size}
            given = json.dumps(text, separators=(",", ":"))
            await self.execute("ana", "desk:echo", given, bytes_out=size_of(echo_of(text)))
        for _ in range(2):
            await self.execute("ana", "desk:refuse", outcome="error", error="-32602")
        await self.execute("ana", "desk:fail", outcome="tool_error", bytes_out=size_of(FAILED))
        await self.execute("ana", "desk:hang", outcome="timeout", error="timeout")
        big = {"content": [{"type": "text", "text": "x" * 5000}]}
        for _ in range(3):
            await self.execute("ben", "stand:big", '{"size":5000}', bytes_out=size_of(big))
        await self.ask("ana", "discover_mcp_tools", '{"query":"echo"}')
        self.meta.append(Call("ana", "", "discover_mcp_tools", bytes_in=16, bytes_out=ANY_SIZE))
        await self.ask("ben", "execute_mcp_tool", '{"tool_path":"desk:none","arguments":{}}')
        self.calls.append(Call("ben", "desk", "_unknown", "rejected", bytes_in=2, error="not_found"))
        async with self.hanging("ben", "stand:hang"):
            pass
        asked = (await self.ask("ana", "execute_mcp_tool", '{"tool_path":"shop:ask","arguments":{}}')).json()
        assert len(asked["result"]["structuredContent"]["questions"]) == 1, "so it has not ended"


def size_of(result: dict[str, Any]) -> int:
    """Return how large the result of a server of the legacy era is in the modern one."""
    return len(json.dumps(result)) + len('"resultType":"complete",')


def echo_of(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [], "structuredContent": arguments}


@asynccontextmanager
async def played(directory: Path, data: DataDir, **settings: Any) -> AsyncIterator[Script]:
    """Run a daemon on which the script was played."""
    people = {user: {"role": "admin"} for user in IDENTITY["users"]}
    given: dict[str, Any] = {"people": people, "daemon": {"connect": connect}, "auth": "tokens", "identity": IDENTITY}
    async with world(directory, data, SERVERS, **given, **settings) as at:
        script = Script(at)
        await script.play()
        yield script
