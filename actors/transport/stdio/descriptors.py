"""How many file descriptors there may be, how many are free, and how many a server takes."""

from __future__ import annotations

import errno
import os
import resource
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from actors.errors import SpawnFailed
from actors.kit import Conditions, Pauses, is_want, reason_of

WHAT = "starting servers"
"""How the condition is called while none can be started."""
LOOKED_AT = 256
"""So many of the highest numbers are looked at: the lowest free one is always taken first, so they are free longest."""
START = 11
"""A server takes so many while it starts."""
RUNNING = 5
"""And so many as long as it runs: three pipes, the shim's socket, the pidfd."""
SPAWN = 20
"""Free ones without which no server is started: what that takes, and the rest stays for clients and files."""
ROOM_S = 5.0
"""How long a start waits for room before it has failed."""
ROOM_PAUSE_S = 0.1


def limit() -> int:
    """Return how many descriptors we may have now; it may be changed from outside at any time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def free() -> int:
    """Return how many descriptors are free, counted up to 256; takes none itself, and tens of microseconds."""
    most = limit()
    asked = select.poll()
    for fd in range(max(0, most - LOOKED_AT), most):
        asked.register(fd, 0)
    return sum(1 for _, event in asked.poll(0) if event & select.POLLNVAL)


class StartShare:
    """What starts may take of the descriptors. `conditions` is told while no server can be started for want."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._starting = 0

    @asynccontextmanager
    async def start(self) -> AsyncIterator[None]:
        """Wait for room, and hold what one start takes for the block. Raises `OSError` if there is none for long.

        Half a start is worse than none: it takes what clients and files need, and without its pidfd trio would need a
        thread to wait for the process.
        """
        try:
            await self._room()
            self._starting += 1
            try:
                yield
            finally:
                self._starting -= 1
        except (OSError, SpawnFailed, RuntimeError, MemoryError) as error:
            cause = error.__cause__ or error
            if is_want(cause):
                self._conditions.begin(WHAT, reason_of(cause))
            raise
        self._conditions.end(WHAT)

    async def _room(self) -> None:
        """Wait for enough, for half of the caller's time at most: at its end it would look like the server's fault."""
        pauses, want = Pauses(max_s=ROOM_PAUSE_S), OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        left = trio.current_effective_deadline() - trio.current_time()
        with trio.move_on_after(max(0.0, min(ROOM_S, left / 2))):
            while free() < SPAWN + START * self._starting:
                self._conditions.begin(WHAT, reason_of(want))
                await trio.sleep(pauses.next())
            return
        raise want
