"""How many file descriptors there may be, how many are free, and how many a server takes."""

from __future__ import annotations

import resource
import select

LOOKED_AT = 256
"""So many of the highest numbers are looked at: the lowest free one is always taken first, so they are free longest."""
START = 11
"""A server takes so many while it starts."""
RUNNING = 5
"""And so many as long as it runs: three pipes, the shim's socket, the pidfd."""
SPAWN = 20
"""Free ones without which no server is started: what that takes, and the rest stays for clients and files."""


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
