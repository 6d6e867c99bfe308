"""What is counted of a call: how long it took, and how long it waited for its server before that."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.messages import SleepServer
from supervisor.service.calls import counting
from supervisor.usage.records import CallArguments, CallRecord
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.published import served


async def test_the_time_of_a_call_is_told_apart_from_that_in_which_its_server_woke(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, bool, float, float]] = []

    def used(record: CallRecord, given: CallArguments | None = None) -> None:
        counted.append((record.tool, record.outcome == "ok", round(record.took_ms), round(record.waited_ms)))

    monkeypatch.setattr(counting, "perf_counter", trio.current_time)
    fake = FakeServer(tools=[tool("sleep")])
    async with served({"desk": fake}, used=used) as found:
        await found.router.address.ask(SleepServer(server="desk"))
        fake.start_s = 3.0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found.execute, "desk:sleep", {"s": 2})
            for _ in range(10):
                await wait_all_tasks_blocked(0.01)
                mock_clock.jump(0.5)
        assert counted == [("sleep", True, 2000, 3000)]
