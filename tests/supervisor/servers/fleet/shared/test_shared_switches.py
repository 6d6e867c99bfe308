"""Servers that are switched off, at all nodes of a fleet."""

from __future__ import annotations

from typing import cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.servers.control import Control
from supervisor.servers.fleet.shared import SharedSwitches
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.sharing import Sharing, running


class SlowBoard:
    """Switches one server after the other, and takes as long for each as a server takes to end."""

    def __init__(self) -> None:
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
        of_a, of_b = SharedSwitches(a.records, ()), SharedSwitches(b.records, ())
        nursery.start_soon(of_a.run, cast("Control", at_a))
        nursery.start_soon(of_b.run, cast("Control", at_b))
        of_a.note("first", False)
        of_a.note("second", False)
        await wait_all_tasks_blocked()
        of_b.note("second", True)
        await trio.sleep(60)
        assert (at_a.done, at_b.done) == ([("second", True)], [("first", False)])
        nursery.cancel_scope.cancel()
