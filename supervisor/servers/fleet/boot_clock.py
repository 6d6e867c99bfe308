"""The clock of leases: it goes on while the process, or the machine, is stopped."""

from __future__ import annotations

import time

import trio

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first one is Linux'


class BootClock:
    """Implements `supervisor.fleet.membership.NodeClock`."""

    def now(self) -> float:
        return time.clock_gettime(_CLOCK)

    def trio_time(self, moment: float) -> float:
        return trio.current_time() + moment - self.now()
