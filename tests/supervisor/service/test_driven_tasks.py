"""Calls of which servers make tasks, for clients that do not speak their tasks: at every door they are plain calls."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.input_required import Retry
from actors.server import ServerSettings
from supervisor.config import ServerConfig
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.client import Client
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.json_texts import raw
from tests.fakes.published import Served, served
from tests.fakes.task_server import DONE, EITHER, EXTENSION, LATER, NEVER, TaskServer

EVERYTHING = msgspec.Raw(OF_CLIENTS)
LEGACY = Client(version="2025-11-25", capabilities=EVERYTHING)
OLD = Client(version="2024-11-05")
MODERN = Client(era="modern", version="2026-07-28", capabilities=EVERYTHING)
TASKED = Client(
    era="modern", version="2026-07-28", capabilities=msgspec.Raw(json.dumps({"extensions": {EXTENSION: {}}}).encode())
)
DOORS = {"servers/t": "later", "all": "t__later", "": "execute_mcp_tool"}
START = ServerSettings(terms=Terms(capabilities=OF_CLIENTS))


@asynccontextmanager
async def running_one(clock: MockClock, server: TaskServer, start: ServerSettings = START) -> AsyncIterator[Served]:
    """Run a gateway before one server, which may ask; from then on time passes as fast as it can."""
    entry = ServerConfig(name="t", command="x")
    async with served({"t": server}, era=server.era, start=start, entries=[entry]) as running:
        clock.autojump_threshold = 0
        yield running
        clock.autojump_threshold = math.inf


def params(door: str, **more: Any) -> bytes:
    arguments = {"tool_path": "t:later", "arguments": {}} if not door else {}
    return json.dumps({"name": DOORS[door], "arguments": arguments, **more}).encode()


async def call(running: Served, door: str, client: Client, ear: Ear | None = None, **more: Any) -> Any:
    asked = exchange(client, "tools/call", params(door, **more), ear=ear, questions=QuestionTable())
    return await running.answer(asked, door)


def text(answered: Any) -> str:
    return str(answered["result"]["content"][0]["text"])


@pytest.mark.parametrize("hasty", [False, True])
@pytest.mark.parametrize("client", [LEGACY, OLD, MODERN])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_such_a_call_has_the_result_of_its_task(
    era: Era, door: str, client: Client, hasty: bool, mock_clock: MockClock
) -> None:
    server = TaskServer(era, hasty=hasty)
    async with running_one(mock_clock, server) as running:
        result = (await call(running, door, client))["result"]
        assert {key: result[key] for key in DONE} == DONE
        assert result.get("resultType") == ("complete" if client is MODERN else None)
        assert "related-task" not in json.dumps(result)
        assert server.methods().count("tools/call") == server.made == 1
        if era == "legacy" and not hasty:
            assert server.methods() == ["tools/call", "tasks/result"]
        else:
            assert 5 <= server.methods().count("tasks/get") <= 8


@pytest.mark.parametrize("client", [LEGACY, MODERN, TASKED])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_is_picked_is_picked_of_the_result_of_the_task(
    era: Era, client: Client, mock_clock: MockClock
) -> None:
    server = TaskServer(era, done={"content": [], "structuredContent": {"picture": "p", "log": "l" * 2000}})
    arguments = {"tool_path": "t:later", "arguments": {}, "pick": ["$.picture"]}
    extra: list[dict[str, Any]] = [{}, {"task": {}}] if client is LEGACY else [{}]
    for more in extra:
        async with running_one(mock_clock, server) as running:
            said = json.dumps({"name": "execute_mcp_tool", "arguments": arguments, **more}).encode()
            result = (await running.answer(exchange(client, "tools/call", said)))["result"]
            assert result["structuredContent"]["picked"] == "p"
    assert server.made


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_tool_is_listed_like_others(era: Era, mock_clock: MockClock) -> None:
    async with running_one(mock_clock, TaskServer(era)) as running:
        for door, before in (("servers/t", ""), ("all", "t__")):
            listed = await running.ask("tools/list", LEGACY, door)
            assert [tool["name"] for tool in listed["result"]["tools"]] == [
                f"{before}{tool['name']}" for tool in (LATER, EITHER, NEVER)
            ]


async def test_a_tool_is_called_plainly_where_its_server_does_not_declare_tasks(mock_clock: MockClock) -> None:
    server = TaskServer(capabilities={"tools": {}, "tasks": {"list": {}}})
    async with running_one(mock_clock, server) as running:
        assert "requires task augmentation" in str(await call(running, "servers/t", LEGACY))
        assert server.methods() == ["tools/call"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_legacy_client_is_asked_during_the_task(era: Era, door: str, mock_clock: MockClock) -> None:
    server, ear, questions = TaskServer(era, ask=2), Ear(), QuestionTable()
    async with running_one(mock_clock, server) as running:
        asked = exchange(LEGACY, "tools/call", params(door), ear=ear, questions=questions)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_forms, ear, questions, 2)
            result = await running.answer(asked, door)
        assert text(result) == "done"
        assert [got["content"] for got in server.got] == [{"n": 0}, {"n": 1}]
        assert "related-task" not in json.dumps(ear.heard)


async def answer_forms(ear: Ear, questions: QuestionTable, count: int) -> None:
    """Answer so many forms, in their order, each a while after it was asked."""
    for number in range(count):
        await trio.sleep(5)
        accepted = {"action": "accept", "content": {"n": number}}
        assert questions.on_answer(ear.heard[number]["id"], raw(accepted), msgspec.Raw(b""))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_modern_client_is_asked_by_rounds(era: Era, door: str, mock_clock: MockClock) -> None:
    server = TaskServer(era, ask=1)
    async with running_one(mock_clock, server) as running:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.gateway.parts.parking.run, trio.Event())
            required = (await call(running, door, MODERN))["result"]
            assert required["resultType"] == "input_required"
            (key,) = required["inputRequests"]
            answers = {key: {"action": "accept", "content": {"n": 7}}}
            again = exchange(MODERN, "tools/call", params(door))
            again.retry = Retry(raw(answers), raw(required["requestState"]))
            assert text(await running.answer(again, door)) == "done"
            nursery.cancel_scope.cancel()
        assert [got["content"] for got in server.got] == [{"n": 7}]
        assert server.made == 1


async def test_a_client_that_cannot_be_asked_costs_the_task_its_answer(mock_clock: MockClock) -> None:
    server = TaskServer("modern", ask=1)
    async with running_one(mock_clock, server) as running:
        assert text(await call(running, "servers/t", LEGACY)) == "done"
        assert server.got == [{"action": "cancel"}]


async def test_progress_passes(mock_clock: MockClock) -> None:
    ear = Ear()
    async with running_one(mock_clock, TaskServer(tells=True)) as running:
        assert text(await call(running, "all", LEGACY, ear, _meta={"progressToken": "mine"})) == "done"
    assert [(message["method"], message["params"]["progressToken"]) for message in ear.heard] == [
        ("notifications/progress", "mine")
    ]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_error_of_the_task_is_the_error_of_the_call(era: Era, mock_clock: MockClock) -> None:
    server = TaskServer(era, fails={"code": -32000, "message": "out of paper"})
    async with running_one(mock_clock, server) as running:
        assert (await call(running, "servers/t", LEGACY))["error"]["message"] == "out of paper"
        assert "out of paper" in text(await call(running, "", LEGACY))


@pytest.mark.parametrize("hasty", [False, True])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_whoever_goes_away_cancels_the_task(era: Era, hasty: bool, mock_clock: MockClock) -> None:
    server = TaskServer(era, work_s=30, hasty=hasty)
    async with running_one(mock_clock, server) as running:
        with trio.move_on_after(2.2):
            await call(running, "servers/t", LEGACY)
        await trio.sleep(1)
        assert server.jobs["own-1"].status == "cancelled"
        assert running.actors["t"].status().in_flight == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_it_may_take_as_long_as_any_call_and_no_longer(era: Era, mock_clock: MockClock) -> None:
    settings = ServerSettings(call_max_s=200)
    for work_s, done in ((150, True), (250, False)):
        server = TaskServer(era, work_s=work_s, poll=5000)
        async with running_one(mock_clock, server, settings) as running:
            began = trio.current_time()
            answered = await call(running, "servers/t", LEGACY)
            assert ("did not answer" not in text(answered)) is done
            assert trio.current_time() - began == pytest.approx(min(work_s, 200), abs=1)
            await trio.sleep(1)
            assert server.jobs["own-1"].status == ("completed" if done else "cancelled")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_death_of_the_server_is_an_error_and_the_call_is_not_made_again(
    era: Era, mock_clock: MockClock
) -> None:
    server = TaskServer(era, work_s=30)
    async with running_one(mock_clock, server) as running, trio.open_nursery() as nursery:
        nursery.start_soon(die_after, server, 2.0)
        answered = await call(running, "servers/t", LEGACY)
        assert answered["result"]["structuredContent"]["error"]["outcome"] == "unknown"
        await trio.sleep(60)
        assert server.made == 1


async def die_after(server: TaskServer, seconds: float) -> None:
    await trio.sleep(seconds)
    server.end.set()
