"""Calls are counted together: each once, in their order, within a moment, and before anybody reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from supervisor.usage.records import OUTCOMES, CallOutcome, CallRecord
from supervisor.usage.totals import MOST, SETTLE_S, Ledger


class Taker:
    def __init__(self) -> None:
        self.tools: list[str] = []
        self.times: list[float] = []
        self.batches = 0

    def __call__(self, records: Sequence[CallRecord]) -> None:
        self.tools += [record.tool for record in records]
        self.times += [record.time for record in records]
        self.batches += 1


@given(st.lists(st.sampled_from(["add", "settle"]), max_size=200))
def test_each_call_is_taken_once_and_in_its_order(deeds: list[str]) -> None:
    added, noted, takers = list[str](), list[str](), (Taker(), Taker())
    ledger = Ledger(lambda: float(len(added)), lambda server, tool, *_: noted.append(tool))
    ledger.takers += takers
    for deed in deeds:
        if deed == "add":
            added.append(f"t{len(added)}")
            ledger.add(CallRecord(server="s", tool=added[-1]))
            assert noted == added
        else:
            ledger.settle()
            assert takers[0].tools == takers[1].tools == added
    ledger.settle()
    assert takers[0].tools == takers[1].tools == added
    assert takers[0].times == [float(number) for number in range(1, len(added) + 1)]


def test_each_call_of_a_tool_of_a_server_is_noted() -> None:
    noted: list[tuple[str, str, bytes, CallOutcome, float]] = []
    ledger = Ledger(lambda: 0.0, lambda *call: noted.append(call))
    for outcome in OUTCOMES:
        for server in ("", "s"):
            ledger.add(CallRecord(server=server, tool=outcome, outcome=outcome, took_ms=5.0))
    assert noted == [("s", each, b"", each, 5.0) for each in OUTCOMES]


def test_a_bug_in_one_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(records: Sequence[CallRecord]) -> None:
        raise ZeroDivisionError

    taker, ledger = Taker(), Ledger(lambda: 0.0)
    ledger.takers += (fail, taker)
    ledger.add(CallRecord(tool="t"))
    ledger.settle()
    assert taker.tools == ["t"]
    assert "a bug while counting 1 calls" in caplog.text


def test_no_more_than_so_many_are_counted_at_once() -> None:
    taker = Taker()
    ledger = Ledger(lambda: 0.0)
    ledger.takers.append(taker)
    for _ in range(2 * MOST + 1):
        ledger.add(CallRecord(tool="t"))
    assert (taker.batches, len(taker.tools)) == (2, 2 * MOST)


async def test_they_are_counted_within_a_moment_and_nothing_wakes_up_for_none(
    autojump_clock: trio.testing.MockClock,
) -> None:
    taker, ledger = Taker(), Ledger(trio.current_time)
    ledger.takers.append(taker)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.run)
        await trio.sleep(3600)
        for number in range(3):
            ledger.add(CallRecord(tool=f"t{number}"))
        began = trio.current_time()
        await trio.sleep(SETTLE_S * 1.01)
        assert (taker.tools, taker.batches) == (["t0", "t1", "t2"], 1)
        assert taker.times == [pytest.approx(began)] * 3
        ledger.add(CallRecord(tool="t3"))
        await trio.sleep(SETTLE_S * 1.01)
        assert (taker.tools[-1], taker.batches) == ("t3", 2)
        nursery.cancel_scope.cancel()
