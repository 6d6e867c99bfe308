"""Launches that sleep lose their actors, so that what people have costs what they use."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import trio

from actors.errors import ActorStopped
from actors.life.states import State
from actors.messages import ReadServer, ServerStatus
from actors.registry.actor import Registry
from supervisor.servers.children import Servers

ASLEEP: Final = "nobody calls it"
LOOK_S: Final = 10.0
"""Between two looks for launches that sleep."""


class Retirement:
    """Takes actors from launches. `running` are those that have one, and `retired` is told of each that has none any
    more; `turn` is that of whoever changes that.
    """

    def __init__(
        self,
        servers: Servers,
        registry: Registry,
        turn: trio.Lock,
        running: Collection[str],
        retired: Callable[[str], None],
    ) -> None:
        self.moving: set[str] = set()
        """Those that are about to have none."""
        self._servers = servers
        self._registry = registry
        self._turn = turn
        self._running = running
        self._retired = retired

    async def run(self) -> None:
        """Look for launches that sleep, for ever."""
        while True:
            await trio.sleep(LOOK_S)
            for name in [*self._running]:
                status = self._servers.statuses.of(name, {})
                if status is not None and self._may_retire(status) and self._registry.offer(name) is not None:
                    async with self._turn:
                        await self._retire(name)

    def _may_retire(self, status: ServerStatus) -> bool:
        """Say whether nothing would be lost with an actor but the time that it takes to make another one.

        One that is being switched off has to be there to report it.
        """
        busy = status.in_flight or status.waiting or status.tasks or status.legacy_session or status.breakers
        busy = busy or status.requires_reauth
        return status.state is State.DORMANT and not busy and not self._servers.is_off(status.server)

    async def _retire(self, name: str) -> None:
        """Take its actor from a launch that sleeps. What it is sent meanwhile waits until there is another one."""
        directory = self._servers.directory
        address = directory.find(name)
        if address is None:
            return
        self.moving.add(name)
        directory.withdraw(name)
        try:
            status = await address.ask_in_turn(ReadServer())  # answered when all that came before it was handled
            if self._may_retire(status):
                await self._servers.remove(name, ASLEEP, 0.0)
                self._retired(name)
            else:
                directory.admit(name, address)
        except ActorStopped:  # it crashed, and another one takes its place
            return
        finally:
            self.moving.discard(name)
