"""A tool that turns into another one: noticed while the daemon runs, and over its restart."""

from __future__ import annotations

from pathlib import Path

from supervisor.host.datadir import DataDir
from supervisor.store import open_store
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Client
from tests.scenario.daemon import world


async def places(at: Client, path: str) -> list[list[str]]:
    revisions = (await at.page("/api/tools/history", path=path))["revisions"]
    return [[change["place"] for change in each["changes"]] for each in revisions]


async def test_every_change_is_there_in_its_order(tmp_path: Path, data: DataDir) -> None:
    server = FakeServer(tools=[tool("echo", "Says it again."), tool("other")])
    fakes = {"one": server, "two": server}
    async with world(tmp_path, data, {"one": {"command": "x"}}, fakes) as at:
        assert await places(at, "one:echo") == [[]]
        server.tools = [tool("echo", "Says it again, to everybody."), tool("other")]
        await at.ordered("one", "refresh")
        assert await places(at, "one:echo") == [[], ["description"]]
    server.tools = [tool("echo", "Says it again, to everybody.", annotations={"readOnlyHint": True})]
    changed = {"command": "x", "args": ["--version=2"]}
    async with world(tmp_path, data, {"one": changed}, fakes) as at:
        told = await places(at, "one:echo")
        assert told == [[], ["description"], ["annotations"]]
        assert await places(at, "one:other") == [[]]
        assert (await at.ask("GET", "/api/tools/history?path=one:nothing")).status_code == 404
    async with world(tmp_path, data, {"one": {**changed, "tools": {"rename": {"echo": "say"}}}}, fakes) as at:
        assert await places(at, "one:say") == await places(at, "one:echo") == told
    async with world(tmp_path, data, {"two": {"command": "x"}}, fakes) as at:
        assert (await at.ask("GET", "/api/tools/history?path=one:echo")).status_code == 404
    async with open_store(data.database) as store:
        assert await store.definitions.load_of("one", "echo") == []
