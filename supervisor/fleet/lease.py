"""How long a node may act as a member: what a lease of the engine is by the clock of the node. Pure.

The engine counts from when it took the renewal, the node from before it sent it. So if both clocks run alike, the lease
ends here before it ends there. `DRIFT` is by how much the clocks may run unlike.

The clock is one that goes on while the process, or the machine, is stopped (`CLOCK_BOOTTIME`): a daemon that was frozen
has to see how long.
"""

from __future__ import annotations

from typing import Final

import msgspec

DRIFT: Final = 0.05
"""The part of a lease by which a clock may go wrong during it: a thousand times what clocks of computers do."""


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for leases, in seconds. `stop_s`: how long the processes of launches are given to end."""

    lease_s: float = 20.0
    stop_s: float = 6.0

    @property
    def renew_s(self) -> float:
        """The time between two renewals: a third of a lease, at most five seconds."""
        return min(5.0, self.lease_s / 3)


class Lease(msgspec.Struct, frozen=True):
    """A lease that was renewed by a message sent at `sent`, a moment of the node's clock."""

    sent: float
    times: LeaseTimes

    @property
    def serves_until(self) -> float:
        """From this moment on the launches of the node are stopped, and nothing is sent to them."""
        return self.ends - self.times.stop_s

    @property
    def ends(self) -> float:
        """From this moment on another node may own them."""
        return self.sent + self.times.lease_s * (1 - DRIFT)
