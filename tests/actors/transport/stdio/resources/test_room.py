"""Room for one more start: memory that is free, and what those that start will take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from actors.errors import SpawnFailed
from actors.transport.stdio.resources.allotment import Allotment, MemoryBounds, MemoryLook, ProcessFigures
from actors.transport.stdio.resources.room import GROWTH_S, ROOM_S, UNKNOWN_BYTES, WHAT, Room, Running

MIB = 1 << 20


class Machine:
    """So much memory, of which so much has to stay free; and any number of descriptors."""

    def __init__(self, available: int, reserve: int = 100 * MIB, limit: int | None = None) -> None:
        self.memory = MemoryLook(total=1000 * MIB, available=available)
        self.room = Room(look=lambda: self.memory, free=lambda: 256)
        self.room.bounds = lambda: MemoryBounds(reserve_bytes=reserve, limit_bytes=limit)

    def free(self, available: int) -> None:
        self.memory = replace(self.memory, available=available)

    async def start(self, launch: str = "a") -> None:
        async with self.room.start(launch):
            pass

    @contextmanager
    def runs(self, launch: str, pid: int, memory: int) -> Iterator[None]:
        with self.room.keep(pid, Running(allotment=Allotment(name=launch))):
            self.room.note({pid: ProcessFigures(memory, 0.0, 0.0)})
            yield

    def takes(self, launch: str, pid: int, memory: int) -> None:
        with self.runs(launch, pid, memory):
            pass


async def test_a_start_waits_until_enough_stays_free(autojump_clock: MockClock) -> None:
    machine = Machine(100 * MIB + UNKNOWN_BYTES - 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(machine.start)
        await machine.room.conditions.present(WHAT)
        assert machine.room.missing_memory() == 1
        machine.free(100 * MIB + UNKNOWN_BYTES)
    assert machine.room.conditions.now() == []
    assert machine.room.missing_memory() <= 0


async def test_a_start_that_finds_no_room_is_refused_in_words_that_say_what_is_missing(
    autojump_clock: MockClock,
) -> None:
    machine = Machine(150 * MIB)
    began = trio.current_time()
    with pytest.raises(SpawnFailed) as caught:
        await machine.start()
    assert caught.value.scarce
    assert not caught.value.permanent
    assert caught.value.message == (
        "150 MiB of memory is free, what starts takes about 80 MiB, and 100 MiB has to stay free (memory.reserve_mib)"
    )
    assert trio.current_time() - began == pytest.approx(ROOM_S, abs=1)
    assert [each.what for each in machine.room.conditions.now()] == [WHAT]


async def test_a_start_counts_until_it_has_had_time_to_grow(autojump_clock: MockClock) -> None:
    machine = Machine(100 * MIB + UNKNOWN_BYTES + 10)
    await machine.start()
    with trio.move_on_after(1), pytest.raises(SpawnFailed):
        await machine.start()
    await trio.sleep(GROWTH_S)
    await machine.start()


async def test_a_launch_is_reckoned_by_what_it_took_at_most_last_time(autojump_clock: MockClock) -> None:
    machine = Machine(0)
    room = machine.room
    assert room.expectation_of("a") == UNKNOWN_BYTES
    for memory in (30, 300, 40):
        machine.takes("a", 7, memory * MIB)
    assert room.expectation_of("a") == 300 * MIB
    machine.takes("a", 8, 20 * MIB)
    assert room.expectation_of("a") == 300 * MIB, "the present one has only begun"
    machine.takes("a", 9, 20 * MIB)
    assert room.expectation_of("a") == 20 * MIB
    assert room.expectation_of("b") == UNKNOWN_BYTES


async def test_all_servers_together_take_no_more_than_their_limit_but_one_may_always_run(
    autojump_clock: MockClock,
) -> None:
    machine = Machine(900 * MIB, limit=60 * MIB)
    with machine.runs("a", 7, 10 * MIB):
        await trio.sleep(GROWTH_S)
        with pytest.raises(SpawnFailed, match=r"60 MiB is the limit \(memory.limit_mib\)"):
            await machine.start("b")
    await machine.start("b")


async def test_what_ended_takes_nothing_though_nobody_has_looked_since(autojump_clock: MockClock) -> None:
    machine = Machine(900 * MIB, limit=150 * MIB)
    with machine.runs("a", 7, 100 * MIB):
        await trio.sleep(GROWTH_S)
        assert (machine.room.taken, machine.room.claim_of("a")) == (100 * MIB, 100 * MIB)
    assert (machine.room.taken, machine.room.claim_of("a")) == (0, 0)
    began = trio.current_time()
    await machine.start("b")
    assert trio.current_time() == began


async def test_a_server_that_starts_counts_once_whether_it_was_seen_or_not(autojump_clock: MockClock) -> None:
    machine = Machine(900 * MIB, limit=2 * UNKNOWN_BYTES)
    await machine.start("a")
    with machine.runs("a", 7, 50 * MIB):
        began = trio.current_time()
        await machine.start("b")
        assert trio.current_time() == began


async def test_a_start_that_failed_keeps_no_room(autojump_clock: MockClock) -> None:
    machine = Machine(900 * MIB, limit=60 * MIB)
    with pytest.raises(SpawnFailed, match="no such program"):
        async with machine.room.start("a"):
            raise SpawnFailed("no such program")
    began = trio.current_time()
    await machine.start("b")
    assert trio.current_time() == began


async def test_where_nobody_can_tell_starts_do_not_wait(autojump_clock: MockClock) -> None:
    machine = Machine(0)
    machine.memory = MemoryLook()
    await machine.start()


async def test_of_a_process_that_ended_nothing_is_kept() -> None:
    room = Room()
    running = Running(allotment=Allotment(name="a", memory_bytes=5))
    with room.keep(7, running):
        assert room.running == {7: running}
        assert running.watched
        with room.keep(7, Running(allotment=Allotment())):  # another one with its number
            pass
    assert room.running == {}
