"""What holds the loop up is seen in how late it is."""

from __future__ import annotations

import trio
import trio.testing

from supervisor.host.turns import LOOK_EVERY_S, LoopLag


async def test_it_is_as_late_as_it_was_held_up(mock_clock: trio.testing.MockClock) -> None:
    lag = LoopLag()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lag.run)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(LOOK_EVERY_S + 4.0)
        await trio.testing.wait_all_tasks_blocked()
        assert lag.seconds == 4.0
        mock_clock.jump(LOOK_EVERY_S)
        await trio.testing.wait_all_tasks_blocked()
        assert lag.seconds == 0.0
        nursery.cancel_scope.cancel()
