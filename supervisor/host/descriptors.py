"""File descriptors: the standard ones, how many there may be, and how they are shared out.

Rules of this file:
- 0, 1 and 2 are never free: a file that is opened must not become what somebody takes for stderr.
- The soft limit is raised to the hard one, within reason. Servers start with the limit we were started with: programs
  that use select(2), or close every descriptor there may be, count on a small one.
- Clients get at most half of the descriptors that the daemon does not need for itself, so that they can starve neither
  its own files nor the servers. The limit is looked at anew each time: it may be changed from outside.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

from actors.transport.stdio.resources.room import free, limit

OWN = 24
"""For the daemon itself: standard streams, listening sockets, epoll, lock, database, log, and files read in passing."""

LEAST_CLIENTS = 4
_SPARE = 4
_AMPLE = 4096
"""Above this limit the shares alone keep enough free, and nobody counts."""

_ENOUGH = 65_536
"""The limit is not raised beyond this: more would only cost whoever walks over all descriptors."""

OPEN_MAX = 10_240
"""What macOS lets a process have whatever its hard limit says (sys/syslimits.h)."""


def occupy_standard() -> None:
    """Open the null device in the place of each standard stream that is closed. Before anything else opens a file.

    Python's own streams are None then, for which libraries have surprises: text for stderr comes out of stdout.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def attainable() -> int:
    """Return how far the limit may sensibly be raised."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)


def raise_limit() -> int:
    """Raise the limit as far as is allowed and sensible; return the soft limit there was.

    The hard limit is not all that counts: macOS refuses what its kernel gives no process, a sandbox refuses any change.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (attainable(), min(attainable(), OPEN_MAX)):
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    return soft


def for_clients() -> int:
    """Return how many client connections may be open now."""
    return max(LEAST_CLIENTS, (limit() - OWN) // 2)


def spare() -> bool:
    """Return whether another connection leaves enough for what the daemon itself opens in passing."""
    return limit() > _AMPLE or free() > _SPARE
