"""Room for servers that are wanted: while something is too short to start one, those nobody uses are put to sleep.

A server that sleeps costs nobody anything, as a call wakes it; one that cannot be started costs the caller. So under a
small limit the servers take turns, those first that were used longest ago. What is to be kept running (`idle_timeout_s`
0) is, and so is whatever had a call since the last look. They go to sleep one at a time, and who is about to end counts
as if it had: no look has another one sleep for what is on its way.

Two things may be short. Descriptors are looked at while a start waits for them. Memory is looked at every few seconds,
as other programs take it, too: a look takes 0.2 ms of the loop. What each server takes is measured seldom, unless
somebody has a limit that we keep (see `Allotment`). A server over its limit ends by its own fault.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

import trio

from actors.errors import SupervisorError
from actors.kit import Latest
from actors.kit.directory import Directory
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer
from actors.principal import LOCAL
from actors.server import ServerMessage
from actors.transport.stdio.resources.allotment import MemoryBounds, ProcessFigures
from actors.transport.stdio.resources.room import RUNNING, WHAT, Room
from supervisor.servers.deployment import Deployment
from supervisor.servers.instances import Statuses
from supervisor.servers.pressure import Amounts, IdleServer, Pressure, Shortage, choose

LOOK_S: Final = 0.05
"""The pause between two looks while there is no room."""
MEMORY: Final = "memory"
"""How the condition is called while memory is short."""
MEMORY_LOOK_S: Final = 5.0
"""The pause between two looks at the memory, while there is enough."""
WATCH_S: Final = 3.0
"""The same while a server has a limit that nobody else keeps."""
NEAR_LOOK_S: Final = 0.5
"""And while there is little."""
MEASURE_S: Final = 30.0
"""At least so often it is measured what servers take, as their next starts are reckoned by it."""
STOP_S: Final = 5.0
"""A server that is put to sleep counts so long as one that ends, whatever it says."""

Measure = Callable[[], Awaitable[Mapping[int, ProcessFigures]]]
"""Tells what each process of a server takes; see `Figures.get`."""


class Capacity:
    """Makes room for one daemon; the deployment says which servers never sleep."""

    def __init__(
        self,
        directory: Directory[ServerMessage],
        statuses: Statuses,
        room: Room,
        deployment: Latest[Deployment],
        measure: Measure,
    ) -> None:
        self._directory = directory
        self._statuses = statuses
        self._room = room
        room.bounds = self._bounds
        self._conditions = room.conditions
        self._deployment = deployment
        self._measure = measure
        self._pressure = Pressure()
        self._figures: Mapping[int, ProcessFigures] = {}
        self._measured_at = -math.inf
        self._overload = ""
        self._leaving: set[str] = set()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._make_room, nursery)
            nursery.start_soon(self._watch_memory, nursery)

    def _bounds(self) -> MemoryBounds:
        return self._deployment.value.settings.memory.bounds

    def overload(self) -> str:
        """Say why no call may begin now; empty if it may."""
        return self._overload

    # While a start waits ------------------------------------------------------------------------------------------

    async def _make_room(self, nursery: trio.Nursery) -> None:
        while True:
            await self._conditions.present(WHAT)
            before = self._idle()
            await trio.sleep(LOOK_S)
            room = self._room
            missing = Amounts(descriptors=room.missing_descriptors(), memory=room.missing_memory())
            self._give_way(nursery, before, missing)

    # While servers run --------------------------------------------------------------------------------------------

    async def _watch_memory(self, nursery: trio.Nursery) -> None:
        shortage = Shortage()
        while True:
            await trio.sleep(self._pause(shortage))
            if self._room.running and self._is_measured(shortage):
                self._figures, self._measured_at = await self._measure(), trio.current_time()
                self._room.note(self._figures)
                self._end_excess()
            shortage = self._pressure.judge(self._room.look(), self._room.taken, self._bounds())
            self._overload = shortage.why if shortage.critical else ""
            if not shortage.missing:
                self._conditions.end(MEMORY)
                continue
            self._conditions.begin(MEMORY, shortage.why)
            before = self._idle()
            await trio.sleep(LOOK_S)
            self._give_way(nursery, before, Amounts(memory=shortage.missing))

    def _pause(self, shortage: Shortage) -> float:
        if shortage.near:
            return NEAR_LOOK_S
        return WATCH_S if any(each.watched for each in self._room.running.values()) else MEMORY_LOOK_S

    def _is_measured(self, shortage: Shortage) -> bool:
        """Say whether it has to be known now what each server takes."""
        if shortage.missing or self._bounds().limit_bytes is not None:
            return True
        watched = any(each.watched for each in self._room.running.values())
        return watched or trio.current_time() >= self._measured_at + MEASURE_S

    def _end_excess(self) -> None:
        for pid, running in tuple(self._room.running.items()):
            if running.watched and pid in self._figures and (why := running.allotment.excess(self._figures[pid])):
                running.end(why)

    # Sleep --------------------------------------------------------------------------------------------------------

    def _live(self) -> list[ServerStatus]:
        return list(filter(None, (self._statuses.of(name, {}) for name in self._statuses.names({}))))

    def _idle(self) -> dict[str, ServerStatus]:
        """Return the servers that run, do nothing, and may sleep."""
        return {status.server: status for status in self._live() if self._may_sleep(status)}

    def _may_sleep(self, status: ServerStatus) -> bool:
        if status.server in self._leaving or self._deployment.value.never_sleeps(status.server):
            return False
        return status.state is State.READY and not (status.in_flight or status.waiting or status.tasks)

    def _give_way(self, nursery: trio.Nursery, before: Mapping[str, ServerStatus], missing: Amounts) -> None:
        """Put one idle server to sleep that had no call since `before`, unless those that end now give enough back."""
        if not missing.short:
            return
        live = self._live()
        ending = [
            self._amounts_of(status)
            for status in live
            if status.server in self._leaving or status.state is State.DRAINING
        ]
        idle = [
            IdleServer(launch=status.server, used_at=status.used_at or 0.0, gives=self._amounts_of(status))
            for status in live
            if self._may_sleep(status) and (was := before.get(status.server)) is not None and was.calls == status.calls
        ]
        if (launch := choose(idle, missing, ending)) is not None:
            self._leaving.add(launch)
            nursery.start_soon(self._sleep, launch)

    def _amounts_of(self, status: ServerStatus) -> Amounts:
        """Return what a server gives back; one without a process here has no memory of ours."""
        return Amounts(descriptors=RUNNING, memory=self._room.claim_of(status.server))

    async def _sleep(self, launch: str) -> None:
        address = self._directory.find(launch)
        try:
            if address is not None:
                with trio.move_on_after(STOP_S), suppress(SupervisorError):
                    await address.ask(SleepServer(server=launch, principal=LOCAL))
        finally:
            self._leaving.discard(launch)
