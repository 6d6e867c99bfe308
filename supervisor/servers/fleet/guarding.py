"""The process that guards the lease of this daemon, for as long as the daemon is a node; see `lease_guard.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import trio

from actors.kit import Conditions
from actors.kit.want import persist
from supervisor.fleet.lease import Lease

SCRIPT: Final = Path(__file__).with_name("lease_guard.py")
SHIM: Final = Path(__file__).parents[3] / "actors" / "transport" / "stdio" / "kill_shim.py"
AGAIN_S: Final = 1.0
"""Between the end of one and the start of another."""


class LeaseGuard:
    """`tell` is called with each new lease. Where there are no shims (not on Linux) it guards nothing."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._newest: Lease | None = None
        self._bell = trio.lowlevel.ParkingLot()

    def tell(self, lease: Lease) -> None:
        self._newest = lease
        self._bell.unpark()

    async def run(self) -> None:
        """Keep one process, and tell it of each lease. One that died is replaced."""
        if sys.platform != "linux":
            return
        while True:
            process = await persist(self._conditions, "lease guard", self._start)
            try:
                await self._tell_all(process)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await process.wait()
                await trio.sleep(AGAIN_S)
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(1.0):
                    assert process.stdin is not None
                    await process.stdin.aclose()
                    await process.wait()

    async def _start(self) -> trio.Process:
        return await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", str(SCRIPT), str(SHIM)],
            stdin=subprocess.PIPE,
            process_group=0,  # not a session: a child of ours in another one is taken for an orphan and swept
        )

    async def _tell_all(self, process: trio.Process) -> None:
        assert process.stdin is not None
        while True:
            if self._newest is not None:
                await process.stdin.send_all(b"%d\n" % int(self._newest.ends * 1e9))
            await self._bell.park()
