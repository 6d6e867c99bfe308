"""The process of a daemon: its exit codes, its signals, and that its end is bounded.

A crash of the core (registry, router, front) is our bug: everything is stopped and the process exits with 70, so that
whoever started it starts it afresh. Ending is bounded from the first signal on, whenever it comes: after `shutdown_s` a
thread kills what is left, and a second signal does so at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from socket import socket

import trio

from actors.errors import ConfigError
from actors.kit import first_of, is_want
from actors.transport.stdio.orphans import become_subreaper
from supervisor.config import Configuration
from supervisor.daemon import Daemon
from supervisor.host.datadir import DataDir
from supervisor.host.descriptors import raise_limit
from supervisor.host.hard_end import HardEnd
from supervisor.host.loop.clock import LoopClock
from supervisor.host.loop.pauses import short_pauses
from supervisor.host.loop.turns import LoopTurns, watch_turns
from supervisor.host.preload import preload
from supervisor.host.signals import end_on_signals
from supervisor.host.systemd import Systemd
from supervisor.servers.reloading.reload import Read

log = logging.getLogger(__name__)

EXIT_CRASH = 70
"""sysexits.h EX_SOFTWARE: a bug; start again."""
EXIT_STUCK = 75
"""sysexits.h EX_TEMPFAIL: ending in order took too long."""


def run(
    configuration: Configuration,
    data: DataDir,
    sockets: list[socket],
    announce: Callable[[list[str]], None],
    read: Read | None = None,
) -> int:
    """Run a daemon until a signal ends it; return the exit code. `announce` gets the base URLs once it listens.

    Raises `ConfigError` if the configuration or what is in the data directory turns out to be of no use, and what
    `is_want` tells if the system has too little for a daemon to begin with.
    """
    become_subreaper()  # what a killed shim leaves behind becomes ours, and is swept
    preload(remote=any(server.kind != "stdio" for server in configuration.servers))
    daemon = Daemon(configuration, data, sockets, descriptors=raise_limit())
    daemon.read = read or daemon.read
    daemon.systemd = Systemd(os.environ)
    end = HardEnd(configuration.settings.shutdown_s, EXIT_STUCK)
    turns = LoopTurns()
    refused: BaseException | None = None
    crashed = False
    try:
        trio.run(_main, daemon, announce, end.begin, turns, clock=LoopClock(turns.stand))
    except* ConfigError as group:
        refused = first_of(group)
    except* Exception as group:
        if is_want(group) and not daemon.urls.value:
            refused = first_of(group)
        else:
            log.exception("the daemon crashed")
            crashed = True
    finally:
        end.cancel()
    if refused is not None and not crashed:
        raise refused
    return EXIT_CRASH if crashed else 0


async def _main(
    daemon: Daemon, announce: Callable[[list[str]], None], ending: Callable[[], None], turns: LoopTurns
) -> None:
    """Run one daemon. Whatever holds up its start or end, it is over in time after `ending`, which needs no loop."""
    daemon.ending = ending
    with watch_turns(turns), short_pauses():
        async with trio.open_nursery() as watching:
            at_once = partial(os._exit, EXIT_STUCK)
            await watching.start(end_on_signals, daemon.closing, ending, at_once, daemon.reload)
            async with trio.open_nursery() as running:
                announce(await running.start(daemon.run))
                daemon.systemd.ready("runs as configured")
            watching.cancel_scope.cancel()
