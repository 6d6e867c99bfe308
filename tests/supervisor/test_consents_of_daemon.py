"""A yes for longer than one call: for one person and one tool as it was, until it is taken back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.http_client import META, MODERN, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.scenario.daemon import World, configuration, running
from tests.supervisor.commands.test_cli import ask as command

IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}, "ben": {}}}
ENTRY: dict[str, Any] = {"command": "x", "confirm": ["echo", "sleep"]}
SERVERS: dict[str, Any] = {"desk": ENTRY, "shelf": ENTRY}


class Desk:
    """Both servers, whose tools may become others."""

    def __init__(self) -> None:
        self.fake = FakeServer(tools=[tool("echo"), tool("sleep")])

    def connect(self, server: DeployedServer) -> MemoryTransport:
        del server
        return MemoryTransport(self.fake.serve)


@asynccontextmanager
async def daemon(directory: Path, data: DataDir, desk: Desk) -> AsyncIterator[World]:
    config = configuration(directory, SERVERS, auth="tokens", identity=IDENTITY)
    async with running(config, data, connect=desk.connect) as client:
        at = World(client, data)
        await at.operator.ready()
        yield at


async def call(
    at: World,
    who: str,
    remember: str | None = "once",
    *,
    client: str = "ide",
    name: str = "echo",
    server: str = "desk",
) -> bool:
    """Call a tool, and say yes if that is asked for; return whether it was."""
    meta = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": {"elicitation": {}},
        f"{META}clientInfo": {"name": client, "version": "1"},
    }
    params = {
        "name": "execute_mcp_tool",
        "arguments": {"tool_path": f"{server}:{name}", "arguments": {"s": 0}},
        "_meta": meta,
    }

    async def post(**more: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, **more}}
        headers = modern_headers("tools/call", "execute_mcp_tool")
        return (await at[who].ask("POST", "/mcp", content=json.dumps(body), headers=headers)).json()["result"]

    told = await post()
    if "inputRequests" not in told:
        assert not told.get("isError"), told
        return False
    content = {"run": True} if remember is None else {"run": True, "remember": remember}
    answer = {"confirm": {"action": "accept", "content": content}}
    told = await post(inputResponses=answer, requestState=told["requestState"])
    assert not told.get("isError"), told
    return True


async def test_a_yes_lasts_as_long_as_was_said(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data, Desk()) as at:
        for user in ("ana", "ben"):
            await at.admit(user, role="admin")
        for lasting in ("once", None, "nonsense"):
            assert await call(at, "ana", lasting)
        assert await call(at, "ana", "session")
        assert not await call(at, "ana"), "this client is not asked today"
        assert await call(at, "ana", client="other"), "another one is"
        assert await call(at, "ana", name="sleep"), "and for another tool"
        assert await call(at, "ana", server="shelf"), "and for the same one of another server"
        assert await call(at, "ben", "always"), "and another person"
        assert not await call(at, "ben", client="any")
        assert await call(at, "ana", client="other")


@pytest.mark.case("X06")
async def test_a_yes_for_good_is_kept_and_ends_with_the_definition_that_it_was_for(
    tmp_path: Path, data: DataDir
) -> None:
    desk = Desk()
    async with daemon(tmp_path, data, desk) as at:
        await at.admit("ben")
        await at.admit("ana", role="admin")
        assert await call(at, "ben", "always")
        assert await call(at, "ben", "session", name="sleep")
    async with daemon(tmp_path, data, desk) as again:
        again.keys = at.keys
        assert not await call(again, "ben")
        assert await call(again, "ben", name="sleep"), "what was for a session is over"
        desk.fake.tools[0]["description"] = "Does something else now."
        assert (await again["ana"].ask("POST", "/api/servers/desk/refresh")).status_code == 200
        assert await call(again, "ben"), "it is another tool by now"


async def test_a_yes_is_taken_back_by_whose_it_is_or_an_admin(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data, Desk()) as at:
        await at.admit("ben")
        await at.admit("ana", role="admin")
        assert await call(at, "ben", "always")
        assert await call(at, "ana", "always")
        listed = (await at["ben"].page("/api/consents"))["consents"]
        assert [(each["user"], each["server"], each["tool"], each["client"]) for each in listed] == [
            ("ben", "desk", "echo", "")
        ]
        every = (await at["ana"].page("/api/consents"))["consents"]
        assert [each["user"] for each in every] == ["ben", "ana"]
        of_ana = every[1]["id"]
        assert (await at["ben"].ask("DELETE", f"/api/consents/{of_ana}")).status_code == 404
        assert (await at["ben"].ask("DELETE", f"/api/consents/{listed[0]['id']}")).status_code == 200
        assert await call(at, "ben")
        assert not await call(at, "ana")
        url = str(at.http.base_url).rstrip("/")
        shown = (await command(url, "consents")).stdout.splitlines()
        assert shown[0].split() == ["ID", "TOOL", "WHOSE", "FOR", "SINCE"]
        assert shown[1].split()[:4] == [of_ana, "desk:echo", "ana", "good"]
        refused = await command(url, "consents", of_ana, "none")
        assert (refused.exit_code, "by the ID none; nothing was taken back" in refused.stderr) == (1, True)
        assert (await command(url, "consents", of_ana)).stderr == "desk:echo asks again\n"
        assert await call(at, "ana")
        assert (await command(url, "consents")).stderr == "Every tool that has to ask asks each time.\n"
        assert (await command(url, "consents", "none")).exit_code == 1
