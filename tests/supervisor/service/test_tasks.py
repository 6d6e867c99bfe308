"""Tasks of clients whose servers speak them in the same way: at the doors of servers, each belongs to who made it."""

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

from actors.life.states import State
from actors.messages import RestartServer, Result
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.capabilities import OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.agreement.versions import Era
from actors.protocol.tasks import UnknownTask
from actors.server import ServerSettings
from supervisor.config import ServerConfig
from supervisor.service.asking.exchange import QuestionTable
from supervisor.service.asking.rounds import SealedNames
from supervisor.service.client import Client
from supervisor.service.tasks import HeldTasks
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import Ear, exchange
from tests.fakes.published import Served, served
from tests.fakes.task_server import DONE, EXTENSION, RELATED, TaskServer

DECLARED = {**json.loads(OF_CLIENTS), "extensions": {EXTENSION: {}}}
CLIENTS: dict[Era, Client] = {
    "legacy": Client(version="2025-11-25", capabilities=msgspec.Raw(OF_CLIENTS)),
    "modern": Client(era="modern", version="2026-07-28", capabilities=msgspec.Raw(json.dumps(DECLARED).encode())),
}
DOORS = {"servers/t": "", "all": "t__"}
TTL = {"ttl": 60_000}
ENTRY = ServerConfig(name="t", command="x")
both = pytest.mark.parametrize("era", ["legacy", "modern"])
everywhere = pytest.mark.parametrize("door", DOORS)


class Rig:
    """A gateway before one server, and a client of its era."""

    def __init__(self, running: Served, server: TaskServer, door: str) -> None:
        self.running = running
        self.server = server
        self.door = door
        self.client = CLIENTS[server.era]
        self.ear, self.questions = Ear(), QuestionTable()

    async def ask(self, method: str, client: Client | None = None, door: str | None = None, **params: Any) -> Any:
        given = json.dumps(params).encode()
        asked = exchange(client or self.client, method, given, ear=self.ear, questions=self.questions)
        return await self.running.answer(asked, self.door if door is None else door)

    async def result(self, method: str, **params: Any) -> Any:
        return (await self.ask(method, **params))["result"]

    async def make(self, tool: str = "later", **more: Any) -> str:
        """Make a task; return its name."""
        wanted = {"task": TTL} if self.client.era == "legacy" else {}
        made = await self.result("tools/call", name=DOORS[self.door] + tool, arguments={}, **wanted, **more)
        task = made["task"] if self.client.era == "legacy" else made
        assert made.get("resultType") == ("task" if self.client.era == "modern" else None)
        assert task["status"] == "working"
        assert "own" not in json.dumps(made).replace(task["taskId"], ""), "in which there may be anything"
        return str(task["taskId"])


@asynccontextmanager
async def rig(clock: MockClock, server: TaskServer, door: str = "all", **start: Any) -> AsyncIterator[Rig]:
    settings = ServerSettings(terms=Terms(capabilities=OF_CLIENTS), **start)
    async with served({"t": server}, era=server.era, start=settings, entries=[ENTRY]) as running:
        clock.autojump_threshold = 0
        yield Rig(running, server, door)
        clock.autojump_threshold = math.inf


@both
@everywhere
async def test_a_task_is_made_asked_for_and_has_its_result(era: Era, door: str, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era), door) as at:
        name = await at.make()
        state = await at.result("tasks/get", taskId=name)
        assert (state["taskId"], state["status"]) == (name, "working")
        assert state.get("resultType") == ("complete" if era == "modern" else None)
        if era == "legacy":
            assert await at.result("tasks/result", taskId=name) == {**DONE, "_meta": {RELATED: {"taskId": name}}}
        await trio.sleep(4)
        state = await at.result("tasks/get", taskId=name)
        assert (state["taskId"], state["status"]) == (name, "completed")
        if era == "modern":
            assert state["result"] == DONE
        assert {params["taskId"] for method, params in at.server.asked if method.startswith("tasks/")} == {"own-1"}


@both
@everywhere
async def test_a_task_is_cancelled(era: Era, door: str, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era, work_s=30), door) as at:
        name = await at.make("either")
        cancelled = await at.result("tasks/cancel", taskId=name)
        if era == "legacy":
            assert (cancelled["taskId"], cancelled["status"]) == (name, "cancelled")
        assert (await at.result("tasks/get", taskId=name))["status"] == "cancelled"
        assert "error" in await at.ask("tasks/cancel", taskId=name)


@everywhere
async def test_questions_of_a_legacy_task_reach_whoever_waits_for_it(door: str, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(ask=1, tells=True), door) as at:
        name, other = await at.make(_meta={"progressToken": "mine"}), await at.make()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_one, at, {"action": "accept", "_meta": {RELATED: {"taskId": name}}})
            assert (await at.result("tasks/result", taskId=name))["_meta"] == {RELATED: {"taskId": name}}
        asked = next(message for message in at.ear.heard if message["method"] == "elicitation/create")
        assert asked["params"]["_meta"] == {RELATED: {"taskId": name}}
        assert at.server.got == [{"action": "accept", "_meta": {RELATED: {"taskId": "own-1"}}}]
        noted = [message for message in at.ear.heard if message["method"].startswith("notifications/")]
        assert [message["method"] for message in noted] == ["notifications/progress", "notifications/tasks/status"]
        assert noted[0]["params"]["progressToken"] == "mine"
        assert noted[1]["params"]["taskId"] == name
        assert (await at.result("tasks/get", taskId=other))["status"] == "input_required"


