"""What clients are told when the daemon ends while their calls run: a whole daemon in this loop, every transport."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from trio_websocket import ConnectionClosed

from actors.errors import ShuttingDown
from supervisor.config import Settings
from supervisor.host.datadir import DataDir
from tests.fakes.front_server import until
from tests.fakes.http_client import JSON_HEADERS, META, MODERN, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import message
from tests.scenario.daemon import A, World, world

PARAMS = {"name": "execute_mcp_tool", "arguments": {"tool_path": "good:hang", "arguments": {}}}
ENVELOPE = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
NO_HINTS: Mapping[str, Any] = {}


def running(
    directory: Path, data: DataDir, hints: Mapping[str, Any] = NO_HINTS, **settings: Any
) -> AbstractAsyncContextManager[World]:
    """A daemon with one server whose tool never answers."""
    fakes = {"good": FakeServer(tools=[tool("hang", **hints), tool("sleep")])}
    return world(directory, data, {"good": A}, fakes, patience_s=30, **{"drain_s": 0.3, **settings})


async def in_flight(at: World, count: int) -> None:
    """Wait until so many calls have reached the server."""
    await until(lambda: at.fakes["good"].count("tools/call") >= count)


def call(id_: int, **meta: Any) -> dict[str, Any]:
    return message("tools/call", {**PARAMS, "_meta": meta} if meta else PARAMS, id_)


def assert_told(answer: dict[str, Any], id_: int, *, repeatable: bool = False) -> None:
    assert answer["id"] == id_
    assert answer["error"]["code"] == ShuttingDown.code
    assert answer["error"]["data"] == {"type": "shutdown", "outcome": "unknown", "retryable": repeatable}


async def by_json(at: World, body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Ask, end the daemon when the call runs, and return the answer."""
    answers: list[httpx2.Response] = []

    async def ask() -> None:
        answers.append(await at.ask("POST", "/mcp", json=body, headers=headers))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await in_flight(at, 1)
        at.closing.set()
    return answers[0].json()


async def by_stream(at: World, body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Ask, end the daemon when the answer is late and has become a stream, and return the one event of that."""
    async with at.http.stream("POST", "/mcp", json=body, headers=headers) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        at.closing.set()
        text = (await answer.aread()).decode()
    (line,) = [line for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(line.removeprefix("data: "))


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
    tmp_path: Path, data: DataDir, way: str
) -> None:
    ask, body, headers = WAYS[way]
    async with running(tmp_path, data, sse_keepalive_s=0.05) as at:
        assert_told(await ask(at, body, headers), 1)


@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_call_that_outlasts_the_drain_may_be_repeated_if_its_tool_says_so(
    tmp_path: Path, data: DataDir, hint: str
) -> None:
    ask, body, headers = WAYS["legacy, JSON"]
    async with running(tmp_path, data, {"annotations": {hint: True}}) as at:
        assert_told(await ask(at, body, headers), 1, repeatable=True)


@pytest.mark.case("D01")
async def test_calls_over_websocket_that_outlast_the_drain_are_told_so_before_it_closes(
    tmp_path: Path, data: DataDir
) -> None:
    async with running(tmp_path, data) as at, at.socket("/mcp") as socket:
        for id_ in range(3):
            await socket.send(call(id_, **ENVELOPE))
        await in_flight(at, 3)
        at.closing.set()
        answers = [await socket.next() for _ in range(3)]
        for id_, answer in enumerate(sorted(answers, key=lambda answer: answer["id"])):
            assert_told(answer, id_)
        with pytest.raises(ConnectionClosed) as caught:
            await socket.next()
        reason = caught.value.reason
        assert reason is not None
        assert reason.code == 1001


@pytest.mark.case("D01")
async def test_calls_that_end_within_the_drain_are_answered_and_new_ones_refused(tmp_path: Path, data: DataDir) -> None:
    async with running(tmp_path, data, drain_s=20) as at:
        slow = {"tool_path": "good:sleep", "arguments": {"s": 0.5}}
        first = call(1, **ENVELOPE)
        first["params"] = {**first["params"], "arguments": slow}
        async with at.socket("/mcp") as socket:
            await socket.send(first)
            await in_flight(at, 1)
            at.closing.set()
            await socket.send(call(2, **ENVELOPE))
            refused = await socket.next()
            assert refused["id"] == 2
            assert refused["error"]["data"] == {"type": "shutdown", "outcome": "not_sent", "retryable": True}
            answer = await socket.next()
            assert (answer["id"], answer["result"]["structuredContent"]) == (1, {"s": 0.5})


def test_the_drain_leaves_half_of_the_time_to_stop_the_servers() -> None:
    assert Settings().drain_within_s == 5.0
    assert Settings(drain_s=60.0, shutdown_s=10.0).drain_within_s == 5.0
    assert Settings(drain_s=0.0).drain_within_s == 0.0


@pytest.mark.case("D01")
async def test_of_many_calls_the_short_ones_are_answered_the_long_ones_told_and_nobody_else_comes_in(
    tmp_path: Path, data: DataDir
) -> None:
    short, long = range(30), range(30, 35)
    answers: dict[int, dict[str, Any]] = {}
    async with running(tmp_path, data, drain_s=2) as at, trio.open_nursery() as nursery:

        async def ask(number: int, name: str, arguments: dict[str, Any]) -> None:
            body = call(number)
            body["params"] = {**PARAMS, "arguments": {"tool_path": f"good:{name}", "arguments": arguments}}
            answers[number] = (await at.ask("POST", "/mcp", json=body, headers=JSON_HEADERS)).json()

        for number in short:
            nursery.start_soon(ask, number, "sleep", {"s": 1})
        for number in long:
            nursery.start_soon(ask, number, "hang", {})
        await in_flight(at, len(short) + len(long))
        at.closing.set()
        await wait_all_tasks_blocked(0.01)
        async with httpx2.AsyncClient(base_url=at.url) as another:
            with pytest.raises(httpx2.ConnectError):
                await another.get("/readyz")
    assert [answers[number]["result"]["structuredContent"] for number in short] == [{"s": 1}] * len(short)
    for number in long:
        assert_told(answers[number], number)
