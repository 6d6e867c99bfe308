"""What clients are told when the daemon ends while their calls run: a whole daemon in this loop, every transport."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from trio_websocket import ConnectionClosed, WebSocketConnection

from actors.errors import ShuttingDown
from supervisor.config import Settings, load
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets
from supervisor.host.datadir import open_data_dir
from tests.fakes.front_server import until
from tests.fakes.http_client import JSON_HEADERS, META, MODERN, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.websocket_client import open_websocket

PARAMS = {"name": "execute_mcp_tool", "arguments": {"tool_path": "good:hang", "arguments": {}}}
ENVELOPE = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
NO_HINTS: Mapping[str, Any] = {}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


class Ending:
    """A daemon with one server whose tool never answers."""

    def __init__(self, daemon: Daemon, server: FakeServer, url: str) -> None:
        self.daemon = daemon
        self.server = server
        self.url = url

    async def in_flight(self, count: int) -> None:
        """Wait until so many calls have reached the server."""
        await until(lambda: self.server.count("tools/call") >= count)

    def end(self) -> None:
        self.daemon.closing.set()

    def websocket(self) -> AbstractAsyncContextManager[WebSocketConnection]:
        """Connect for a block."""
        return open_websocket(int(self.url.rpartition(":")[2]), "/mcp")


@asynccontextmanager
async def running(directory: Path, hints: Mapping[str, Any] = NO_HINTS, **settings: Any) -> AsyncIterator[Ending]:
    path = directory / "mcp.json"
    own = {"drain_s": 0.3, "shutdown_s": 60, **settings}
    path.write_text(json.dumps({"mcpServers": {"good": {"command": "x"}}, "supervisor": own}))
    server = FakeServer(tools=[tool("hang", **hints), tool("sleep")])
    with open_data_dir(directory / "data", {}) as data, trio.fail_after(30):
        daemon = Daemon(
            load(path, {"PATH": os.environ["PATH"]}),
            data,
            open_sockets("127.0.0.1:0", 5.0),
            connect=lambda config: MemoryTransport(server.serve),
        )
        async with trio.open_nursery() as nursery:
            (url,) = await nursery.start(daemon.run)
            async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
                while not (await client.get("/readyz")).json()["ready"]:
                    await wait_all_tasks_blocked(0.01)
            yield Ending(daemon, server, url)
            daemon.closing.set()


def call(id_: int, **meta: Any) -> dict[str, Any]:
    params = {**PARAMS, "_meta": meta} if meta else PARAMS
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def assert_told(answer: dict[str, Any], id_: int, *, repeatable: bool = False) -> None:
    assert answer["id"] == id_
    assert answer["error"]["code"] == ShuttingDown.code
    assert answer["error"]["data"] == {"type": "shutdown", "outcome": "unknown", "retryable": repeatable}


async def by_json(ending: Ending, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    """Ask, end the daemon when the call runs, and return the answer."""
    answers: list[httpx2.Response] = []
    async with httpx2.AsyncClient(base_url=ending.url, timeout=30) as client, trio.open_nursery() as nursery:

        async def ask() -> None:
            answers.append(await client.post("/mcp", json=body, headers=headers))

        nursery.start_soon(ask)
        await ending.in_flight(1)
        ending.end()
    answered: dict[str, Any] = answers[0].json()
    return answered


async def by_stream(ending: Ending, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    """Ask, end the daemon when the answer is late and has become a stream, and return the one event of that."""
    async with (
        httpx2.AsyncClient(base_url=ending.url, timeout=30) as client,
        client.stream("POST", "/mcp", json=body, headers=headers) as answer,
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        ending.end()
        text = (await answer.aread()).decode()
    (line,) = [line for line in text.splitlines() if line.startswith("data: ")]
    event: dict[str, Any] = json.loads(line.removeprefix("data: "))
    return event


ONLY_JSON = {"content-type": "application/json", "accept": "application/json"}
WAYS: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, str]]] = {
    "legacy, JSON": (by_json, call(1), ONLY_JSON),
    "legacy, a late answer": (by_stream, call(1), JSON_HEADERS),
    "modern, JSON": (
        by_json,
        call(1, **ENVELOPE),
        {**modern_headers("tools/call", "execute_mcp_tool"), "accept": "application/json"},
    ),
    "modern, a late answer": (by_stream, call(1, **ENVELOPE), modern_headers("tools/call", "execute_mcp_tool")),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_over_http_that_outlasts_the_drain_gets_a_whole_answer_that_says_so(
    tmp_path: Path, way: str
) -> None:
    ask, body, headers = WAYS[way]
    async with running(tmp_path, sse_keepalive_s=0.05) as ending:
        assert_told(await ask(ending, body, headers), 1)


@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_call_that_outlasts_the_drain_may_be_repeated_if_its_tool_says_so(tmp_path: Path, hint: str) -> None:
    ask, body, headers = WAYS["legacy, JSON"]
    async with running(tmp_path, {"annotations": {hint: True}}) as ending:
        assert_told(await ask(ending, body, headers), 1, repeatable=True)


@pytest.mark.case("D01")
async def test_calls_over_websocket_that_outlast_the_drain_are_told_so_before_it_closes(tmp_path: Path) -> None:
    async with running(tmp_path) as ending, ending.websocket() as socket:
        for id_ in range(3):
            await socket.send_message(json.dumps(call(id_, **ENVELOPE)))
        await ending.in_flight(3)
        ending.end()
        answers = [json.loads(await socket.get_message()) for _ in range(3)]
        for id_, answer in enumerate(sorted(answers, key=lambda answer: answer["id"])):
            assert_told(answer, id_)
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        reason = caught.value.reason
        assert reason is not None
        assert reason.code == 1001


@pytest.mark.case("D01")
async def test_calls_that_end_within_the_drain_are_answered_and_new_ones_refused(tmp_path: Path) -> None:
    async with running(tmp_path, drain_s=20) as ending:
        slow = {"tool_path": "good:sleep", "arguments": {"s": 0.5}}
        message = call(1, **ENVELOPE)
        message["params"] = {**message["params"], "arguments": slow}
        async with ending.websocket() as socket:
            await socket.send_message(json.dumps(message))
            await ending.in_flight(1)
            ending.end()
            await socket.send_message(json.dumps(call(2, **ENVELOPE)))
            refused = json.loads(await socket.get_message())
            assert refused["id"] == 2
            assert refused["error"]["data"] == {"type": "shutdown", "outcome": "not_sent", "retryable": True}
            answer = json.loads(await socket.get_message())
            assert (answer["id"], answer["result"]["structuredContent"]) == (1, {"s": 0.5})


def test_the_drain_leaves_half_of_the_time_to_stop_the_servers() -> None:
    assert Settings().drain_within_s == 5.0
    assert Settings(drain_s=60.0, shutdown_s=10.0).drain_within_s == 5.0
    assert Settings(drain_s=0.0).drain_within_s == 0.0


@pytest.mark.case("D01")
async def test_of_many_calls_the_short_ones_are_answered_the_long_ones_told_and_nobody_else_comes_in(
    tmp_path: Path,
) -> None:
    short, long = range(30), range(30, 35)
    answers: dict[int, dict[str, Any]] = {}
    async with (
        running(tmp_path, drain_s=2) as ending,
        httpx2.AsyncClient(base_url=ending.url, timeout=30) as client,
        trio.open_nursery() as nursery,
    ):

        async def ask(number: int, name: str, arguments: dict[str, Any]) -> None:
            body = call(number)
            body["params"] = {**PARAMS, "arguments": {"tool_path": f"good:{name}", "arguments": arguments}}
            answers[number] = (await client.post("/mcp", json=body, headers=JSON_HEADERS)).json()

        for number in short:
            nursery.start_soon(ask, number, "sleep", {"s": 1})
        for number in long:
            nursery.start_soon(ask, number, "hang", {})
        await ending.in_flight(len(short) + len(long))
        ending.end()
        await wait_all_tasks_blocked(0.01)
        async with httpx2.AsyncClient(base_url=ending.url) as another:
            with pytest.raises(httpx2.ConnectError):
                await another.get("/readyz")
    assert [answers[number]["result"]["structuredContent"] for number in short] == [{"s": 1}] * len(short)
    for number in long:
        assert_told(answers[number], number)
