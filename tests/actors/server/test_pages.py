"""Large pages of lists are read beside the loop. In real time: a virtual clock does not wait for threads."""

from __future__ import annotations

import threading

import pytest
import trio

from actors.catalogue.lists import pages
from actors.catalogue.lists.pages import ListPage
from actors.errors import ServerExited
from actors.life.states import State
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer, tool

CHANGED = "notifications/tools/list_changed"
AWAKE = ServerSettings(idle_timeout_s=0)


def large(number: int) -> list[dict[str, object]]:
    return [tool(f"t{index}", "words " * 100) for index in range(number)]


class Reading:
    """Stands in for the reading of a page: tells that it began, and waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.threads: list[threading.Thread] = []
        monkeypatch.setattr("actors.server.lists.discovery.read_page", self.read)

    def read(self, *arguments: object) -> ListPage:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.go_on.wait(20)
        return pages.read_page(*arguments)  # type: ignore[arg-type]  # passed on as they came


@pytest.mark.parametrize("tools", [large(100), [tool(f"t{number}") for number in range(120)]], ids=["bytes", "entries"])
async def test_a_large_page_is_read_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, tools: list[dict[str, object]]
) -> None:
    reading = Reading(monkeypatch)
    with trio.fail_after(20):
        async with running_server(FakeServer(tools=tools)) as rig, trio.open_nursery() as nursery:
            nursery.start_soon(rig.wake)
            await trio.to_thread.run_sync(reading.begun.wait)
            assert (await rig.status()).state is State.DISCOVERING
            reading.go_on.set()
            await rig.until_listed(1)
            assert len(rig.listed[0]) == len(tools)
            assert threading.main_thread() not in reading.threads


async def test_calls_are_answered_while_a_large_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_server(FakeServer()) as rig:
        await rig.wake()
        reading = Reading(monkeypatch)
        rig.fake.tools = large(100)
        await rig.fake.notify(CHANGED)
        with trio.fail_after(20):
            await trio.to_thread.run_sync(reading.begun.wait)
            assert await rig.call(a=1) == {"a": 1}
            reading.go_on.set()
            await rig.until_listed(2)


async def test_a_server_that_dies_while_its_page_is_read_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_server(FakeServer(), settings=AWAKE) as rig:
        await rig.wake()
        reading = Reading(monkeypatch)
        rig.fake.tools = large(100)
        await rig.fake.notify(CHANGED)
        with trio.fail_after(20):
            await trio.to_thread.run_sync(reading.begun.wait)
            rig.fake.tools = [tool("after")]
            with pytest.raises(ServerExited):
                await rig.call("crash")
            reading.go_on.set()
            await rig.wake()
            await rig.until_listed(2)
            assert rig.listed == [["echo"], ["after"]]


async def test_a_page_that_found_no_thread_is_read_once_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = 2
    run = trio.to_thread.run_sync

    async def scarce(*arguments: object, **more: object) -> object:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            await trio.lowlevel.checkpoint()
            raise RuntimeError("can't start new thread")
        return await run(*arguments, **more)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(trio.to_thread, "run_sync", scarce)
    with trio.fail_after(20):
        async with running_server(FakeServer(tools=large(100))) as rig:
            await rig.wake()
            await rig.until_listed(1)
            assert len(rig.listed[0]) == 100
