"""What systemd is told (sd_notify(3)): that we are ready, reload, stop, and still live.

It names a socket for that in `NOTIFY_SOCKET`, and in `WATCHDOG_USEC` how often it wants a sign of life. Without them
nothing is told. What it does not take at once is dropped: it must not hold us up.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import trio

MAX_STATUS_CHARS = 200
MAX_DIGITS = 20
"""Of a number of microseconds, which has 64 bits."""
LOOK_S = 1.0
"""So often is looked whether a sign of life is due."""


class Systemd:
    """Speaks to the systemd that `environ` names, if any."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        every_us = environ.get("WATCHDOG_USEC", "")
        known = ours and every_us.isdecimal() and len(every_us) <= MAX_DIGITS
        self._watched_s = int(every_us) / 1e6 if known else 0.0

    def ready(self, status: str) -> None:
        """Say that the start, or a reload, is done. `status` is for people."""
        self._tell("READY=1", f"STATUS={' '.join(status.split())[:MAX_STATUS_CHARS]}")

    def begin_reload(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def begin_stop(self) -> None:
        self._tell("STOPPING=1", "STATUS=ending: calls in flight may end")

    async def give_signs_of_life(self, now: Callable[[], float] = time.monotonic) -> None:
        """Give them twice as often as asked, from the loop: one that is stuck gives none.

        systemd counts the time in which we stood still, and the clock of the loop does not. So `now` is the system's.
        """
        given = -math.inf
        while self._watched_s:
            left = given + self._watched_s / 2 - now()
            if left <= 0:
                self._tell("WATCHDOG=1")
                given, left = now(), self._watched_s / 2
            await trio.sleep(min(left, LOOK_S))

    def _tell(self, *assignments: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            out.sendto("\n".join(assignments).encode(), self._address)
