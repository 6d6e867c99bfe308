"""Room for servers that are wanted: while descriptors are too few to start one, those nobody uses are put to sleep.

A server that sleeps costs nobody anything, as a call wakes it; one that cannot be started costs the caller. So under a
small limit the servers take turns. What is to be kept running (`idle_timeout_s` 0) is, and so is whatever had a call
since the last look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import trio

from actors.errors import SupervisorError
from actors.kit import Conditions, Latest
from actors.kit.directory import Directory
from actors.launch import server_of
from actors.life.states import State
from actors.messages import ServerStatus, SleepServer
from actors.principal import LOCAL
from actors.server import ServerMessage
from actors.transport.stdio.descriptors import RUNNING, SPAWN, WHAT, free
from supervisor.servers.deployment import Deployment
from supervisor.servers.statuses import Statuses

LOOK_S = 0.05
"""The pause between two looks while there is no room."""
ASK_S = 1.0
AHEAD = 1
"""So many more than one start needs: the next one does not wait then."""


class Capacity:
    """Makes room for one daemon; the deployment says which servers never sleep."""

    def __init__(
        self,
        directory: Directory[ServerMessage],
        statuses: Statuses,
        conditions: Conditions,
        deployment: Latest[Deployment],
        free: Callable[[], int] = free,
    ) -> None:
        self._directory = directory
        self._statuses = statuses
        self._conditions = conditions
        self._deployment = deployment
        self._free = free

    async def run(self) -> None:
        while True:
            await self._conditions.present(WHAT)
            before = self._idle()
            await trio.sleep(LOOK_S)
            missing = SPAWN - self._free()
            if missing > 0:
                await self._put_to_sleep(before, missing // RUNNING + 1 + AHEAD)

    def _idle(self) -> dict[str, ServerStatus]:
        """Return the servers that run, do nothing, and may sleep."""
        live = filter(None, (self._statuses.of(name, {}) for name in self._statuses.names({})))
        return {status.server: status for status in live if _is_idle(status) and not self._kept(status.server)}

    def _kept(self, name: str) -> bool:
        config = self._deployment.value.entries.get(server_of(name))
        return config is not None and not config.idle_timeout_s

    async def _put_to_sleep(self, before: Mapping[str, ServerStatus], count: int) -> None:
        """Put so many idle servers to sleep, those first that are ready longest, if they had no call since `before`."""
        idle = [s for name, s in self._idle().items() if name in before and before[name].calls == s.calls]
        async with trio.open_nursery() as nursery:
            for status in sorted(idle, key=lambda status: status.since)[:count]:
                nursery.start_soon(self._sleep, status.server)

    async def _sleep(self, name: str) -> None:
        address = self._directory.find(name)
        if address is not None:
            with trio.move_on_after(ASK_S), suppress(SupervisorError):
                await address.ask(SleepServer(server=name, principal=LOCAL))


def _is_idle(status: ServerStatus) -> bool:
    return status.state is State.READY and not (status.in_flight or status.waiting or status.tasks)
