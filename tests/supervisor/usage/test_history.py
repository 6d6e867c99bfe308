"""What was called is added up over minutes to days, whatever is restarted or killed meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import LOCAL, Principal
from supervisor.store import Store, open_store
from supervisor.store.records import SavedCalls, SavedPeriod
from supervisor.usage.history import FLUSH_S, SET_BACK_S, History
from supervisor.usage.periods import KEPT_S, LENGTH_S, MAX_KEYS, OTHERS, Level, Period, decode, start_of, total
from supervisor.usage.records import OUTCOMES, CallRecord
from tests.fakes.call_memory import CallMemory
from tests.fakes.clock import Clock

NOON = 1_800_014_400.0
"""Of a day in 2027, UTC: a start of every level but the day."""


async def begun(store: CallMemory | Store, clock: Clock, keep: int = 50) -> History:
    """Return what a daemon has after its start."""
    history = History(store.periods, store.calls, clock, keep)
    await history.load()
    return history


def call(tool: str = "find", **more: object) -> CallRecord:
    return CallRecord(server="search", tool=tool, **{"took_ms": 5.0, **more})  # type: ignore[arg-type] # some


async def counts(history: History, level: Level, since: float = 0.0) -> dict[int, int]:
    return {period.start: period.calls for period in await history.periods(level, since)}


@pytest.mark.parametrize("seed", range(8))
async def test_each_level_has_every_call_in_its_period_whatever_is_killed(seed: int) -> None:
    """A kill loses what was not handed over yet, and nothing of what was: at a flush, or at the end of a minute."""
    chance, store, clock = random.Random(seed), CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock)
    expected: dict[Level, Counter[int]] = {level: Counter() for level in LENGTH_S}
    late: list[float] = []

    def hand_over() -> None:
        for level in expected:
            expected[level].update(start_of(level, at) for at in late)
        late.clear()

    for _ in range(400):
        clock.now += chance.choice([0.2, 0.5, 30, 400, 1500, 5000])
        if chance.random() < 0.7:
            history.take([call(time=clock.now)])
            if late and start_of("minute", late[0]) < start_of("minute", clock.now):
                hand_over()
            late.append(clock.now)
        if chance.random() < 0.6:
            history.flush()
            hand_over()
        if chance.random() < 0.1:  # killed
            late.clear()
            history = await begun(store, clock)
    history.flush()
    hand_over()
    for level in expected:
        since = clock.now - KEPT_S[level] / 2
        found = await counts(history, level, since)
        assert found == {at: count for at, count in sorted(expected[level].items()) if at >= since}


async def test_what_is_called_before_the_disk_is_there_is_added_to_what_it_has() -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    before = await begun(store, clock)
    before.take([call(time=clock.now)])
    before.flush()
    store.ready = trio.Event()
    clock.now += 10
    history = await begun(store, clock)
    history.take([call(time=clock.now)])
    history.flush()
    assert await counts(history, "minute") == {int(NOON): 1}
    store.ready.set()
    await history.load()
    history.flush()
    for level in LENGTH_S:
        assert await counts(history, level) == {start_of(level, NOON): 2}
    assert await counts(await begun(store, clock), "hour") == {int(NOON): 2}
    assert [number for number, _ in history.calls()] == [2, 1]


async def test_the_newest_calls_are_remembered_with_their_numbers() -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock, keep=5)
    for number in range(1, 9):
        history.take([call(f"tool {number}", time=clock.now)])
        history.flush()
    again = await begun(store, clock, keep=5)
    again.take([call("tool 9", time=clock.now)])
    assert [(number, record.tool) for number, record in again.calls()] == [(n, f"tool {n}") for n in (9, 8, 7, 6, 5)]
    assert [number for number, _ in again.calls(before=7)] == [6, 5]
    assert [[*again.calls(before=number)] for number in (5, 1)] == [[], []]
    assert again.newest == 9
    some = again.calls()
    assert next(some)[0] == 9
    again.take([call("tool 10", time=clock.now)])
    assert [number for number, _ in some] == [8, 7, 6, 5], "a thread may go through them while others are made"


async def test_what_is_called_is_handed_over_soon_and_nothing_is_where_nothing_was(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Woken(History):
        times = 0

        def flush(self) -> None:
            self.times += 1
            super().flush()

    store = CallMemory()
    store.ready.set()
    history = Woken(store.periods, store.calls, lambda: NOON + trio.current_time(), 50)
    await history.load()  # in a thread, for which this clock does not wait
    async with trio.open_nursery() as nursery:
        nursery.start_soon(history.run)
        await trio.sleep(3610)
        assert store.written == 0
        assert history.times <= 62, "it looks at the end of a minute only"
        history.take([call(time=NOON + trio.current_time()) for _ in range(1000)])
        await trio.sleep(FLUSH_S + 0.01)
        assert store.written == 2, "the minute, and the calls"
        await trio.sleep(60)
        assert store.written == 4, "and when the minute is over, the quarter and the hour"
        await trio.sleep(50)
        assert store.written == 4
        nursery.cancel_scope.cancel()
    assert await counts(History(store.periods, store.calls, lambda: NOON, 50), "minute") == {int(NOON) + 3600: 1000}


async def test_a_clock_that_is_set_back_a_little_only_makes_a_minute_longer() -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock)
    history.take([call(time=clock.now)])
    clock.now -= SET_BACK_S
    history.take([call(time=clock.now)])
    history.flush()
    assert await counts(history, "minute") == {int(NOON): 2}


@pytest.mark.parametrize(
    ("step_s", "restarts"),
    [(-86_400, False), (-86_400, True), (-7200, False), (-7200, True), (-240, False), (-240, True), (86_400, False)],
)
async def test_a_clock_that_is_set_and_set_right_again_loses_nothing_and_each_call_is_in_its_minute(
    step_s: int, restarts: bool
) -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock)
    expected: dict[Level, Counter[int]] = {level: Counter() for level in LENGTH_S}
    for number in range(60):
        if number in {20, 40}:
            for level, calls in expected.items():  # what is too old by a clock is forgotten by it
                expected[level] = Counter({at: n for at, n in calls.items() if at >= clock.now - KEPT_S[level]})
            clock.now += step_s if number == 20 else -step_s
        for level, calls in expected.items():
            calls[start_of(level, clock.now)] += 1
        history.take([call(time=clock.now)])
        history.flush()
        await history.load()  # as `run` does, where it has to
        history.flush()
        clock.now += 25
        if restarts and number % 10 == 5:
            history = await begun(store, clock)
    for level in ("minute", "hour", "day"):
        kept_since = clock.now - KEPT_S[level]
        assert await counts(history, level) == {at: n for at, n in expected[level].items() if at >= kept_since}
    assert sum((await counts(history, "day")).values()) == 60
    assert [number for number, _ in history.calls()] == [*range(60, 10, -1)]


async def test_what_is_too_old_is_forgotten() -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock)
    history.take([call(time=clock.now)])
    history.flush()
    clock.now += KEPT_S["minute"] + 120
    history.flush()
    assert {level for level, _ in store.periods.kept} == {"quarter", "hour"}


async def test_what_is_on_the_disk_survives(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path / "store.sqlite3") as store:
        history = await begun(store, clock)
        for _ in range(3):
            history.take(
                [call(principal=Principal("user:ana"), client="ide", bytes_in=10, waited_ms=2.0, time=clock.now)]
            )
        history.flush()
    async with open_store(tmp_path / "store.sqlite3") as store:
        history = await begun(store, clock)
        ((key, tally),) = (await history.periods("day", 0))[0].tallies.items()
        assert key == (Principal("user:ana"), "ide", "search", "find")
        assert (tally.calls, tally.bytes_in, tally.took.count, tally.waited.count) == (3, 30, 3, 3)
        assert [record.client for _, record in history.calls()] == ["ide"] * 3


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x91\x01", b"nonsense"])
async def test_what_cannot_be_read_is_left_out(payload: bytes) -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    store.periods.put(*(SavedPeriod(level, start_of(level, NOON), payload) for level in LENGTH_S))
    store.calls.put(SavedCalls(1, payload))
    history = await begun(store, clock)
    history.take([call(time=clock.now)])
    history.flush()
    assert await counts(history, "day") == {start_of("day", NOON): 1}


@given(
    st.lists(st.tuples(st.sampled_from(OUTCOMES), st.integers(0, 2 * MAX_KEYS), st.sampled_from("abc")), max_size=60)
)
def test_a_period_is_what_was_encoded_and_has_all_calls(calls: list[tuple[object, int, str]]) -> None:
    period = Period("minute", 60)
    records = [call(f"tool {tool}", outcome=outcome, principal=Principal(who)) for outcome, tool, who in calls]
    period.add(records)
    one_by_one = Period("minute", 60)
    for record in records:
        one_by_one.add([record])
    assert one_by_one == period
    assert period.calls == len(calls) == total([period]).calls
    assert decode("minute", 60, period.encode()) == period


def test_a_period_has_so_many_keys_and_what_is_too_much_is_counted_with_others() -> None:
    period = Period("minute", 0)
    for number in range(4 * MAX_KEYS):
        period.add([call(f"tool {number}", principal=Principal(f"user:{number}"))])
    assert len(period.tallies) <= 2 * MAX_KEYS + 1
    assert period.calls == 4 * MAX_KEYS
    assert period.tallies[Principal(OTHERS), OTHERS, OTHERS, OTHERS].calls > MAX_KEYS
    one = Period("minute", 0)
    for number in range(4 * MAX_KEYS):
        one.add([call(f"tool {number}")])
    assert one.tallies[LOCAL, OTHERS, OTHERS, OTHERS].calls == 3 * MAX_KEYS


async def test_a_minute_that_ends_while_the_disk_is_read_is_not_lost() -> None:
    store, clock = CallMemory(), Clock(NOON)
    store.ready.set()
    history = await begun(store, clock)
    history.take([call(time=clock.now)])
    load = store.periods.find

    async def load_and_turn(level: str, since: float) -> list[SavedPeriod] | None:
        rows = await load(level, since)
        if clock.now < NOON + 60:
            clock.now += 60
            history.take([call(time=clock.now)])
        return rows

    store.periods.find = load_and_turn  # type: ignore[method-assign]  # the disk is slow once
    assert await counts(history, "minute") == {int(NOON): 1, int(NOON) + 60: 1}
    assert await counts(history, "hour") == {int(NOON): 2}
