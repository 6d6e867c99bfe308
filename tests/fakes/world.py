"""A whole daemon over memory transports, its file, and what people do with both: by the API, by calls, by an editor."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import trio

from supervisor.config import Configuration, load
from supervisor.config.edits import Change
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.supervisor.test_daemon import configuration, running, until_ready

A, B = {"command": "x"}, {"command": "y"}
BY_HAND = {"reload_on_change": False}
"""What is edited is read when that is asked for, and not while it is written."""


class World:
    """`fakes`: what stands in for each server. `reads`: how often the file was read; with a `gate` not before that."""

    def __init__(self, path: Path, data: DataDir, fakes: Mapping[str, FakeServer] | None = None) -> None:
        self.path = path
        self.fakes = defaultdict(lambda: FakeServer(tools=[tool("echo"), tool("sleep")]), fakes or {})
        self.client = httpx2.AsyncClient()
        self.reads = 0
        self.gate: trio.Event | None = None
        self._key = data.key("page").hex()

    def connect(self, server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(self.fakes[server.name].serve)

    def read(self, path: str, change: Change) -> Configuration:
        self.reads += 1
        if self.gate is not None:
            trio.from_thread.run(self.gate.wait)
        return load(Path(path or self.path), {"PATH": os.environ["PATH"]}, change=change)

    def write(self, servers: dict[str, Any], **settings: Any) -> None:
        configuration(self.path.parent, servers, **{**BY_HAND, **settings})

    # By the API -------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, code: int = 200, body: Any = None) -> Any:
        """Ask as the operator."""
        headers = {"authorization": f"Bearer {self._key}"}
        answer = await self.client.request(method, f"/api{path}", json=body, headers=headers, timeout=60)
        assert answer.status_code == code, answer.text
        return answer.json()

    async def said(self, method: str, path: str, code: int = 200, body: Any = None) -> str:
        """Ask as the operator, and return the sentence that answers."""
        answer = await self.ask(method, path, code, body)
        return str(answer["message"] if code < 300 else answer["error"]["message"])

    async def ordered(self, server: str, order: str, code: int = 200) -> str:
        return await self.said("POST", f"/servers/{server}/{order}", code)

    async def add(self, name: str, entry: Mapping[str, Any] = B, code: int = 201, **more: Any) -> str:
        return await self.said("POST", "/servers", code, {"name": name, "entry": entry, **more})

    async def change(self, name: str, patch: Mapping[str, Any], code: int = 200) -> str:
        return await self.said("PATCH", f"/servers/{name}", code, {"entry": patch})

    async def remove(self, name: str, code: int = 200) -> str:
        return await self.said("DELETE", f"/servers/{name}", code)

    async def reload(self, code: int = 200) -> Any:
        return await self.ask("POST", "/reload", code)

    async def edit(self, servers: dict[str, Any], **settings: Any) -> str:
        """Change the file, have it read, and return what is said of that."""
        self.write(servers, **settings)
        return str((await self.reload())["message"])

    async def row(self, server: str) -> dict[str, Any]:
        return dict(await self.ask("GET", f"/servers/{server}"))

    async def status(self) -> dict[str, Any]:
        return dict(await self.ask("GET", "/status"))

    async def servers(self) -> set[str]:
        return {row["server"] for row in (await self.status())["servers"]}

    async def source(self) -> dict[str, Any]:
        return dict(await self.ask("GET", "/configuration"))

    # As a client ------------------------------------------------------------------------------------------------------

    async def call(self, name: str, **arguments: Any) -> Any:
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return (await self.client.post("/mcp", json=body, timeout=60)).json()

    async def found(self, query: str) -> list[str]:
        """The paths that a search for tools finds."""
        answer = await self.call("discover_mcp_tools", query=query)
        return [hit["tool_path"] for hit in answer["result"]["structuredContent"]["tools"]]

    async def until_found(self, query: str, paths: list[str]) -> None:
        while await self.found(query) != paths:  # noqa: ASYNC110 - the index is built in a thread of the daemon
            await trio.sleep(0.01)


@asynccontextmanager
async def world(
    directory: Path,
    data: DataDir,
    servers: dict[str, Any] | None,
    fakes: Mapping[str, FakeServer] | None = None,
    *,
    file: str = "mcp.json",
    **settings: Any,
) -> AsyncIterator[World]:
    """Run a daemon, with the file as it is if no servers are given; from when all were tried."""
    shown = World(directory / file, data, fakes)
    if servers is None:
        config = load(shown.path, {"PATH": os.environ["PATH"]})
    else:
        config = configuration(directory, servers, **{**BY_HAND, **settings})
    async with running(config, data, read=shown.read, connect=shown.connect) as shown.client:
        await until_ready(shown.client)
        yield shown
