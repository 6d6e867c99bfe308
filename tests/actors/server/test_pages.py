"""Large pages of lists are read, and long lists compared, beside the loop. In real time: a virtual clock does not wait
for threads.
"""

from __future__ import annotations

import threading

import pytest
import trio

from actors.catalogue import diff, lists
from actors.catalogue.lists import ListPage
from actors.catalogue.offer import LONG_LIST
from actors.errors import ServerExited
from actors.life.policy import RestartPolicy
from actors.messages import Refreshed
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer, tool

CHANGED = "notifications/tools/list_changed"
AWAKE = ServerSettings(idle_timeout_s=0)
SOON = RestartPolicy(backoff_initial_s=0.01)


def large(number: int) -> list[dict[str, object]]:
    return [tool(f"t{index}", "words " * 100) for index in range(number)]


class Reading:
    """Stands in for the reading of a page: tells that it began, and waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.threads: list[threading.Thread] = []
        monkeypatch.setattr("actors.server.parts.discovery.read_page", self.read)

    def read(self, *arguments: object) -> ListPage:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.go_on.wait(20)
        return lists.read_page(*arguments)  # type: ignore[arg-type]  # passed on as they came


@pytest.mark.parametrize("tools", [large(100), [tool(f"t{number}") for number in range(120)]], ids=["bytes", "entries"])
async def test_calls_are_answered_while_a_large_page_is_read(
    monkeypatch: pytest.MonkeyPatch, tools: list[dict[str, object]]
) -> None:
    async with running_server(FakeServer()) as rig:
        await rig.wake()
        reading = Reading(monkeypatch)
        rig.fake.tools = tools
        await rig.fake.notify(CHANGED)
        with trio.fail_after(20):
            await trio.to_thread.run_sync(reading.begun.wait)
            assert await rig.call(a=1) == {"a": 1}
            reading.go_on.set()
            await rig.until_listed(2)
        assert len(rig.listed[1]) == len(tools)
        assert threading.main_thread() not in reading.threads


async def test_a_server_that_dies_while_its_page_is_read_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_server(FakeServer(), settings=AWAKE, policy=SOON) as rig:
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


def long(description: str, first: int = 0) -> list[dict[str, object]]:
    return [tool("echo"), *(tool(f"t{number}", description) for number in range(first, first + LONG_LIST))]


class Comparing:
    """Stands in for the search for renamed tools, a part of comparing two lists: tells that it began, and waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.threads: list[threading.Thread] = []
        self._renames = diff.find_renames
        monkeypatch.setattr(diff, "find_renames", self.find)

    def find(self, *tools: object) -> dict[str, str]:
        self.threads.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            self.begun.set()
            assert self.go_on.wait(20)
        return self._renames(*tools)  # type: ignore[arg-type]  # passed on as they came


async def test_a_long_list_is_compared_beside_the_loop_and_all_of_it_comes_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls go on, nothing is told before, and a change that is told of meanwhile is read after."""
    async with running_server(FakeServer(tools=long("old"))) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        comparing, answers = Comparing(monkeypatch), list[Refreshed]()

        async def refresh() -> None:
            answers.append(await rig.refresh())

        rig.fake.tools = long("new", 1)
        nursery.start_soon(refresh)
        with trio.fail_after(20):
            assert await trio.to_thread.run_sync(comparing.begun.wait, 10)
            assert await rig.call(a=1) == {"a": 1}
            assert (len(rig.listed), answers) == (1, [])
            rig.fake.tools = long("newest", 1)
            await rig.fake.notify(CHANGED)
            assert await rig.call(a=2) == {"a": 2}  # what was told before has arrived
            comparing.go_on.set()
            await rig.until_listed(3)
        changed = tuple(sorted(f"t{number}" for number in range(1, LONG_LIST)))
        added, removed = (f"t{LONG_LIST}",), ("t0",)
        assert answers == [Refreshed(tools=LONG_LIST + 1, added=added, removed=removed, changed=changed)]
        told = [text for text in rig.story if text.startswith("its tools changed")]
        first = ", ".join(changed[:5])
        assert told[0] == (
            f"its tools changed: +1 (t{LONG_LIST}), -1 (t0), ~{LONG_LIST - 1} ({first}, ...); {LONG_LIST + 1} now"
        )
        assert len(told) == 2
        assert threading.main_thread() not in comparing.threads


async def test_a_server_that_dies_while_its_list_is_compared_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_server(FakeServer(tools=long("old")), settings=AWAKE, policy=SOON) as rig:
        await rig.wake()
        comparing = Comparing(monkeypatch)
        rig.fake.tools = long("new", 1)
        await rig.fake.notify(CHANGED)
        with trio.fail_after(20):
            assert await trio.to_thread.run_sync(comparing.begun.wait, 10)
            rig.fake.tools = [tool("after")]
            with pytest.raises(ServerExited):
                await rig.call("crash")
            comparing.go_on.set()
            await rig.wake()
            await rig.until_listed(2)
            assert [len(names) for names in rig.listed] == [LONG_LIST + 1, 1]


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
