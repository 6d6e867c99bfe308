"""Who may start now, over all servers: starting is what overloads a machine, not running.

- A place for spawning is held from the start of a process to the first thing it says, for a short time at most: a
  server that hangs costs the others no more than that.
- A place for installing is held, before, by a server that its launcher may have to install first, until it says
  something, ends, or nothing of it works any more. Two installs of the same package run one after the other: package
  managers share directories between them that they do not lock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from actors.kit.fairness.gate import Gate, Turn

KEPT = 1
"""How many places of each kind are kept for servers that a call waits for."""


class Starts:
    """`spawns` processes may be starting and `installs` servers installing at once; `per_s` processes start a second.

    `slot_s`: how long, in seconds, a process that says nothing counts as starting.
    """

    def __init__(self, spawns: int = 4, *, installs: int = 4, per_s: float = 10.0, slot_s: float = 1.0) -> None:
        self.spawning = Gate(spawns, kept=KEPT, interval_s=1 / per_s)
        self.installing = Gate(installs, kept=KEPT)
        self._slot_s = slot_s
        self._packages: dict[str, Gate] = {}

    @asynccontextmanager
    async def install(self, turn: Turn, package: str) -> AsyncIterator[None]:
        """Hold a place for installing, and be the only one for this package unless it is empty. A checkpoint."""
        async with self._alone(turn, package), self.installing.place(turn):
            yield

    async def spawn(self, turn: Turn, placed: trio.Event, spoken: trio.Event) -> None:
        """Wait for a place, set `placed`, and hold it until `spoken` is set, or for `slot_s`. A checkpoint."""
        async with self.spawning.place(turn):
            placed.set()
            with trio.move_on_after(self._slot_s):
                await spoken.wait()

    @asynccontextmanager
    async def _alone(self, turn: Turn, package: str) -> AsyncIterator[None]:
        if not package:
            yield
            return
        async with self._packages.setdefault(package, Gate(1)).place(turn):
            yield
