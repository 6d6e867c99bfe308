"""Which processes there are of those that bear a mark in their command line. Linux."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.machine import pause

STEP_S = 0.02


def marked(mark: str) -> set[int]:
    """Return the processes that live and have `mark` as an argument."""
    wanted = f"\0{mark}\0".encode()
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if wanted in (process / "cmdline").read_bytes():
                    found.add(int(process.name))
            except OSError:
                continue
    return found - {os.getpid()}


def zombies(parent: int) -> set[int]:
    """Return the children of a process that are dead and that it has not waited for."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, above = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(above) == parent:
            found.add(int(stat.parent.name))
    return found


def left_after(pids: set[int], mark: str, patience_s: float) -> set[int]:
    """Wait until none of these lives, or for so long; return which of them still do."""
    end = time.monotonic() + patience_s
    while (left := pids & marked(mark)) and time.monotonic() < end:
        pause(STEP_S)
    return left
