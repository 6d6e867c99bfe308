"""Who sleeps, in which order, how many, and that what is short does not flutter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.transport.stdio.resources.allotment import MemoryBounds, MemoryLook
from supervisor.servers.pressure import Amounts, IdleServer, Pressure, choose

GIB = 1 << 30
amounts = st.builds(Amounts, descriptors=st.integers(0, 9), memory=st.integers(0, 999))
servers = st.lists(
    st.builds(IdleServer, launch=st.text("abcdef", min_size=1), used_at=st.floats(0, 9), gives=amounts),
    unique_by=lambda each: each.launch,
)


def idle(launch: str, used_at: float, memory: int = 10) -> IdleServer:
    return IdleServer(launch=launch, used_at=used_at, gives=Amounts(descriptors=5, memory=memory))


def test_nobody_sleeps_for_what_those_give_back_that_end_already() -> None:
    ending = [Amounts(descriptors=5, memory=10)]
    assert choose([idle("a", 1)], Amounts(memory=10), ending) is None
    assert choose([idle("a", 1)], Amounts(memory=11), ending) == "a"
    assert choose([idle("a", 1)], Amounts(descriptors=6, memory=10), ending) == "a"


@given(servers, amounts)
def test_who_is_chosen_helps_and_nobody_who_was_used_earlier_would(
    all_of_them: list[IdleServer], missing: Amounts
) -> None:
    chosen = choose(all_of_them, missing)
    helpful = [each for each in all_of_them if missing.helped_by(each.gives)]
    assert (chosen is None) == (not helpful)
    assert all(each.used_at >= min(one.used_at for one in helpful if one.launch == chosen) for each in helpful)


# Pressure -------------------------------------------------------------------------------------------------------------

BOUNDS = MemoryBounds(reserve_bytes=100, pressure_percent=20.0)


def memory(available: int, pressure: float | None = None) -> MemoryLook:
    return MemoryLook(total=1000, available=available, pressure=pressure)


def test_less_than_the_reserve_is_short_until_there_is_a_quarter_more() -> None:
    pressure = Pressure()
    found = [pressure.judge(memory(free), 0, BOUNDS).missing for free in (100, 99, 110, 124, 125, 110)]
    assert found == [0, 26, 15, 1, 0, 0]


def test_over_the_limit_is_short_until_a_tenth_less_is_taken() -> None:
    pressure, bounds = Pressure(), MemoryBounds(limit_bytes=100, reserve_bytes=0)
    found = [pressure.judge(memory(900), taken, bounds).missing for taken in (100, 101, 95, 90, 100)]
    assert found == [0, 11, 5, 0, 0]


def test_while_somebody_waits_for_memory_one_server_after_the_other_sleeps() -> None:
    pressure = Pressure()
    found = [pressure.judge(memory(900, waits), 0, BOUNDS).missing for waits in (19.9, 20.0, 10.0, 9.9, 19.9, None)]
    assert found == [0, 1, 1, 0, 0, 0]
    off = MemoryBounds(reserve_bytes=100, pressure_percent=0.0)
    assert Pressure().judge(memory(900, 99.0), 0, off).missing == 0


def test_with_half_of_the_reserve_no_call_begins_and_with_three_quarters_again() -> None:
    pressure = Pressure()
    found = [pressure.judge(memory(free), 0, BOUNDS).critical for free in (50, 49, 74, 75, 50)]
    assert found == [False, True, True, False, False]


def test_where_nobody_can_tell_nothing_is_short() -> None:
    assert Pressure().judge(MemoryLook(), 10 * GIB, MemoryBounds()).missing == 0


@given(st.lists(st.integers(0, 200)), st.integers(100, 124))
def test_whatever_was_before_a_state_stays_as_it_is_between_its_bounds(before: list[int], between: int) -> None:
    pressure = Pressure()
    short = False
    for free in before:
        short = pressure.judge(memory(free), 0, BOUNDS).missing > 0
    for _ in range(3):
        assert (pressure.judge(memory(between), 0, BOUNDS).missing > 0) == short
