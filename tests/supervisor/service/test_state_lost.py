"""What a server holds in memory ends with its process: it sleeps late, and whoever had called it is told, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.life.states import State
from actors.messages import RestartServer
from actors.server import ServerSettings
from supervisor.service.client import Client
from supervisor.service.fitting.relay import STATE_KEY
from tests.fakes.memory import MemoryPeer
from tests.fakes.published import Publisher, Served, served

PAGES = "the pages that were open in its browser"
TOOL = {"name": "look", "inputSchema": {"type": "object"}}
KNOWN = ServerSettings(known_to_hold=PAGES)
MINUTE, HOUR = 60, 3600
ONE, TWO, NEW = (Client(version="2025-11-25", session=session) for session in ("one", "two", "new"))


@dataclass
class Browser(Publisher):
    """Has its page in memory: in a new process there is none, which fails once, and then it is open again."""

    open_in: int = 1
    process: int = 0
    states: list[str] = field(default_factory=list)

    async def serve(self, peer: MemoryPeer) -> int:
        self.process += 1
        return await super().serve(peer)

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        failed, self.open_in = self.open_in != self.process, self.process
        return {"content": [{"type": "text", "text": "no page" if failed else "the page"}], "isError": failed}


async def texts(running: Served, client: Client = ONE) -> list[str]:
    """Call its tool by the meta-tool; return the texts that a model sees."""
    called = {"tool_path": "s/look", "arguments": {}}
    result = await running.result("tools/call", client, name="execute_mcp_tool", arguments=called)
    return [block["text"] for block in result["content"]]


async def passes(clock: MockClock, seconds: float) -> None:
    for _ in range(int(seconds // 10)):
        clock.jump(10)
        await wait_all_tasks_blocked()


def state(running: Served) -> State:
    return running.actors["s"].life.state


async def test_the_first_answer_of_a_new_process_says_what_is_lost_once_to_each_client(
    mock_clock: MockClock,
) -> None:
    async with served({"s": Browser([TOOL])}, start=KNOWN) as running:
        assert await texts(running) == await texts(running, TWO) == ["the page"]
        await passes(mock_clock, HOUR + MINUTE)
        assert state(running) is State.DORMANT
        told = await texts(running)
        assert told[0] == "no page"
        assert told[1:] == [f"Note: server 's' is a new process since your last call, which has lost {PAGES}."]
        assert await texts(running) == ["the page"]
        assert len(await texts(running, TWO)) == 2
        assert len(await texts(running, TWO)) == 1
        assert await texts(running, NEW) == ["the page"]


async def test_it_does_not_matter_why_the_process_is_a_new_one(mock_clock: MockClock) -> None:
    async with served({"s": Browser([TOOL])}, start=KNOWN) as running:
        await texts(running)
        await running.router.address.ask(RestartServer(server="s"))
        assert len(await texts(running)) == 2


@pytest.mark.parametrize("door", ["servers/s", "all"])
async def test_at_a_door_where_a_server_stands_for_itself_only_meta_says_it(door: str, mock_clock: MockClock) -> None:
    name = "look" if door == "servers/s" else "s__look"

    async with served({"s": Browser([TOOL])}, start=KNOWN) as running:
        assert "_meta" not in await running.result("tools/call", door=door, name=name, arguments={})
        await passes(mock_clock, HOUR + MINUTE)
        told = await running.result("tools/call", door=door, name=name, arguments={})
        assert told.pop("_meta") == {STATE_KEY: {"server": "s", "lost": PAGES}}
        assert told == {"content": [{"type": "text", "text": "no page"}], "isError": True}


@pytest.mark.parametrize(
    ("settings", "sleeps_after_s"),
    [
        (ServerSettings(), 180),
        (KNOWN, HOUR),
        (ServerSettings(stateful=True), HOUR),
        (ServerSettings(stateful=False, known_to_hold=PAGES), 180),
        (ServerSettings(known_to_hold=PAGES, idle_timeout_s=60), 60),
    ],
)
async def test_a_server_that_holds_something_sleeps_later_unless_it_is_set(
    settings: ServerSettings, sleeps_after_s: float, mock_clock: MockClock
) -> None:
    async with served({"s": Browser([TOOL])}, start=settings) as running:
        await texts(running)
        await passes(mock_clock, sleeps_after_s - 10)
        assert state(running) is State.READY
        await passes(mock_clock, 30)
        assert state(running) is State.DORMANT
        assert len(await texts(running)) == (2 if settings.held else 1)


async def test_a_server_shows_by_two_wakes_that_it_holds_something(mock_clock: MockClock) -> None:
    async with served({"s": Browser([TOOL])}, start=ServerSettings(stateful="learn")) as running:
        for _ in range(2):
            assert "the page" in await texts(running) + await texts(running)
            await passes(mock_clock, 200)
            assert state(running) is State.DORMANT
        assert (await texts(running))[1:] == [
            "Note: server 's' is a new process since your last call, which has lost what it held in memory."
        ]
        await passes(mock_clock, 200)
        assert state(running) is State.READY, "it sleeps later from now on"


@pytest.mark.parametrize("stateful", ["auto", "learn"])
async def test_a_server_that_holds_nothing_is_as_before(stateful: Any, mock_clock: MockClock) -> None:
    async with served({"s": Publisher([TOOL])}, start=ServerSettings(stateful=stateful)) as running:
        for _ in range(4):
            assert await texts(running) == ["done"]
            await passes(mock_clock, 200)
            assert state(running) is State.DORMANT
