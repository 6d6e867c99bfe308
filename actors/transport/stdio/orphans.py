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


def sweep(group: int) -> bool:
    """Kill what lives in a dead shim's process group, 0 if that is not known, kill and reap what it left to us; was
    there anything?

    Servers and what they start live in other sessions than ours, living shims (whose children never come to us) in
    ours: so a child of ours in another session is an orphan. Without being a subreaper we cannot tell, and do nothing
    beyond the group. One look takes some ms on a busy machine, and is taken only after the death of a shim.
    """
    ourselves, session, inherits = os.getpid(), os.getsid(0), _is_subreaper()
    swept = False
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_bytes().rpartition(b")")[2].split(None, 4)
        except OSError:
            continue
        state, (parent, its_group, its_session) = fields[0], map(int, fields[1:4])
        pid = int(entry.parent.name)
        ours = inherits and parent == ourselves and its_session != session
        if ours or (group and its_group == group and state not in b"ZX"):  # a zombie of the group is init's to reap
            swept = True
            _end(pid, reap=ours)
    return swept


def _end(pid: int, *, reap: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    if reap:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    return bool(flag.value)
