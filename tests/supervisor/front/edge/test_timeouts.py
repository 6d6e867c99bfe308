"""Many things that wait for the same time, and one task that looks after them."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from supervisor.front.edge.wire import Timeouts


async def test_what_has_waited_long_enough_is_expired_and_nothing_else(autojump_clock: MockClock) -> None:
    expired: list[tuple[float, str]] = []
    waiting: Timeouts[str] = Timeouts(10, lambda name: expired.append((trio.current_time() - start, name)))
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        waiting.add("a")
        waiting.add("taken out")
        await trio.sleep(4)
        waiting.add("b")
        assert waiting.discard("taken out")
        assert not waiting.discard("never there")
        await trio.sleep(16)
        waiting.add("c")  # after a time in which nothing waited
        await trio.sleep(11)
        assert expired == [(10, "a"), (14, "b"), (30, "c")]
        for name in ("d", "e"):
            waiting.add(name)
        waiting.expire_all()
        assert [name for _, name in expired[3:]] == ["d", "e"]
        nursery.cancel_scope.cancel()