async def answer_one(at: Rig, given: Any) -> None:
    await trio.sleep(1)
    asked = [message for message in at.ear.heard if message["method"] == "elicitation/create"]
    raw = msgspec.Raw(json.dumps(given).encode())
    assert at.questions.on_answer(asked[0]["id"], raw, msgspec.Raw(b""))


@everywhere
async def test_questions_of_a_modern_task_are_in_its_state(door: str, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer("modern", ask=1), door) as at:
        name = await at.make()
        state = await at.result("tasks/get", taskId=name)
        message = "own-1/0" if door == "servers/t" else "[t] own-1/0"
        assert {key: each["params"]["message"] for key, each in state["inputRequests"].items()} == {"q0": message}
        responses = {"q0": {"action": "decline"}}
        assert await at.result("tasks/update", taskId=name, inputResponses=responses) == {"resultType": "complete"}
        await trio.sleep(4)
        assert (await at.result("tasks/get", taskId=name))["status"] == "completed"
        assert at.server.got == [{"action": "decline"}]


@both
async def test_nobody_else_has_it(era: Era, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era, work_s=30)) as at:
        name = await at.make()
        before = len(at.server.asked)
        foreign = msgspec.structs.replace(at.client, principal=Principal("other"))
        for refused in (
            await at.ask("tasks/get", foreign, taskId=name),
            await at.ask("tasks/cancel", foreign, taskId=name),
            await at.ask("tasks/get", taskId="own-1"),
            await at.ask("tasks/get", taskId=name + "x"),
            await at.ask("tasks/get", taskId="abcdefgh.somename"),
        ):
            assert refused["error"]["code"] == -32602
            assert "no such task" in refused["error"]["message"]
        assert (await at.ask("tasks/get"))["error"]["code"] == -32602
        assert len(at.server.asked) == before


@both
async def test_it_is_known_at_every_door_of_its_server_and_at_no_other(era: Era, mock_clock: MockClock) -> None:
    server, other = TaskServer(era), TaskServer(era)
    settings = ServerSettings(terms=Terms(capabilities=OF_CLIENTS))
    entries = [ENTRY, ServerConfig(name="u", command="x")]
    async with served({"t": server, "u": other}, era=era, start=settings, entries=entries) as running:
        at = Rig(running, server, "all")
        name = await at.make()
        assert (await at.ask("tasks/get", door="servers/t", taskId=name))["result"]["taskId"] == name
        assert (await at.ask("tasks/get", door="servers/u", taskId=name))["error"]["code"] == -32602
        assert (await at.ask("tasks/get", door="", taskId=name))["error"]["code"] == -32601
        assert "tasks/get" not in other.methods()


async def test_whoever_does_not_speak_them_has_no_such_methods(mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer()) as at:
        old = Client(version="2025-06-18")
        plain = Client(era="modern", version="2026-07-28")
        for client, method, code in (
            (old, "tasks/get", -32601),
            (at.client, "tasks/list", -32601),
            (at.client, "tasks/update", -32601),
            (CLIENTS["modern"], "tasks/result", -32601),
            (plain, "tasks/get", -32021),
        ):
            for door in DOORS:
                assert (await at.ask(method, client, door, taskId="x"))["error"]["code"] == code, method
        required = (await at.ask("tasks/get", plain, taskId="x"))["error"]["data"]["requiredCapabilities"]
        assert required == {"extensions": {EXTENSION: {}}}


@pytest.mark.parametrize("tool", ["later", "never"])
async def test_what_another_era_says_of_tasks_is_left_out(tool: str, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer()) as at:
        for client in (Client(version="2025-06-18"), CLIENTS["modern"]):
            answered = await at.ask("tools/call", client, name=f"t__{tool}", arguments={}, task=TTL)
            assert answered["result"]["content"] == DONE["content"]
        assert ["task" in params for method, params in at.server.asked if method == "tools/call"] == [
            tool == "later"
        ] * 2


@both
async def test_its_server_stays_awake_as_long_as_it_may_need_it(era: Era, mock_clock: MockClock) -> None:
    for work_s, ttl, awake_s in ((500, 1_000_000, 440), (500, 200_000, 190), (10_000, None, 590)):
        server = TaskServer(era, work_s=work_s, ttl=ttl)
        async with rig(mock_clock, server, idle_timeout_s=60, task_max_s=600) as at:
            await at.make()
            for pause_s, state in ((awake_s, State.READY), (1000 - awake_s, State.DORMANT)):
                await trio.sleep(pause_s)
                assert at.running.actors["t"].life.state is state


