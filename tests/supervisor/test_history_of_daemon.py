"""A tool that turns into another one: noticed while the daemon runs, and over its restart."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx2

from supervisor.host.datadir import DataDir
from supervisor.store import open_store
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running


async def places(client: httpx2.AsyncClient, path: str) -> list[list[str]]:
    answer = await client.get("/api/tools/history", params={"path": path})
    assert answer.status_code == 200, answer.text
    return [[change["place"] for change in each["changes"]] for each in answer.json()["revisions"]]


async def test_every_change_is_there_in_its_order(tmp_path: Path, data: DataDir) -> None:
    server = FakeServer(tools=[tool("echo", "Says it again."), tool("other")])
    config = configuration(tmp_path, {"one": {"command": "x"}})
    connect = partial(lambda server, _: MemoryTransport(server.serve), server)
    async with running(config, data, connect=connect) as client:
        await Client(client).ready()
        assert await places(client, "one:echo") == [[]]
        server.tools = [tool("echo", "Says it again, to everybody."), tool("other")]
        assert (await client.post("/api/servers/one/refresh", headers={"content-type": "application/json"})).is_success
        assert await places(client, "one:echo") == [[], ["description"]]
    server.tools = [tool("echo", "Says it again, to everybody.", annotations={"readOnlyHint": True})]
    changed = configuration(tmp_path, {"one": {"command": "x", "args": ["--version=2"]}})
    async with running(changed, data, connect=connect) as client:
        await Client(client).ready()
        told = await places(client, "one:echo")
        assert told == [[], ["description"], ["annotations"]]
        assert await places(client, "one:other") == [[]]
        assert (await client.get("/api/tools/history?path=one:nothing")).status_code == 404
    renamed = {"command": "x", "args": ["--version=2"], "tools": {"rename": {"echo": "say"}}}
    async with running(configuration(tmp_path, {"one": renamed}), data, connect=connect) as client:
        await Client(client).ready()
        assert await places(client, "one:say") == await places(client, "one:echo") == told
    async with running(configuration(tmp_path, {"two": {"command": "x"}}), data, connect=connect) as client:
        await Client(client).ready()
        assert (await client.get("/api/tools/history?path=one:echo")).status_code == 404
    async with open_store(data.database) as store:
        assert await store.definitions.load_of("one", "echo") == []
