"""What the system knows of the daemon's own process, read from /proc (Linux). Blocks.

Formats: proc(5). Elsewhere, or where nothing may be read, a figure is not there.
"""

from __future__ import annotations

import resource
import time
from contextlib import suppress
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_PAGE_BYTES = resource.getpagesize()
_TICKS_PER_S = 100
"""USER_HZ, the unit of `stat`: the same on every architecture that we run on."""


class OwnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of this process: seconds, bytes, unix time; None where the system does not tell."""

    cpu_s: float
    resident_bytes: int | None = None
    open_files: int | None = None
    max_files: int | None = None
    started: float | None = None


def read_own() -> OwnFigures:
    resident = files = started = None
    with suppress(OSError, ValueError, IndexError):
        resident = int((_PROC / "self/statm").read_bytes().split()[1]) * _PAGE_BYTES
        files = len([*(_PROC / "self/fd").iterdir()])
        ticks = int((_PROC / "self/stat").read_bytes().rpartition(b")")[2].split()[19])
        booted = next(line for line in (_PROC / "stat").read_bytes().splitlines() if line.startswith(b"btime "))
        started = int(booted.split()[1]) + ticks / _TICKS_PER_S
    return OwnFigures(
        cpu_s=time.process_time(),
        resident_bytes=resident,
        open_files=files,
        max_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        started=started,
    )
