"""Ends the servers of a daemon whose lease in its fleet is over, if the daemon itself is stopped by then.

    python -I -S lease_guard.py /path/of/kill_shim.py

A script of its own, one process for a daemon that is a node. On its input the daemon says until when its lease runs:
lines of nanoseconds of the clock that goes on while a process, or the machine, is stopped (CLOCK_BOOTTIME). A daemon
that lives ends its servers before that. One that is stopped (SIGSTOP, a debugger) cannot, while its servers go on; so
at that moment every shim that is a child of it is told to kill what it holds (SIGUSR1, see `kill_shim.py`). The end of
the input is the end of the daemon, whose shims see that by themselves.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

LOOK_S = 1.0
"""`select` does not count the time in which the machine was suspended."""


def shims(daemon: int, program: str) -> list[int]:
    """Return the processes of that program that are children of the daemon."""
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line, words = (entry / "stat").read_bytes(), (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it is gone
            continue
        if int(line[line.rindex(b")") + 2 :].split(None, 2)[1]) == daemon and program.encode() in words:
            pids.append(int(entry.name))
    return pids


def end_servers(daemon: int, program: str) -> None:
    for pid in shims(daemon, program):
        try:
            os.kill(pid, signal.SIGUSR1)
        except OSError:  # gone by now
            continue


def main(program: str) -> None:
    """Guard the lease of our parent until it ends."""
    daemon, deadline, rest = os.getppid(), 0, b""
    while True:
        left_s = (deadline - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) / 1e9 if deadline else LOOK_S
        if select.select((0,), (), (), max(0.0, min(left_s, LOOK_S)))[0]:
            data = os.read(0, 4096)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            deadline = int(lines[-1]) if lines else deadline
        elif deadline and left_s <= 0:
            end_servers(daemon, program)
            deadline = 0


if __name__ == "__main__":
    main(sys.argv[1])
