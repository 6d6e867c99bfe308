"""Servers that are switched off, at all nodes of a fleet."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.servers.fleet.shared import SharedSwitches
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running


class SlowBoard:
    """Switches one server after the other, and takes as long for each as a server takes to end."""

    def __init__(self) -> None:
        self.switched: Callable[[str, bool], None] = lambda server, on: None
        self.done: list[tuple[str, bool]] = []

    async def switch(self, server: str, *, on: bool) -> None:
        await trio.sleep(5)
        self.done.append((server, on))


async def test_what_is_ordered_here_counts_over_what_was_ordered_elsewhere_before_and_still_waits(
    autojump_clock: MockClock,
) -> None:
    engine = MemoryEngine(600.0)
    a, b = Sharing(engine), Sharing(engine, now=2000.0)
    at_a, at_b = SlowBoard(), SlowBoard()
    async with running(a, b), trio.open_nursery() as nursery:
        nursery.start_soon(SharedSwitches(a.records, at_a, ()).run)
        nursery.start_soon(SharedSwitches(b.records, at_b, ()).run)
        at_a.switched("first", False)
        at_a.switched("second", False)
        await wait_all_tasks_blocked()
        at_b.switched("second", True)
        await trio.sleep(60)
        assert (at_a.done, at_b.done) == ([("second", True)], [("first", False)])
        nursery.cancel_scope.cancel()
