"""The parts of the daemon that can begin again: a bug in one costs its work of a moment, and not the daemon.

What they know is held by objects that outlive them, and each goes on with that. Registry, router and front are none of
them: who waits for those could not be told what became of its request. Nor is a reload, which may be half applied. As
OTP has it, five crashes of one part within a minute are borne, and one more ends the daemon, which whoever started it
starts anew (https://www.erlang.org/doc/system/sup_princ.html, "Maximum Restart Intensity").
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.kit import Conditions
from actors.life.policy import RestartLog, RestartPolicy
from supervisor.servers.tree import supervise

POLICY: Final = RestartPolicy(max_restarts=5, period_s=60.0, backoff_initial_s=0.1, backoff_max_s=5.0)
WHY: Final = "it crashed by a bug of the daemon, and was started again; the daemon's log has the place"


class PartLost(Exception):
    """A part crashed too often."""


class DaemonParts:
    """Runs parts in a nursery. `conditions` is told of each that was started again, `restarts` counts by part."""

    def __init__(self, nursery: trio.Nursery, conditions: Conditions) -> None:
        self.restarts: Counter[str] = Counter()
        self._nursery = nursery
        self._conditions = conditions

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a part until it returns, or is lost: that ends the nursery with `PartLost`."""
        self._nursery.start_soon(self._run, name, run)

    async def _run(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        def count() -> None:
            self.restarts[name] += 1
            self._conditions.note(name, WHY)

        if not await supervise(name, run, RestartLog(POLICY, random.random), self._conditions, count):
            raise PartLost(f"{name} crashed more than {POLICY.max_restarts} times within {POLICY.period_s:g} s")