@both
async def test_a_task_that_is_over_keeps_nobody_awake(era: Era, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era, ttl=1_000_000), idle_timeout_s=60) as at:
        name = await at.make()
        await trio.sleep(10)
        assert (await at.result("tasks/get", taskId=name))["status"] == "completed"
        await trio.sleep(70)
        assert at.running.actors["t"].life.state is State.DORMANT


@both
async def test_it_ends_with_the_process_of_its_server(era: Era, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era, work_s=100)) as at:
        name = await at.make()
        await at.running.actors["t"].address.ask(RestartServer(server="t"))
        assert at.server.starts == 2
        refused = (await at.ask("tasks/get", taskId=name))["error"]
        assert (refused["code"], refused["data"]["outcome"]) == (-32602, "unknown")
        assert "has ended since it made this task" in refused["message"]
        assert at.server.methods() == ["tools/call"]
        assert await at.make() != name


async def test_its_time_is_bounded(mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(ttl=30_000)) as at:
        name = await at.make()
        await trio.sleep(31)
        refused = (await at.ask("tasks/get", taskId=name))["error"]
        assert (refused["code"], "is over" in refused["message"]) == (-32602, True)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.service.tasks.MAX_TASKS", 8)


@both
@pytest.mark.usefixtures("few")
async def test_a_running_task_stays_known_whatever_another_client_makes(era: Era, mock_clock: MockClock) -> None:
    async with rig(mock_clock, TaskServer(era, work_s=30)) as at:
        greedy = msgspec.structs.replace(at.client, name="greedy")
        kept = await at.make()
        wanted: dict[str, Any] = {"task": TTL} if era == "legacy" else {}
        made = [await at.ask("tools/call", greedy, name="t__either", arguments={}, **wanted) for _ in range(3)]
        assert ["result" in answer for answer in made] == [True] * 3
        with trio.move_on_after(60):  # a modern client's call goes on without a task
            refused = await at.ask("tools/call", greedy, name="t__either", arguments={}, **wanted)
        if era == "legacy":
            assert (refused["error"]["data"]["type"], refused["error"]["data"]["outcome"]) == ("overloaded", "not_sent")
            assert "tasks of this client are under way" in refused["error"]["message"]
        else:
            assert refused["result"]["content"] == DONE["content"]
        assert (await at.result("tasks/get", taskId=kept))["taskId"] == kept
        assert await at.make("either")


@both
@pytest.mark.usefixtures("few")
async def test_a_task_that_has_ended_makes_room_and_is_not_said_to_have_never_been(
    era: Era, mock_clock: MockClock
) -> None:
    async with rig(mock_clock, TaskServer(era, work_s=1)) as at:
        names = [await at.make() for _ in range(4)]
        await trio.sleep(2)
        assert (await at.result("tasks/get", taskId=names[1]))["status"] == "completed"
        assert await at.make() not in names
        lost = (await at.ask("tasks/get", taskId=names[1]))["error"]
        assert (lost["code"], lost["data"]["outcome"], "no such task" in lost["message"]) == (-32602, "unknown", False)
        assert (await at.result("tasks/get", taskId=names[0]))["taskId"] == names[0]


async def test_tasks_whose_time_is_over_make_room(autojump_clock: MockClock) -> None:
    tasks, client = HeldTasks(deployment(ENTRY), bytes(32)), Client(name="one")
    while tasks.admits(client):
        made = tasks.take_created(
            client, "t", Result(msgspec.Raw(b'{"task":{"taskId":"a","status":"working"}}'), "legacy")
        )
    assert made is not None
    assert tasks.admits(Client(name="other"))
    await trio.sleep(3601)
    assert tasks.admits(client)
    name = json.loads(made)["task"]["taskId"]
    with pytest.raises(UnknownTask, match="not known any more") as lost:
        tasks.find(name, client.principal, "legacy")
    assert lost.value.outcome == "unknown"


def test_what_tells_of_no_task_is_a_result() -> None:
    tasks = HeldTasks(deployment(), bytes(32))
    for body in (b'{"content":[]}', b'{"task":1}', b'{"task":{"taskId":"","status":"working"}}'):
        assert tasks.take_created(Client(), "t", Result(msgspec.Raw(body), "legacy")) is None


@pytest.mark.parametrize(
    ("key", "owner", "outcome"),
    [(bytes(32), LOCAL, "unknown"), (b"k" * 32, LOCAL, "not_sent"), (bytes(32), Principal("other"), "not_sent")],
)
def test_a_task_of_an_earlier_run_is_lost_and_anothers_or_what_only_looks_like_one_never_was(
    key: bytes, owner: Principal, outcome: str
) -> None:
    name = SealedNames(key, b"mcp-task").make(owner)
    said = "before the last start" if outcome == "unknown" else "no such task$"
    with pytest.raises(UnknownTask, match=said) as unknown:
        HeldTasks(deployment(), bytes(32)).find(name, Client().principal, "legacy")
    assert unknown.value.outcome == outcome
