"""What servers list is looked at by plugins before anybody sees it, and nothing overtakes that."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue import trust
from actors.catalogue.offer import LONG_LIST, Offer
from actors.catalogue.tool_rules import ToolChanges
from actors.catalogue.trust import Judged
from actors.launch import launch_name
from actors.life.states import State
from actors.messages import ServerRemoved
from actors.registry.actor import Registry
from actors.registry.reviews import AGAIN_S, ReviewAgain
from actors.registry_inbox import AwaitShown, LaunchesRecalled
from tests.actors.registry.test_registry import Rig, changed, listed, offering


class Plugins:
    """Hide tools called `hidden`; each review waits while `gate` is there."""

    def __init__(self) -> None:
        self.active = True
        self.hidden = "hidden"
        self.fails = False
        self.gate: trio.Event | None = None
        self.reviewed: list[list[str]] = []
        self.times: list[float] = []
        self.told: list[tuple[str, list[str]]] = []

    async def review(self, server: str, own: Offer) -> ToolChanges:
        await trio.lowlevel.checkpoint()
        self.reviewed.append([tool.name for tool in own.tools])
        self.times.append(trio.current_time())
        if self.gate is not None:
            await self.gate.wait()
        rejected = {tool.name: "no" for tool in own.tools if tool.name == self.hidden}
        return ToolChanges(rejected=rejected, failed=self.fails)

    async def tell(self, server: str, own: Offer, changes: ToolChanges) -> None:
        await trio.lowlevel.checkpoint()
        self.told.append((server, [*changes.rejected]))


@asynccontextmanager
async def running(plugins: Plugins, **known: Offer) -> AsyncIterator[Rig]:
    rig = Rig({}, rules=None)
    reviewed = {name: await plugins.review(name, offer) for name, offer in known.items()}
    offers = {name: ("stdio", offer) for name, offer in known.items()}
    rig.registry = Registry(offers, rig.kept, rig.count, lambda: 5.0, reviewer=plugins, reviewed=reviewed)
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.registry.run)
        nursery.start_soon(rig.watch)
        yield rig
        nursery.cancel_scope.cancel()


def tools_of(seen: Any, server: str = "s") -> list[str]:
    return [*seen.entries[server].tools] if server in seen.entries else []


async def test_nobody_sees_a_tool_before_plugins_have_looked_at_it() -> None:
    plugins = Plugins()
    plugins.gate = trio.Event()
    async with running(plugins) as rig:
        await rig.tell(listed("s", offering("a", "hidden")))
        await wait_all_tasks_blocked()
        assert rig.registry.catalogue.value.entries == {}
        plugins.gate.set()
        seen = await rig.until(lambda seen: "s" in seen.entries)
        assert tools_of(seen) == ["a"]
        assert seen.entries["s"].offer.problems == ("tool 'hidden' is hidden by no",)
        assert [tool.name for tool in rig.kept.offers["s"].tools] == ["a", "hidden"]  # what the server says is kept
        await wait_all_tasks_blocked()
        assert plugins.told == [("s", ["hidden"])]


async def test_of_several_lists_the_newest_is_shown_and_whoever_waits_is_answered_after_it() -> None:
    plugins = Plugins()
    plugins.gate = trio.Event()
    shown: list[list[str]] = []
    async with running(plugins) as rig, trio.open_nursery() as nursery:

        async def wait() -> None:
            await rig.registry.address.ask(AwaitShown(server="s"))
            shown.append(tools_of(rig.registry.catalogue.value))

        await rig.tell(listed("s", offering("a")))
        await wait_all_tasks_blocked()
        await rig.tell(listed("s", offering("b")), listed("s", offering("c")))
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert (plugins.reviewed, shown) == ([["a"]], [])
        plugins.gate.set()
        await rig.until(lambda seen: tools_of(seen) == ["c"])
        await wait_all_tasks_blocked()
        assert (plugins.reviewed, shown) == ([["a"], ["c"]], [["c"]])


async def test_a_long_list_is_judged_beside_the_loop_and_whoever_waits_is_answered_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on, threads, real = threading.Event(), threading.Event(), list[threading.Thread](), trust.judge

    def judge(*arguments: Any) -> Judged:
        threads.append(threading.current_thread())
        begun.set()
        assert go_on.wait(20)
        return real(*arguments)

    plugins, many = Plugins(), [f"t{number}" for number in range(LONG_LIST + 1)]
    plugins.active = False
    async with running(plugins) as rig, trio.open_nursery() as nursery:
        with monkeypatch.context() as patch, trio.fail_after(20):
            patch.setattr(trust, "judge", judge)
            await rig.tell(listed("s", offering(*many)))
            assert await trio.to_thread.run_sync(begun.wait, 10)
            shown = rig.registry.address.request(AwaitShown(server="s"))
            await rig.tell(listed("s", offering("newest", *many)))
            await wait_all_tasks_blocked()
            assert (rig.registry.catalogue.value.entries, shown.settled) == ({}, False)
            go_on.set()
            await shown.wait()
            assert tools_of(rig.registry.catalogue.value) == ["newest", *many]
        assert threading.main_thread() not in threads
        assert (plugins.reviewed, plugins.told) == ([], [])
        nursery.cancel_scope.cancel()


async def test_a_server_that_is_removed_meanwhile_does_not_come_back() -> None:
    plugins = Plugins()
    plugins.gate = trio.Event()
    async with running(plugins) as rig:
        await rig.tell(changed("s", State.READY), listed("s", offering("a")))
        await wait_all_tasks_blocked()
        await rig.tell(ServerRemoved(server="s"))
        plugins.gate.set()
        await rig.registry.address.ask(AwaitShown(server="s"))
        await wait_all_tasks_blocked()
        assert rig.registry.catalogue.value.entries == {}


async def test_other_plugins_are_asked_again_about_all_that_is_known() -> None:
    plugins = Plugins()
    async with running(plugins, s=offering("a", "hidden"), t=offering("b")) as rig:
        plugins.hidden = "b"
        await rig.tell(ReviewAgain())
        seen = await rig.until(lambda seen: tools_of(seen, "t") == [])
        assert tools_of(seen) in (["a"], ["a", "hidden"])
        await rig.until(lambda seen: tools_of(seen) == ["a", "hidden"])
        plugins.active, plugins.hidden = False, ""
        await rig.tell(ReviewAgain(), listed("t", offering("b", "c")))
        await rig.until(lambda seen: tools_of(seen, "t") == ["b", "c"])


async def test_a_list_behind_one_that_is_looked_at_is_not_overtaken_when_plugins_go() -> None:
    plugins = Plugins()
    plugins.gate = trio.Event()
    async with running(plugins) as rig:
        await rig.tell(listed("s", offering("old")))
        await wait_all_tasks_blocked()
        plugins.active = False
        await rig.tell(listed("s", offering("new")))
        plugins.gate.set()
        await rig.until(lambda seen: tools_of(seen) == ["new"])
        await wait_all_tasks_blocked()
        assert tools_of(rig.registry.catalogue.value) == ["new"]


async def test_a_list_that_is_being_looked_at_is_looked_at_again_by_other_plugins() -> None:
    plugins = Plugins()
    plugins.gate = trio.Event()
    async with running(plugins) as rig:
        plugins.gate.set()
        await rig.tell(listed("s", offering("old")))
        await rig.until(lambda seen: tools_of(seen) == ["old"])
        plugins.gate = trio.Event()
        await rig.tell(listed("s", offering("new", "other")))
        await wait_all_tasks_blocked()
        plugins.hidden = "other"
        await rig.tell(ReviewAgain())
        await wait_all_tasks_blocked()
        plugins.gate.set()
        await rig.until(lambda seen: tools_of(seen) == ["new"])
        assert plugins.reviewed == [["old"], ["new", "other"], ["new", "other"]]


async def test_launches_of_people_are_looked_at_before_they_are_recalled() -> None:
    launch = launch_name("s", "0" * 16)
    async with running(Plugins()) as rig:
        await rig.registry.address.ask(LaunchesRecalled({launch: ("stdio", offering("a", "hidden"))}))
        assert [*rig.registry.catalogue.value.own[launch].tools] == ["a"]


async def test_a_plugin_that_failed_is_asked_again_later(autojump_clock: MockClock) -> None:
    plugins = Plugins()
    plugins.fails = True
    async with running(plugins) as rig:
        await rig.tell(listed("s", offering("a", "late")))
        await rig.registry.address.ask(AwaitShown(server="s"))
        assert tools_of(rig.registry.catalogue.value) == ["a", "late"]
        plugins.fails, plugins.hidden = False, "late"
        await trio.sleep(2 * AGAIN_S)
        await rig.registry.address.ask(AwaitShown(server="s"))
        assert tools_of(rig.registry.catalogue.value) == ["a"]
        assert all(later - earlier >= AGAIN_S for earlier, later in pairwise(plugins.times))
        assert len(plugins.times) > 1
        reviews = len(plugins.reviewed)
        await trio.sleep(3 * AGAIN_S)
        assert len(plugins.reviewed) == reviews
