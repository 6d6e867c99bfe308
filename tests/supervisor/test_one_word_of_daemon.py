"""A server that is in some condition is called the same everywhere: by each page, event, metric, command and search."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import trio
from rich.console import Console

from actors.errors import SpawnFailed
from actors.transport.base import Connection, Transport
from actors.transport.http.transport import HttpTransport
from supervisor.commands import status
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.actors.server.test_away import NoLogin
from tests.fakes.event_reader import EventReader, reading
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.remote_server import RemoteServer, Request
from tests.scenario.daemon import configuration, running

SLOW = {"backoff_initial_s": 1000, "backoff_max_s": 1000}
SOON = {"backoff_initial_s": 0.01, "backoff_max_s": 0.01}


class Reached:
    """A server that can be reached unless there is a `fault`."""

    kind = "stdio"

    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self.fault: SpawnFailed | None = None
        self.tries = 0
        self._memory = MemoryTransport(fake.serve)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        self.tries += 1
        if self.fault is not None:
            raise self.fault
        async with self._memory.connect() as connection:
            yield connection


class World:
    """A daemon with one server in each condition, and what all say of them."""

    def __init__(self, client: httpx2.AsyncClient, servers: dict[str, Reached], events: EventReader) -> None:
        self.client = client
        self.servers = servers
        self.events = events
        self.told: dict[str, str] = {}

    async def order(self, server: str, order: str) -> None:
        await self.client.post(f"/api/servers/{server}/{order}")

    async def call(self, tool: str) -> Any:
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": tool, "arguments": {}}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return await self.client.post("/mcp", json=body)

    async def until(self, server: str, word: str | None) -> dict[str, Any]:
        """Wait until `/api/status` has a word for a server; return its row."""
        while True:
            rows = {row["server"]: row for row in (await self.client.get("/api/status")).json()["servers"]}
            if server in rows and rows[server]["status"] == word:
                return dict(rows[server])
            await trio.sleep(0.01)

    async def found(self) -> set[str]:
        params = {"name": "discover_mcp_tools", "arguments": {"query": "*", "limit": 50}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        rows = (await self.client.post("/mcp", json=body)).json()["result"]["structuredContent"]["tools"]
        assert [row["tool_path"] for row in rows if row.get("available") is False] == []
        return {row["server_name"] for row in rows}

    async def listed(self) -> set[str]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        tools = (await self.client.post("/mcp/all", json=body)).json()["result"]["tools"]
        return {each["name"].partition("__")[0].partition("-")[0] for each in tools}

    async def metrics(self) -> tuple[dict[str, float], dict[str, float]]:
        text = (await self.client.get("/metrics")).text
        pattern = r'^mcpvisor_%s\{%s="(\w+)"\} ([\d.]+)$'
        usable = re.findall(pattern % ("server_usable", "mcp_server"), text, re.MULTILINE)
        words = re.findall(pattern % ("server_statuses", "status"), text, re.MULTILINE)
        return {name: float(value) for name, value in usable}, {word: float(value) for word, value in words}

    async def words(self) -> dict[str, dict[str, str]]:
        """Return by server which word each has for it; `disabled` for null."""
        rows = (await self.client.get("/api/status")).json()["servers"]
        mine = (await self.client.get("/api/me")).json()["servers"]
        debug = (await self.client.get("/api/status/debug")).json()["processes"]
        page = (await self.client.get("/ui/servers")).text
        out = Console(file=io.StringIO(), width=100)
        out.print(status.servers_cards(rows, 0.0, 100))
        assert isinstance(out.file, io.StringIO)
        lines = [line.split() for line in out.file.getvalue().splitlines() if not line.startswith(" ")]
        shown = re.findall(
            r'href="/ui/servers/(\w+)".*?class="state \w+"><span[^>]*>.</span> ([\w ]+)<', page, re.DOTALL
        )
        told = {
            "status": {row["server"]: row["status"] or "disabled" for row in rows},
            "me": {row["server"]: row["status"] or "disabled" for row in mine},
            "debug": {server: row["status"] or "disabled" for server, row in debug.items()},
            "terminal": {line[0]: line[1] for line in lines[1:]},
            "page": {server: word.replace(" ", "_") for server, word in shown},
        }
        return {row["server"]: {where: words.get(row["server"], "-") for where, words in told.items()} for row in rows}

    async def hear(self, words: dict[str, str]) -> None:
        """Read events until the last one of each server has its word."""
        while any(self.told.get(server) != word for server, word in words.items()):
            event = await self.events.until("mcp.server.status_changed")
            self.told[event["server_slug"]] = event["status"]


async def healthy(world: World) -> None:
    await world.until("healthy", "online")


async def asleep(world: World) -> None:
    await world.until("asleep", "online")
    await world.order("asleep", "sleep")


async def away(world: World) -> None:
    await world.until("away", "online")
    world.servers["away"].fault = SpawnFailed("connection refused", away=True)
    await world.order("away", "restart")


async def looping(world: World) -> None:
    await world.until("looping", "online")
    await world.call("looping:crash")


async def spent(world: World) -> None:
    await world.until("spent", "online")
    world.servers["spent"].fake.exits_at = "initialize"
    await world.call("spent:crash")


async def once(world: World) -> None:
    await world.until("once", "online")
    await world.call("once:crash")


async def nothing(world: World) -> None:
    await trio.lowlevel.checkpoint()


CONDITIONS: dict[str, tuple[str, Callable[[World], Awaitable[None]]]] = {
    "healthy": ("online", healthy),
    "asleep": ("online", asleep),
    "away": ("offline", away),
    "looping": ("error", looping),
    "spent": ("permanently_failed", spent),
    "once": ("permanently_failed", once),
    "missing": ("permanently_failed", nothing),
    "foreign": ("permanently_failed", nothing),
    "faulty": ("permanently_failed", nothing),
    "barred": ("requires_reauth", nothing),
    "lacking": ("awaiting_user_config", nothing),
    "off": ("disabled", nothing),
    "greeting": ("connecting", nothing),
}
"""By the name of the server: the word, and what brings it there."""
BEFORE = ("faulty", "lacking", "off")
"""So they are from the start, when nobody can have asked for events."""
ENTRIES: dict[str, dict[str, Any]] = {
    **{name: {"command": "x", **SLOW} for name in CONDITIONS},
    "spent": {"command": "x", **SOON, "max_restarts": 2},
    "once": {"command": "x", "restart": "temporary"},
    "faulty": {"comand": "x"},
    "lacking": {"command": "x", "env": {"TOKEN": "${user:TOKEN}"}},
    "off": {"command": "x", "disabled": True},
    "greeting": {"command": "x", "start_timeout_s": 600, "probe_timeout_s": 600},
}


async def wants_a_login(request: Request) -> None:
    await request.respond(401, b"", "text/plain")


@asynccontextmanager
async def world(tmp_path: Path, data: DataDir, entries: dict[str, Any]) -> AsyncIterator[World]:
    servers = {name: Reached(FakeServer(tools=[tool("echo"), tool("crash")])) for name in entries}
    if "missing" in servers:
        servers["missing"].fault = SpawnFailed("there is no such program", permanent=True)
    if "foreign" in servers:
        servers["foreign"].fake.errors_at = {"initialize": {"code": -32602, "message": "Unsupported protocol version"}}
    if "greeting" in servers:
        servers["greeting"].fake.silent_at = {"server/discover", "initialize"}
    remote = RemoteServer(FakeServer().serve, faults={"POST": wants_a_login})

    def connect(server: DeployedServer) -> Transport:
        if server.name == "barred":
            return HttpTransport(server.remote, server.remote_limits, "http", NoLogin())
        return servers[server.name]

    async with remote.running():
        settings = {"show_debug": True, "list_changed_min_interval_s": 0, "cold_starts": 50}
        barred = {"barred": {"url": remote.url}} if "barred" in entries else {}
        config = configuration(tmp_path, {**entries, **barred}, **settings)
        async with (
            running(config, data, connect=connect) as client,
            reading(f"http://127.0.0.1:{client.base_url.port}", "/api/events?after=x-1") as events,
        ):
            yield World(client, servers, events)


async def test_every_page_event_metric_and_command_has_the_same_word_for_a_server(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, ENTRIES) as at:
        async with trio.open_nursery() as nursery:
            for _, bring in CONDITIONS.values():
                nursery.start_soon(bring, at)
        words = {server: word for server, (word, _) in CONDITIONS.items()}
        for server, word in words.items():
            await at.until(server, None if word == "disabled" else word)
        await at.hear({server: word for server, word in words.items() if server not in BEFORE})
        said = await at.words()
        assert said == {server: dict.fromkeys(said[server], word) for server, word in words.items()}
        page = (await at.client.get("/ui/servers/missing")).text
        assert "It lists none" not in page, "it never answered"
        assert "Nobody knows its tools yet" in page
        online = {server for server, word in words.items() if word == "online"}
        assert await at.found() == online
        assert await at.listed() == online
        usable, counts = await at.metrics()
        assert {server for server, value in usable.items() if value} == online
        assert {word: count for word, count in counts.items() if count} == {
            word: [*words.values()].count(word) for word in words.values()
        }


async def test_a_server_that_is_away_and_back_is_told_as_a_change_of_the_catalogue(
    tmp_path: Path, data: DataDir
) -> None:
    """A call by its name finds out that it is back, however long the pause is."""
    async with world(tmp_path, data, {name: {"command": "x", **SLOW} for name in ("healthy", "away")}) as at:
        await away(at)
        assert (await at.events.until("mcp.server.away"))["server_slug"] == "away"
        await at.until("away", "offline")
        assert await at.found() == {"healthy"}
        at.servers["away"].fault = None
        await at.order("away", "restart")
        assert (await at.events.until("mcp.server.back"))["server_slug"] == "away"
        await at.until("away", "online")
        assert await at.found() == {"healthy", "away"}


async def test_a_single_crash_that_is_mended_at_once_takes_no_tool_away(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, {"healthy": {"command": "x", **SOON}}) as at:
        await healthy(at)
        await at.call("healthy:crash")
        told: list[tuple[str, str]] = []
        while not told or told[-1][0] != "mcp.server.restarted":
            _, kind, event = await at.events.next()
            told.append((kind, event.get("data", event).get("status", "")))
        crashed = [kind for kind, _ in told].index("mcp.server.crashed")
        assert {word for _, word in told[crashed:] if word} == {"online"}
        assert "mcp.server.away" not in dict(told)
