"""Room for servers that are wanted, made by those that nobody uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.kit import Actor, Conditions, Reply
from actors.kit.directory import Directory
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer
from actors.server import ServerMessage
from actors.transport.stdio.resources.allotment import Allotment, MemoryLook, ProcessFigures
from actors.transport.stdio.resources.room import RUNNING, SPAWN, UNKNOWN_BYTES, WHAT, Room, Running
from supervisor.config import ServerConfig, Settings
from supervisor.config.sections import MemorySettings
from supervisor.servers.capacity import MEASURE_S, MEMORY, MEMORY_LOOK_S, Capacity
from supervisor.servers.instances import Statuses
from tests.fakes.deployments import deployment

MIB = 1 << 20


class Server(Actor[ServerMessage]):
    """Sleeps when it is told to."""

    def __init__(self, status: ServerStatus) -> None:
        super().__init__(8)
        self.status = status
        self.process = ExitStack()

    def read(self, stderr: bool) -> ServerStatus:
        del stderr
        return self.status

    def handle(self, message: ServerMessage, reply: Reply[Any] | None) -> None:
        assert reply is not None
        match message:
            case SleepServer():
                self.status = msgspec.structs.replace(self.status, state=State.DORMANT)
                self.process.close()
                reply.answer(None)


def server(name: str, since: float = 0.0, **more: Any) -> Server:
    status = ServerStatus(server=name, state=State.READY, wanted="up", since=since)
    return Server(msgspec.structs.replace(status, **more))


def taking(memory: int) -> ProcessFigures:
    return ProcessFigures(memory, 0.0, 0.0)


class Machine:
    """Servers that run on a machine with so many free descriptors and so much free memory; who sleeps gives back."""

    def __init__(self, *servers: Server, free: int = 256, memory: int | None = None) -> None:
        self.servers = servers
        self._free, self._memory = free, memory
        self.pressure: float | None = None
        self.figures: dict[int, ProcessFigures] = {}
        self.measured = self.looks = 0
        self.room = Room(look=self.look, free=self.free)
        self.capacity: Capacity

    def free(self) -> int:
        return self._free + RUNNING * sum(each.status.state is State.DORMANT for each in self.servers)

    def look(self) -> MemoryLook:
        self.looks += 1
        if self._memory is None:
            return MemoryLook()
        back = [self.figures[each.status.pid or 0].memory_bytes for each in self.servers if asleep(each)]
        return MemoryLook(total=1000 * MIB, available=self._memory + sum(back), pressure=self.pressure)

    async def measure(self) -> Mapping[int, ProcessFigures]:
        await trio.lowlevel.checkpoint()
        self.measured += 1
        return {each.status.pid or 0: self.figures[each.status.pid or 0] for each in self.servers if not asleep(each)}


@asynccontextmanager
async def run(machine: Machine, *kept: str, settings: MemorySettings | None = None) -> AsyncIterator[Conditions]:
    directory: Directory[ServerMessage] = Directory()
    statuses, room = Statuses(), machine.room
    names = [each.status.server for each in machine.servers]
    entries = deployment(*(ServerConfig(name=name, idle_timeout_s=0.0 if name in kept else 9.0) for name in names))
    if settings is not None:
        entries.set(msgspec.structs.replace(entries.value, settings=Settings(memory=settings)))
    async with trio.open_nursery() as nursery:
        with ExitStack() as stack:
            for each in machine.servers:
                await nursery.start(each.run)
                stack.enter_context(directory.register(each.status.server, each.address))
                stack.enter_context(statuses.register(each.status.server, each.read))
                if each.status.pid is not None and each.status.pid not in room.running:
                    running = Running(allotment=Allotment(name=each.status.server))
                    stack.enter_context(each.process).enter_context(room.keep(each.status.pid, running))
            machine.capacity = Capacity(directory, statuses, room, entries, machine.measure)
            nursery.start_soon(machine.capacity.run)
            yield room.conditions
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def running(*servers: Server, free: int, kept: tuple[str, ...] = ()) -> AsyncIterator[Conditions]:
    async with run(Machine(*servers, free=free), *kept) as conditions:
        yield conditions


def asleep(*servers: Server) -> list[str]:
    return [each.status.server for each in servers if each.status.state is State.DORMANT]


async def test_the_servers_that_are_idle_longest_sleep_until_there_is_room(autojump_clock: MockClock) -> None:
    servers = [server(name, since) for name, since in (("c", 3.0), ("a", 1.0), ("d", 4.0), ("b", 2.0), ("e", 5.0))]
    async with running(*servers, free=SPAWN - RUNNING - 1) as conditions:
        await trio.sleep(10)
        assert asleep(*servers) == []
        conditions.begin(WHAT, "Too many open files")
        await trio.sleep(10)
        assert asleep(*servers) == ["a", "b"]


async def test_who_works_who_is_called_and_who_is_to_be_kept_stays_awake(autojump_clock: MockClock) -> None:
    working, waited_for = server("working", in_flight=1), server("waited", waiting=1)
    kept, called, starting = server("kept"), server("called"), server("starting", state=State.HANDSHAKING)
    servers = (working, waited_for, kept, called, starting)

    async def call() -> None:
        while True:
            called.status = msgspec.structs.replace(called.status, calls=called.status.calls + 1)
            await trio.sleep(0.01)

    async with running(*servers, free=0, kept=("kept",)) as conditions, trio.open_nursery() as nursery:
        nursery.start_soon(call)
        conditions.begin(WHAT, "Too many open files")
        await trio.sleep(5)
        assert asleep(*servers) == []
        nursery.cancel_scope.cancel()


async def test_it_rests_once_servers_can_be_started(autojump_clock: MockClock) -> None:
    idle = server("idle")
    async with running(idle, free=0) as conditions:
        conditions.begin(WHAT, "Too many open files")
        conditions.end(WHAT)
        await trio.sleep(10)
        assert asleep(idle) == []


# Memory ---------------------------------------------------------------------------------------------------------------

RESERVE = MemorySettings(reserve_mib=100)


def fleet(**used_at: float) -> list[Server]:
    """Servers with processes, each used at some moment."""
    return [server(name, used_at=moment, pid=number) for number, (name, moment) in enumerate(used_at.items(), 1)]


def machine(*servers: Server, memory: int) -> Machine:
    found = Machine(*servers, memory=memory)
    found.figures = {each.status.pid or 0: taking(30 * MIB) for each in servers}
    return found


async def test_while_memory_is_short_those_that_were_used_longest_ago_sleep(autojump_clock: MockClock) -> None:
    servers = fleet(new=9.0, old=1.0, kept=0.0, middle=5.0)
    found = machine(*servers, memory=80 * MIB)
    async with run(found, "kept", settings=RESERVE) as conditions:
        await trio.sleep(60)
        assert asleep(*servers) == ["old", "middle"], "125 MiB have to be free, and each gives back 30"
        assert conditions.now() == []


async def test_what_lacks_memory_is_said_as_long_as_it_does(autojump_clock: MockClock) -> None:
    working = server("working", pid=1, in_flight=1)
    found = machine(working, memory=80 * MIB)
    async with run(found, settings=RESERVE) as conditions:
        await trio.sleep(60)
        [degraded] = conditions.now()
        assert degraded.what == MEMORY
        assert degraded.why == "80 MiB of memory is free, 100 MiB has to be (memory.reserve_mib)"
        assert asleep(working) == []
        assert found.capacity.overload() == ""


async def test_with_half_of_the_reserve_calls_are_refused(autojump_clock: MockClock) -> None:
    found = machine(server("working", pid=1, in_flight=1), memory=40 * MIB)
    async with run(found, settings=RESERVE):
        await trio.sleep(MEMORY_LOOK_S + 1)
        assert "40 MiB of memory is free" in found.capacity.overload()
        found._memory = 500 * MIB
        await trio.sleep(MEMORY_LOOK_S + 1)
        assert found.capacity.overload() == ""


async def test_a_limit_of_all_servers_together_is_kept(autojump_clock: MockClock) -> None:
    servers = fleet(a=1.0, b=2.0, c=3.0)
    async with run(machine(*servers, memory=900 * MIB), settings=MemorySettings(limit_mib=70)):
        await trio.sleep(60)
        assert asleep(*servers) == ["a"]


async def test_a_start_that_waits_for_memory_gets_room(autojump_clock: MockClock) -> None:
    servers = fleet(a=1.0, b=2.0)
    found = machine(*servers, memory=100 * MIB + UNKNOWN_BYTES - 5 * MIB)
    found.figures = dict.fromkeys(found.figures, taking(90 * MIB))
    async with run(found, settings=RESERVE) as conditions:
        began = trio.current_time()
        async with found.room.start("c"):
            assert asleep(*servers) == ["a"]
        assert trio.current_time() - began < 1
        assert conditions.now() == []


async def test_who_is_over_a_limit_that_we_keep_ends_and_nobody_else(autojump_clock: MockClock) -> None:
    servers = fleet(leaking=1.0, neighbour=2.0, grouped=3.0)
    found = machine(*servers, memory=900 * MIB)
    ends: list[tuple[int, str]] = []
    limited = Allotment(name="a", memory_bytes=20 * MIB)
    with ExitStack() as stack:
        for pid, allotment, group in ((1, limited, None), (2, Allotment(name="b"), None), (3, limited, Path("g"))):
            end = partial(lambda pid, why: ends.append((pid, why)), pid)
            stack.enter_context(found.room.keep(pid, Running(allotment=allotment, group=group, end=end)))
        async with run(found):
            await trio.sleep(4)
    assert ends == [(1, "it used 30 MiB of memory, its limit is 20 MiB")]


async def test_while_nothing_is_short_it_looks_and_measures_seldom(autojump_clock: MockClock) -> None:
    found = machine(server("idle", pid=1), memory=900 * MIB)
    async with run(found):
        await trio.sleep(600)
    assert found.looks == pytest.approx(600 / MEMORY_LOOK_S, abs=1)
    assert found.measured == pytest.approx(600 / MEASURE_S, abs=1)
    nobody = machine(memory=900 * MIB)
    async with run(nobody):
        await trio.sleep(600)
    assert nobody.measured == 0
