"""A server that is in some condition is called the same everywhere: by each page, event, metric, command and search."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from rich.console import Console

from actors.errors import SpawnFailed
from actors.transport.base import Connection, Transport
from actors.transport.http.transport import HttpTransport
from supervisor.commands import status
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.actors.server.test_away import NoLogin
from tests.fakes.event_reader import EventReader
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.remote_server import RemoteServer, Request
from tests.scenario.daemon import World, world

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


class Scene:
    """A daemon with one server in each condition, and what all say of them."""

    def __init__(self, at: World, servers: dict[str, Reached], events: EventReader) -> None:
        self.at = at
        self.servers = servers
        self.events = events
        self.told: dict[str, str] = {}

    async def until(self, server: str, word: str | None) -> None:
        """Wait until `/api/status` has a word for a server."""
        await self.at.until("/api/status", lambda page: (server, word) in _words(page["servers"]).items())

    async def found(self) -> set[str]:
        rows = await self.at.search("*", limit=50)
        assert [row["tool_path"] for row in rows if row.get("available") is False] == []
        return {row["server_name"] for row in rows}

    async def listed(self) -> set[str]:
        return {name.partition("__")[0].partition("-")[0] for name in await self.at.tools()}

    async def metrics(self) -> tuple[dict[str, float], dict[str, float]]:
        text = (await self.at.ask("GET", "/metrics")).text
        pattern = r'^mcpvisor_%s\{%s="(\w+)"\} ([\d.]+)$'
        usable = re.findall(pattern % ("server_usable", "mcp_server"), text, re.MULTILINE)
        words = re.findall(pattern % ("server_statuses", "status"), text, re.MULTILINE)
        return {name: float(value) for name, value in usable}, {word: float(value) for word, value in words}

    async def words(self) -> dict[str, dict[str, str]]:
        """Return by server which word each has for it; `disabled` for null."""
        rows = (await self.at.status())["servers"]
        mine = (await self.at.page("/api/me"))["servers"]
        debug = (await self.at.page("/api/status/debug"))["processes"]
        page = (await self.at.ask("GET", "/ui/servers")).text
        out = Console(file=io.StringIO(), width=100)
        out.print(status.servers_cards(rows, 0.0, 100))
        assert isinstance(out.file, io.StringIO)
        lines = [line.split() for line in out.file.getvalue().splitlines() if not line.startswith(" ")]
        shown = re.findall(
            r'href="/ui/servers/(\w+)".*?class="state \w+"><span[^>]*>.</span> ([\w ]+)<', page, re.DOTALL
        )
        told = {
            "status": {server: word or "disabled" for server, word in _words(rows).items()},
            "me": {server: word or "disabled" for server, word in _words(mine).items()},
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


def _words(rows: list[Any]) -> dict[str, str | None]:
    return {row["server"]: row["status"] for row in rows}


async def healthy(now: Scene) -> None:
    await now.until("healthy", "online")


async def asleep(now: Scene) -> None:
    await now.until("asleep", "online")
    await now.at.ordered("asleep", "sleep")


async def away(now: Scene) -> None:
    await now.until("away", "online")
    now.servers["away"].fault = SpawnFailed("connection refused", away=True)
    await now.at.ordered("away", "restart", 502)


async def looping(now: Scene) -> None:
    await now.until("looping", "online")
    await now.at.execute("looping:crash")


async def spent(now: Scene) -> None:
    await now.until("spent", "online")
    now.servers["spent"].fake.exits_at = "initialize"
    await now.at.execute("spent:crash")


async def once(now: Scene) -> None:
    await now.until("once", "online")
    await now.at.execute("once:crash")


async def nothing(now: Scene) -> None:
    await trio.lowlevel.checkpoint()


CONDITIONS: dict[str, tuple[str, Callable[[Scene], Awaitable[None]]]] = {
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
async def scene(directory: Path, data: DataDir, entries: dict[str, Any]) -> AsyncIterator[Scene]:
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

    settings = {"show_debug": True, "list_changed_min_interval_s": 0, "cold_starts": 50}
    more: dict[str, Any] = {"waits": False, "daemon": {"connect": connect}, **settings}
    async with remote.running():
        barred = {"barred": {"url": remote.url}} if "barred" in entries else {}
        async with (
            world(directory, data, {**entries, **barred}, **more) as at,
            at.reading("/api/events?after=x-1") as events,
        ):
            yield Scene(at, servers, events)


async def test_every_page_event_metric_and_command_has_the_same_word_for_a_server(
    tmp_path: Path, data: DataDir
) -> None:
    async with scene(tmp_path, data, ENTRIES) as now:
        async with trio.open_nursery() as nursery:
            for _, bring in CONDITIONS.values():
                nursery.start_soon(bring, now)
        words = {server: word for server, (word, _) in CONDITIONS.items()}
        for server, word in words.items():
            await now.until(server, None if word == "disabled" else word)
        await now.hear({server: word for server, word in words.items() if server not in BEFORE})
        said = await now.words()
        assert said == {server: dict.fromkeys(said[server], word) for server, word in words.items()}
        page = (await now.at.ask("GET", "/ui/servers/missing")).text
        assert "It lists none" not in page, "it never answered"
        assert "Nobody knows its tools yet" in page
        online = {server for server, word in words.items() if word == "online"}
        assert await now.found() == online
        assert await now.listed() == online
        usable, counts = await now.metrics()
        assert {server for server, value in usable.items() if value} == online
        assert {word: count for word, count in counts.items() if count} == {
            word: [*words.values()].count(word) for word in words.values()
        }


async def test_a_server_that_is_away_and_back_is_told_as_a_change_of_the_catalogue(
    tmp_path: Path, data: DataDir
) -> None:
    """A call by its name finds out that it is back, however long the pause is."""
    async with scene(tmp_path, data, {name: {"command": "x", **SLOW} for name in ("healthy", "away")}) as now:
        await away(now)
        assert (await now.events.until("mcp.server.away"))["server_slug"] == "away"
        await now.until("away", "offline")
        assert await now.found() == {"healthy"}
        now.servers["away"].fault = None
        await now.at.ordered("away", "restart")
        assert (await now.events.until("mcp.server.back"))["server_slug"] == "away"
        await now.until("away", "online")
        assert await now.found() == {"healthy", "away"}


async def test_a_single_crash_that_is_mended_at_once_takes_no_tool_away(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data, {"healthy": {"command": "x", **SOON}}) as now:
        await healthy(now)
        await now.at.execute("healthy:crash")
        told: list[tuple[str, str]] = []
        while not told or told[-1][0] != "mcp.server.restarted":
            _, kind, event = await now.events.next()
            told.append((kind, event.get("data", event).get("status", "")))
        crashed = [kind for kind, _ in told].index("mcp.server.crashed")
        assert {word for _, word in told[crashed:] if word} == {"online"}
        assert "mcp.server.away" not in dict(told)
