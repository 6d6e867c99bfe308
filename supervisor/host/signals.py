"""What the signals of the system mean to the daemon, and that it outlives the terminal it was started in."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

import trio

from supervisor.host.loading import OUTLIVED

log = logging.getLogger(__name__)

GOES_ON = "received %s and go on"


def outlive_terminal() -> None:
    """Go on when the terminal we were started in is gone or not ours: writing to it must neither stop nor end us.

    A job in the background that writes to a terminal with `stty tostop` is stopped by SIGTTOU unless it ignores it
    (POSIX.1-2017, Base Definitions, 11.1.4).
    """
    for number in (signal.SIGTTOU, signal.SIGTTIN):
        signal.signal(number, signal.SIG_IGN)


async def end_on_signals(
    closing: trio.Event,
    ending: Callable[[], None],
    at_once: Callable[[], object],
    reload: Callable[[], None],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """At the first SIGINT or SIGTERM call `ending` and set `closing`; at the next `at_once`. `OUTLIVED` end nothing.

    At SIGHUP, which a terminal sends that is closed, too, `reload` is called.
    """
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *OUTLIVED) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP:
                log.info("received SIGHUP: the configuration is read again")
                reload()
            elif number in OUTLIVED:
                log.info(GOES_ON, signal.Signals(number).name)
            elif closing.is_set():
                at_once()  # the kill shims see our end and remove every server
            else:
                log.info("received %s", signal.Signals(number).name)
                ending()
                closing.set()
