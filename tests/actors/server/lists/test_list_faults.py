"""Servers whose lists never end, always differ or change while they are read: every walk ends, the last list counts."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.life.states import State
from actors.messages import ServerListed
from actors.protocol.listing import ListLimits
from actors.server import ServerSettings
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryPeer

CHANGED = "notifications/tools/list_changed"
AWAKE = ServerSettings(idle_timeout_s=0)


class Endless(FakeServer):
    """Each page has a cursor: behind new tools, behind the same one, or behind none at all. A page takes `page_s`."""

    def __init__(self, kind: str, page_s: float = 0.0) -> None:
        super().__init__()
        self._kind, self._page_s = kind, page_s
        self.pages = 0

    async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
        if message.get("method") == "tools/list":
            await trio.sleep(self._page_s)
        await super()._on_message(peer, message, nursery)

    def _page(self, cursor: str | None) -> dict[str, Any]:
        self.pages += 1
        fresh = [tool(f"t{self.pages}-{number}") for number in range(100)]
        tools = {"fresh": fresh, "same": [tool("echo")], "empty": []}[self._kind]
        return {"tools": tools, "nextCursor": f"c{self.pages}" if self._kind == "fresh" else "c"}


@pytest.mark.case("L01", "L04")
@pytest.mark.parametrize(
    ("kind", "page_s", "pages", "tools", "problem"),
    [
        pytest.param("fresh", 0.0, 11, 1000, "cut at 1000 entries", id="new tools"),
        pytest.param("fresh", 5.0, 8, 800, "cut at 30 s", id="new tools, slowly"),
        pytest.param("same", 0.0, 2, 1, None, id="the same tool"),
        pytest.param("empty", 0.0, 1, 0, None, id="none"),
    ],
)
async def test_a_list_without_an_end_is_walked_for_so_long_and_what_it_brought_can_be_called(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    page_s: float,
    pages: int,
    tools: int,
    problem: str | None,
) -> None:
    assert ListLimits().max_entries == 10_000
    for module in ("parts.discovery", "parts.processes", "lists"):
        monkeypatch.setattr(f"actors.server.{module}.LIST_LIMITS", ListLimits(max_entries=1000))
    fake = Endless(kind, page_s)
    async with running_server(fake) as rig:
        await rig.wake()
        await rig.until_listed(1)
        assert trio.current_time() < 45
        assert fake.pages <= pages
        offer = rig.of(ServerListed)[-1].offer
        assert tools / 2 <= len(offer.tools) <= tools
        assert offer.partial is (problem is not None)
        assert (problem or "") in " ".join(offer.problems)
        assert (rig.actor.life.state, fake.starts) == (State.READY, 1)
        assert await rig.call("echo", a=1) == {"a": 1}


@pytest.mark.case("L07")
@pytest.mark.parametrize("page_s", [0.0, 0.3, 2.0])
async def test_of_a_hundred_changes_while_lists_are_read_the_last_is_known_soon(
    autojump_clock: MockClock, page_s: float
) -> None:
    class Changing(FakeServer):
        async def _on_message(self, peer: MemoryPeer, message: dict[str, Any], nursery: trio.Nursery) -> None:
            await super()._on_message(peer, message, nursery)
            if message.get("method") == "tools/list":
                await trio.sleep(page_s)

    async with running_server(Changing(), settings=AWAKE) as rig, trio.open_nursery() as nursery:
        await rig.wake()

        async def change(number: int) -> None:
            await trio.sleep(number * 0.037)
            rig.fake.tools = [*rig.fake.tools, tool(f"t{number}")]
            await rig.fake.notify(CHANGED)

        for number in range(100):
            nursery.start_soon(change, number)
        await trio.sleep(100 * 0.037)
        with trio.fail_after(15):
            while len(rig.listed[-1]) <= 100:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(0.1)
        assert sorted(rig.listed[-1]) == sorted(["echo", *(f"t{number}" for number in range(100))])
        assert rig.fake.count("tools/list") <= 20


@pytest.mark.case("L08")
async def test_a_list_that_differs_each_time_is_read_no_more_often_than_it_is_told_of(
    autojump_clock: MockClock,
) -> None:
    class Toggling(FakeServer):
        def _page(self, cursor: str | None) -> dict[str, Any]:
            more = [tool("sometimes")] if self.count("tools/list") % 2 else []
            return {"tools": [tool("echo"), *more]}

    async with running_server(Toggling(), settings=AWAKE) as rig:
        await rig.wake()
        for _ in range(4):
            await rig.fake.notify(CHANGED)
            await trio.sleep(1000)
        await wait_all_tasks_blocked()
        assert rig.fake.count("tools/list") == 5
        assert rig.listed == [["echo", "sometimes"], ["echo"]] * 2 + [["echo", "sometimes"]]
