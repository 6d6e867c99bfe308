"""What is left of a server whose kill shim was itself killed: its processes come to us, and we end them.

Only on Linux, and only if this process asked to inherit orphans (`become_subreaper`); elsewhere they go to init.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


def become_subreaper() -> bool:
    """Make this process the one that inherits orphans (Linux); return whether that worked.

    For the daemon's start, as it is about the whole process: if a kill shim is itself killed, what it held comes to
    us and is swept. A program that does this must not start processes in sessions of their own by other ways.
    """
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def sweep_orphans() -> bool:
    """Kill and reap what a dead shim left to us; return whether there was anything.

    Servers and what they start live in other sessions than ours, living shims (whose children never come to us) in
    ours: so a child of ours in another session is an orphan. Only if we are a subreaper: else they went to init.
    """
    flag = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    if not flag.value:
        return False
    orphans = [pid for pid in _children() if _in_other_session(pid)]
    for pid in orphans:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return bool(orphans)


def _in_other_session(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _children() -> list[int]:
    """Our children, of all threads. Some ms on a busy machine, and done only after the death of a shim."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append(int(entry.parent.name))
    return found
