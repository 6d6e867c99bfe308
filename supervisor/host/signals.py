"""What the signals of the system mean to the daemon, and when it outlives the terminal it was started in.

SIGHUP has two senders. A person, or systemd, asks for the configuration to be read again, as with most daemons. A
terminal that is closed tells what runs in its foreground to end; what was put into the background, or started by
`nohup`, is meant to go on.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from contextlib import closing as closing_terminal
from contextlib import suppress

import trio

from supervisor.host.loading import OUTLIVED

log = logging.getLogger(__name__)

_GOES_ON = "received %s and go on"


def outlive_terminal() -> None:
    """Go on when the terminal we were started in is gone or not ours: writing to it must neither stop nor end us.

    A job in the background that writes to a terminal with `stty tostop` is stopped by SIGTTOU unless it ignores it
    (POSIX.1-2017, Base Definitions, 11.1.4).
    """
    for number in (signal.SIGTTOU, signal.SIGTTIN):
        signal.signal(number, signal.SIG_IGN)


class ForegroundTerminal:
    """The terminal in whose foreground this process runs, as it was when this object was made; there may be none."""

    def __init__(self) -> None:
        self._fd = -1
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
            return
        with suppress(OSError):
            fd = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
            try:
                in_foreground = os.tcgetpgrp(fd) == os.getpgrp()
            except OSError:
                in_foreground = False
            if in_foreground:
                self._fd = fd
            else:
                os.close(fd)

    @property
    def is_gone(self) -> bool:
        """Whether there was one, and it was closed since: then it is no terminal any more (EIO)."""
        if self._fd < 0:
            return False
        try:
            os.tcgetpgrp(self._fd)
        except OSError:
            return True
        return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


async def end_on_signals(
    closing: trio.Event,
    ending: Callable[[], None],
    at_once: Callable[[], object],
    reload: Callable[[], None],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """At the first SIGINT or SIGTERM call `ending` and set `closing`; at the next `at_once`. `OUTLIVED` end nothing.

    At SIGHUP `reload` is called, unless it comes of a terminal that was closed over us.
    """
    with (
        closing_terminal(ForegroundTerminal()) as terminal,
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *OUTLIVED) as signals,
    ):
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP and terminal.is_gone:
                if not closing.is_set():
                    log.info("the terminal was closed")
                    ending()
                    closing.set()
            elif number == signal.SIGHUP:
                log.info("received SIGHUP: the configuration is read again")
                reload()
            elif number in OUTLIVED:
                log.info(_GOES_ON, signal.Signals(number).name)
            elif closing.is_set():
                at_once()  # the kill shims see our end and remove every server
            else:
                log.info("received %s", signal.Signals(number).name)
                ending()
                closing.set()
