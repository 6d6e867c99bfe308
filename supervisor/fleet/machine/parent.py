"""The process that started this node, as the node sees it: what it says at the start, and that it is there."""

from __future__ import annotations

import os
import threading

from actors.errors import ConfigError
from supervisor.fleet.machine.setup import MAX_SETUP_BYTES, NodeSetup, decode_setup

READ_BYTES = 65_536
PARENT_GONE = 75
"""sysexits.h EX_TEMPFAIL: this was no end in order."""


def take_setup(fd: int = 0) -> NodeSetup:
    """Return what this node is started with; from now on it ends at once when whoever started it does.

    Then nobody is there who would start it again, and whoever starts all of them anew finds none of these. Servers end
    with it, as their shims see its end. It is waited for by a thread of its own: a loop that is stuck would not see it.
    Raises `ConfigError` for what is no setup.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) <= MAX_SETUP_BYTES and (more := os.read(fd, READ_BYTES)):
        line += more
    setup = decode_setup(line)
    try:
        os.set_inheritable(setup.lock_fd, False)
    except OSError:
        raise ConfigError("the lock of the data directory was not passed on to this node") from None
    threading.Thread(target=_end_with, args=(fd,), name="lifeline", daemon=True).start()
    return setup


def _end_with(fd: int) -> None:
    while os.read(fd, READ_BYTES):
        pass
    os._exit(PARENT_GONE)
