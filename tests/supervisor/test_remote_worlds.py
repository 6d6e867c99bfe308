"""A daemon before remote servers of all sorts: each ends ready, or with a reason that says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.host.datadir import DataDir
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request
from tests.scenario.client import Client
from tests.scenario.daemon import World, world

REMOTE = {"connect": None}
"""The daemon reaches servers by their addresses itself."""


def status(code: int, body: bytes) -> Fault:
    async def answer(request: Request) -> None:
        await request.respond(code, body, "text/html")

    return answer


def before(directory: Path, data: DataDir, servers: Mapping[str, RemoteServer]) -> AbstractAsyncContextManager[World]:
    """Run a daemon for the block, from when it has tried these."""
    return world(directory, data, {name: {"url": each.url} for name, each in servers.items()}, daemon=REMOTE)


async def echoed(at: Client, server: str, **arguments: Any) -> Any:
    return (await at.result(f"{server}-echo", **arguments))["structuredContent"]


@pytest.mark.case("H18")
async def test_two_entries_for_one_address_are_two_servers_with_a_session_each(tmp_path: Path, data: DataDir) -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with server.running():
        entries = {"mine": {"url": server.url}, "yours": {"url": server.url, "headers": {"X-Who": "you"}}}
        async with world(tmp_path, data, entries, daemon=REMOTE) as at:
            assert {name: (row["state"], row["tools"]) for name, row in (await at.rows()).items()} == {
                "mine": ("ready", 1),
                "yours": ("ready", 1),
            }
            for name in ("mine", "yours"):
                assert await echoed(at, name, who=name) == {"who": name}
    calls = [request for request in server.requests if request.method == "tools/call"]
    assert [call.headers.get("x-who") for call in calls] == [None, "you"]
    assert len({call.headers["mcp-session-id"] for call in calls}) == 2


async def test_a_page_of_a_proxy_and_a_server_that_is_down_harm_nobody_and_are_told_of(
    tmp_path: Path, data: DataDir
) -> None:
    page = RemoteServer(FakeServer().serve, faults={"POST": status(200, b"<html>Sign in, s3cret</html>")})
    down = RemoteServer(FakeServer().serve, faults={"POST": status(502, b"<html>Bad Gateway, s3cret</html>")})
    good = RemoteServer(FakeServer().serve)
    servers = {"page": page, "down": down, "good": good}
    async with page.running(), down.running(), good.running(), before(tmp_path, data, servers) as at:
        shown = await at.rows()
        assert shown["good"]["state"] == "ready"
        assert (shown["page"]["state"], shown["page"]["next_start"] is not None) == ("failed", True)
        assert "it answered with text/html, which is not MCP" in shown["page"]["last_error"]
        assert "it is not available (HTTP 502)" in shown["down"]["last_error"]
        assert "s3cret" not in str(shown)
        for name, said in (("page", "text/html"), ("down", "is away")):
            error = failure(await at.call(f"{name}:echo"))
            assert said in error["message"]
            assert error["data"]["outcome"] == "not_sent"
        down.faults.clear()
        await at.ordered("down", "wake")
        assert (await at.result("down:echo", n=1))["structuredContent"] == {"n": 1}


@pytest.mark.case("Q06")
async def test_a_search_for_the_tools_of_a_server_that_is_away_says_that_it_is(tmp_path: Path, data: DataDir) -> None:
    fake = FakeServer(tools=[tool("forecast", "Says what the weather will be.")])
    server = RemoteServer(fake.serve)
    async with server.running():
        entry = {"url": server.url, "backoff_initial_s": 60}
        async with world(tmp_path, data, {"weather": entry}, daemon=REMOTE) as at:
            server.faults["POST"] = status(503, b"")
            await at.call("weather:forecast")
            with trio.fail_after(30):
                await at.until_state("weather", "respawning")
                answer: dict[str, Any] = {"tools": ["so far"]}
                while answer["tools"]:  # the catalogue hears of it a moment later
                    found = await at.result("discover_mcp_tools", query="what the weather will be")
                    answer = found["structuredContent"]
            assert answer["notice"].startswith("weather is offline (it is not available (HTTP 503)); tell the user.")
            assert (await at.row("weather"))["tools"] == 1


class Forgetful(RemoteServer):
    """Is started again at each seventh call, and knows no session then; it takes that call, or not."""

    calls = 0

    async def _answer(self, request: Request) -> bool:
        if request.method == "tools/call":
            self.calls += 1
            self._count()
        return await super()._answer(request)

    def _count(self) -> None:
        if self.calls % 7 == 0:
            self.restart()


class Restarted(Forgetful):
    """Is started again at the seventh call, once; nothing that it had taken is answered."""

    async def _answer(self, request: Request) -> bool:
        if request.method == "tools/call" and self.calls < 6:
            message = request.message
            message["params"]["arguments"]["s"] = 60
            request.body = json.dumps(message).encode()
        return await super()._answer(request)

    def _count(self) -> None:
        if self.calls == 7:
            self.restart(cuts=True)


UNINITIALIZED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}'
"""As the official TypeScript transport says it that was started anew."""
UNKNOWN = {
    "404": (404, b"session not found", "text/plain"),
    "not-initialized": (400, UNINITIALIZED, "application/json"),
    "not-initialized-with-its-id": (400, UNINITIALIZED.replace(b"null", b"ITS ID"), "application/json"),
    "text": (400, b"Who are you?", "text/plain"),
    "401-without-a-challenge": (401, b"Unauthorized: Session not found", "text/plain"),
    "409": (409, b'{"error":"stale"}', "application/json"),
    "410": (410, b"", ""),
    "422": (422, b'{"detail":[]}', "application/json"),
}
"""How servers say that they do not know a session."""


async def calls_at_once(tmp_path: Path, data: DataDir, forgetful: RemoteServer) -> tuple[list[Any], Any]:
    """Call it `CALLS` times at once, and a healthy server after each; return the answers, and the status at the end."""
    healthy, answers = RemoteServer(FakeServer().serve), []
    servers = {"forgets": forgetful, "healthy": healthy}
    async with forgetful.running(), healthy.running(), before(tmp_path, data, servers) as at:

        async def call(number: int) -> None:
            answers.append(await at.result("forgets-sleep", s=0.02))
            assert await echoed(at, "healthy", n=number) == {"n": number}

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for number in range(CALLS):
                    nursery.start_soon(call, number)
        status_now = await at.rows()
    return answers, {name: (row["state"], row["breakers"]) for name, row in status_now.items()}


class Limited(RemoteServer):
    """Takes none of the first calls, and says so by an answer to the request with the status of who asks too often."""

    refused = 0

    async def _answer(self, request: Request) -> bool:
        if request.method == "tools/call" and self.refused < CALLS + CALLS // 2:
            self.refused += 1
            error = {"code": -32000, "message": "Rate limit exceeded"}
            body = {"jsonrpc": "2.0", "id": request.message["id"], "error": error}
            await request.respond(429, json.dumps(body).encode())
            return True
        return await super()._answer(request)


CALLS: Final = 24
READY: Final[dict[str, Any]] = {"forgets": ("ready", []), "healthy": ("ready", [])}


@pytest.mark.parametrize("unknown", ["404", "not-initialized"])
async def test_calls_at_once_of_a_server_that_forgets_its_session_every_seven_calls_all_succeed(
    tmp_path: Path, data: DataDir, unknown: str
) -> None:
    forgetful = Forgetful(FakeServer(tools=[tool("sleep")]).serve, unknown=UNKNOWN[unknown])
    answers, states = await calls_at_once(tmp_path, data, forgetful)
    assert [each for each in answers if each.get("isError")] == []
    assert states == READY


async def test_calls_that_a_server_loses_together_open_no_breaker_and_the_others_succeed(
    tmp_path: Path, data: DataDir
) -> None:
    answers, states = await calls_at_once(tmp_path, data, Restarted(FakeServer(tools=[tool("sleep")]).serve))
    lost = [each["structuredContent"]["error"]["code"] for each in answers if each.get("isError")]
    assert lost == [-31502] * 6
    assert states == READY


async def test_calls_at_once_that_a_server_refuses_as_they_come_too_often_all_succeed_later(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.server.calls.queue._SPREAD_S", 0.05)
    fake = FakeServer(tools=[tool("sleep")])
    answers, states = await calls_at_once(tmp_path, data, Limited(fake.serve))
    assert [each for each in answers if each.get("isError")] == []
    assert states == READY
    assert fake.count("tools/call") == CALLS


async def test_a_server_that_was_started_again_is_used_again_however_it_says_that_it_knows_no_session(
    tmp_path: Path, data: DataDir
) -> None:
    fakes = {name: FakeServer() for name in UNKNOWN}
    servers = {name: RemoteServer(fakes[name].serve, unknown=unknown) for name, unknown in UNKNOWN.items()}
    async with AsyncExitStack() as stack:
        for server in servers.values():
            await stack.enter_async_context(server.running())
        async with before(tmp_path, data, servers) as at:
            for name, server in servers.items():
                assert await echoed(at, name, n=1) == {"n": 1}
                server.restart()
                with trio.fail_after(10):
                    assert await echoed(at, name, n=2) == {"n": 2}
            assert {(row["state"], row["last_error"]) for row in (await at.rows()).values()} == {("ready", None)}
    assert {name: server.count("POST", "initialize") for name, server in servers.items()} == dict.fromkeys(UNKNOWN, 2)
    assert all(fake.count("tools/call") == 2 for fake in fakes.values())


async def test_a_server_that_refuses_everything_in_a_new_session_too_is_not_ready(
    tmp_path: Path, data: DataDir
) -> None:
    server = RemoteServer(FakeServer().serve)
    async with (
        server.running(),
        world(tmp_path, data, {"s": {"url": server.url, "max_restarts": 0}}, daemon=REMOTE) as at,
    ):
        assert await echoed(at, "s", n=1) == {"n": 1}
        for method in ("tools/call", "tools/list", "ping"):
            server.faults[method] = status(400, b"no")
        with trio.fail_after(20):
            error = (await echoed(at, "s", n=2))["error"]
        assert error["outcome"] == "not_sent"
        assert "HTTP 400" in error["message"]
        assert (await at.row("s"))["state"] == "failed"


async def refuse_by_message(request: Request) -> None:
    error = {"code": -32000, "message": "no such city"}
    body = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": error}).encode()
    await request.respond(400, body)


async def test_a_request_that_a_living_session_refuses_costs_no_session(tmp_path: Path, data: DataDir) -> None:
    faults = {"HTTP 422": status(422, b"not these arguments"), "no such city": refuse_by_message}
    server = RemoteServer(FakeServer().serve)
    async with server.running(), before(tmp_path, data, {"s": server}) as at:
        for says, server.faults["tools/call"] in faults.items():
            assert says in json.dumps(await at.result("s-echo", n=1))
            assert (await at.row("s"))["state"] == "ready"
    assert server.count("POST", "initialize") == 1
