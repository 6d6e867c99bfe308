"""A whole daemon in this loop, its file, and what people do with both: by the API, by calls, by an editor.

Its servers are functions in the same program (`tests/fakes/memory.py`) unless they are told otherwise.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest
import trio

from actors.launch import server_of
from supervisor.config import Configuration, load
from supervisor.config.edits import Change
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.scenario.client import Client, Json

A, B = {"command": "x"}, {"command": "y"}
BY_HAND = {"reload_on_change": False}
"""What is edited is read when that is asked for, and not while it is written."""


def write(path: Path, servers: dict[str, Any], **settings: Any) -> None:
    """Write a file, be it of use or not."""
    path.write_text(json.dumps({"mcpServers": servers, "supervisor": {"drain_s": 0.2, "shutdown_s": 60, **settings}}))


def configuration(directory: Path, servers: dict[str, Any], **settings: Any) -> Configuration:
    write(path := directory / "mcp.json", servers, **settings)
    return load(path, {"PATH": os.environ["PATH"]})


@asynccontextmanager
async def running(
    config: Configuration,
    data: DataDir,
    patience_s: float = 120,
    read: Callable[[str, Change], Configuration] | None = None,
    listen: str = "127.0.0.1:0",
    closing: trio.Event | None = None,
    **more: Any,
) -> AsyncIterator[httpx2.AsyncClient]:
    """Run a daemon in this loop; everything of it has ended at the end of the block. It reads the same file again.

    `read`, `closing`: see `Daemon`. Commands find the key of the daemon meanwhile.
    """
    daemon = Daemon(config, data, open_sockets(listen, 5.0), **more)
    if closing is not None:
        daemon.closing = closing
    daemon.read = read or (
        lambda path, change: load(Path(path or config.path), {"PATH": os.environ["PATH"]}, change=change)
    )
    with trio.fail_after(patience_s), pytest.MonkeyPatch.context() as environ:
        environ.setenv("MCPVISOR_DATA_DIR", str(data.root), prepend=os.pathsep)
        async with trio.open_nursery() as nursery:
            (url,) = await nursery.start(daemon.run)
            async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
                yield client
            daemon.closing.set()


class Fake(Protocol):
    """What stands in for a server."""

    async def serve(self, peer: MemoryPeer) -> int:
        """Live one incarnation, and return its exit code."""


class World(Client):
    """A daemon, before which this one shows nothing, and its file.

    `operator` shows its key, `world["ana"]` the token in `keys` that `admit` gave her, or "ana" if there is none, and
    `world[None]` nothing. `fakes`: what stands in for each server. `reads`: how often the file was read; with a `gate`
    not before that. `closing` ends the daemon before the end of the block.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        data: DataDir,
        path: Path | None = None,
        fakes: Mapping[str, Fake] | None = None,
    ) -> None:
        super().__init__(http)
        self.path = path or data.root.parent / "mcp.json"
        self.data = data
        self.fakes: defaultdict[str, Any] = defaultdict(lambda: FakeServer(tools=[tool("echo"), tool("sleep")]))
        self.fakes.update(fakes or {})
        self.reads = 0
        self.gate: trio.Event | None = None
        self.closing = trio.Event()
        self.keys = {"operator": data.key("page").hex()}

    @property
    def operator(self) -> Client:
        return self["operator"]

    def __getitem__(self, who: str | None) -> Client:
        return self if who is None else Client(self.http, self.keys.get(who, who))

    async def admit(self, user: str, **more: Any) -> str:
        """Make a token with which somebody is known from now on, and return its id."""
        answer = await self.operator.ask("POST", "/api/access-tokens", json={"user": user, **more})
        assert answer.status_code == 201, answer.text
        self.keys[user] = answer.json()["token"]
        return str(answer.json()["id"])

    async def revoke(self, id_: str) -> None:
        """Make a token of `admit` none."""
        await self.order("DELETE", f"/access-tokens/{id_}")

    def connect(self, server: DeployedServer) -> MemoryTransport:
        return MemoryTransport(self.fakes[server_of(server.name)].serve)

    async def launches(self, server: str = "") -> list[Json]:
        """The rows of the launches that people have of one server, or of all: each has its `users`."""
        rows = (await self.operator.status())["servers"]
        return [row for row in rows if "users" in row and server in ("", server_of(row["server"]))]

    async def records(self, **filters: Any) -> list[Json]:
        """What the audit has, the newest last."""
        return list((await self.operator.page("/api/audit", limit=500, **filters))["records"][::-1])

    # The file ---------------------------------------------------------------------------------------------------------

    def read(self, path: str, change: Change) -> Configuration:
        self.reads += 1
        if self.gate is not None:
            trio.from_thread.run(self.gate.wait)
        return load(Path(path or self.path), {"PATH": os.environ["PATH"]}, change=change)

    def write(self, servers: dict[str, Any], **settings: Any) -> None:
        write(self.path, servers, **{**BY_HAND, **settings})

    async def edit(self, servers: dict[str, Any], **settings: Any) -> str:
        """Change the file, have it read, and return what is said of that."""
        self.write(servers, **settings)
        return str((await self.reload())["message"])

    async def source(self) -> dict[str, Any]:
        return dict(await self.operator.page("/api/configuration"))

    # As the operator --------------------------------------------------------------------------------------------------

    async def order(self, method: str, path: str, code: int = 200, body: Any = None) -> Any:
        """Have the operator ask under `/api`, and return what is answered."""
        answer = await self.operator.ask(method, f"/api{path}", json=body)
        assert answer.status_code == code, answer.text
        return answer.json()

    async def said(self, method: str, path: str, code: int = 200, body: Any = None) -> str:
        """Have the operator ask under `/api`, and return the sentence that answers."""
        answer = await self.order(method, path, code, body)
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
        return await self.order("POST", "/reload", code)


@asynccontextmanager
async def world(
    directory: Path,
    data: DataDir,
    servers: dict[str, Any] | None,
    fakes: Mapping[str, Fake] | None = None,
    *,
    file: str = "mcp.json",
    waits: bool = True,
    patience_s: float = 120,
    people: Mapping[str, Mapping[str, Any]] | None = None,
    daemon: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[World]:
    """Run a daemon, with the file as it is if no servers are given; from when all were tried, unless nobody `waits`.

    `people` are admitted with what is said of each. `daemon` are further arguments of `Daemon`, `settings` those of the
    section `supervisor` of the file.
    """
    shown = World(httpx2.AsyncClient(), data, directory / file, fakes)
    if servers is None:
        config = load(shown.path, {"PATH": os.environ["PATH"]})
    else:
        config = configuration(directory, servers, **{**BY_HAND, **settings})
    given = {"connect": shown.connect, "closing": shown.closing, **(daemon or {})}
    async with running(config, data, patience_s, shown.read, **given) as shown.http:
        if waits:
            await shown.operator.ready()
        for user, more in (people or {}).items():
            await shown.admit(user, **more)
        yield shown
