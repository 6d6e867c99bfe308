"""Limits of one server: who is over them, in words, and how they are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.resources.allotment import MOST_RESERVE, Allotment, MemoryBounds, ProcessFigures, size

GIB = 1 << 30
AMOUNTS = st.integers(0, 64 * GIB)


def taken(memory: int = 0, processes: int = 1) -> ProcessFigures:
    return ProcessFigures(memory, 0.0, 0.0, processes)


def test_who_is_over_a_limit_is_told_which_and_by_how_much() -> None:
    limits = ProcessLimits(max_memory_mib=2048, max_processes=3).allotment("a")
    assert limits.excess(taken(int(2.1 * GIB))) == "it used 2.1 GiB of memory, its limit is 2.0 GiB"
    assert limits.excess(taken(processes=4)) == "it had 4 processes, its limit is 3"
    assert limits.excess(taken(2 * GIB, 3)) == ""
    assert Allotment().excess(taken(64 * GIB, 9999)) == ""
    assert size(300 << 20) == "300 MiB"


@given(memory=st.none() | AMOUNTS, processes=st.none() | st.integers(1, 99), used=AMOUNTS, count=st.integers(1, 99))
def test_nobody_is_over_a_limit_who_takes_no_more(
    memory: int | None, processes: int | None, used: int, count: int
) -> None:
    limits = Allotment(memory_bytes=memory, processes=processes)
    over = (memory is not None and used > memory) or (processes is not None and count > processes)
    assert bool(limits.excess(taken(used, count))) == over
    assert not over or limits.watchable


def test_each_limit_says_how_it_is_kept() -> None:
    limits = ProcessLimits(max_memory_mib=1, max_processes=1, max_open_files=99, max_processors=0.5).allotment("a")
    alone = limits.enforcement(frozenset())
    assert alone == {
        "max_memory_mib": "watched",
        "max_processes": "watched",
        "max_open_files": "kernel",
        "max_processors": "not enforced",
    }
    assert set(limits.enforcement(frozenset({"memory", "pids", "cpu"})).values()) == {"kernel"}
    assert limits.enforcement(frozenset({"memory"})) == {**alone, "max_memory_mib": "kernel"}
    assert Allotment(name="a").enforcement(frozenset({"memory"})) == {}
    assert (Allotment(files=9).grouped, Allotment(processors=1.0).grouped) == (False, True)


@given(st.none() | AMOUNTS, st.none() | AMOUNTS)
def test_without_a_setting_a_twentieth_stays_free_and_no_more_than_half_a_gib(
    total: int | None, reserve: int | None
) -> None:
    kept = MemoryBounds(reserve_bytes=reserve).reserve_of(total)
    assert kept == (reserve if reserve is not None else min((total or 0) // 20, MOST_RESERVE))
