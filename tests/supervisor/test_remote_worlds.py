"""A daemon before remote servers of all sorts: each ends ready, or with a reason that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.host.datadir import DataDir, open_data_dir
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request
from tests.supervisor.test_daemon import configuration, running, until_ready


@pytest.fixture
def data(tmp_path: Path) -> Any:
    with open_data_dir(tmp_path / "data", {}) as directory:
        yield directory


def status(code: int, body: bytes) -> Fault:
    async def answer(request: Request) -> None:
        await request.respond(code, body, "text/html")

    return answer


async def called(client: httpx2.AsyncClient, name: str, **arguments: Any) -> Any:
    params = {"name": name, "arguments": arguments}
    return (
        await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    ).json()


async def rows(client: httpx2.AsyncClient) -> dict[str, Any]:
    return {row["server"]: row for row in (await client.get("/api/status")).json()["servers"]}


async def until_away(client: httpx2.AsyncClient, server: str) -> None:
    while True:
        if (await rows(client))[server]["state"] == "respawning":
            return
        await trio.sleep(0.02)


@pytest.mark.case("H18")
async def test_two_entries_for_one_address_are_two_servers_with_a_session_each(tmp_path: Path, data: DataDir) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with server.running():
        entries = {"mine": {"url": server.url}, "yours": {"url": server.url, "headers": {"X-Who": "you"}}}
        async with running(configuration(tmp_path, entries), data) as client:
            await until_ready(client)
            assert {name: (row["state"], row["tools"]) for name, row in (await rows(client)).items()} == {
                "mine": ("ready", 1),
                "yours": ("ready", 1),
            }
            for name in ("mine", "yours"):
                assert (await called(client, f"{name}-echo", who=name))["result"]["structuredContent"] == {"who": name}
    calls = [request for request in server.requests if request.method == "tools/call"]
    assert [call.headers.get("x-who") for call in calls] == [None, "you"]
    assert len({call.headers["mcp-session-id"] for call in calls}) == 2


async def test_a_page_of_a_proxy_and_a_server_that_is_down_harm_nobody_and_are_told_of(
    tmp_path: Path, data: DataDir
) -> None:
    page = RemoteServer(FakeServer().serve, faults={"POST": status(200, b"<html>Sign in, s3cret</html>")})
    down = RemoteServer(FakeServer().serve, faults={"POST": status(502, b"<html>Bad Gateway, s3cret</html>")})
    good = RemoteServer(FakeServer().serve)
    async with page.running(), down.running(), good.running():
        entries = {name: {"url": each.url} for name, each in {"page": page, "down": down, "good": good}.items()}
        async with running(configuration(tmp_path, entries), data) as client:
            await until_ready(client)
            shown = await rows(client)
            assert shown["good"]["state"] == "ready"
            assert (shown["page"]["state"], shown["page"]["next_start"] is not None) == ("failed", True)
            assert "it answered with text/html, which is not MCP" in shown["page"]["last_error"]
            assert "it is not available (HTTP 502)" in shown["down"]["last_error"]
            assert "s3cret" not in str(shown)
            for name, said in (("page", "text/html"), ("down", "is away")):
                error = failure(await called(client, f"{name}:echo"))
                assert said in error["message"]
                assert error["data"]["outcome"] == "not_sent"
            down.faults.clear()
            assert (await client.post("/api/servers/down/wake")).status_code == 200
            assert (await called(client, "down:echo", n=1))["result"]["structuredContent"] == {"n": 1}


@pytest.mark.case("Q06")
async def test_the_tools_of_a_server_that_went_away_are_found_and_marked(tmp_path: Path, data: DataDir) -> None:
    fake = FakeServer(tools=[tool("forecast", "Says what the weather will be.")])
    server = RemoteServer(fake.serve)
    async with server.running():
        config = configuration(tmp_path, {"weather": {"url": server.url, "backoff_initial_s": 60}})
        async with running(config, data) as client:
            await until_ready(client)
            server.faults["POST"] = status(503, b"")
            await called(client, "weather:forecast")
            with trio.fail_after(30):
                await until_away(client, "weather")
            found = await called(client, "discover_mcp_tools", query="what the weather will be")
            (row,) = found["result"]["structuredContent"]["tools"]
            assert (row["tool_path"], row["available"]) == ("weather:forecast", False)
            assert (await rows(client))["weather"]["tools"] == 1
