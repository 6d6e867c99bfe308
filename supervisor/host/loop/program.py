"""A program of the loop: its exit codes, its signals, and that its end is bounded.

A crash is our bug: everything is stopped and the process exits with 70, so that whoever started it starts it afresh.
Ending is bounded from the first signal on, whenever it comes: after a while a thread kills what is left, and a second
signal does so at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import trio

from actors.errors import ConfigError
from actors.kit import Latest, first_of, is_want
from supervisor.host.hard_end import HardEnd
from supervisor.host.loop.clock import LoopClock
from supervisor.host.loop.pauses import short_pauses
from supervisor.host.loop.turns import LoopTurns, watch_turns
from supervisor.host.signals import end_on_signals
from supervisor.host.systemd import Systemd

log = logging.getLogger(__name__)

EXIT_CRASH: Final = 70
"""sysexits.h EX_SOFTWARE: a bug; start again."""
EXIT_STUCK: Final = 75
"""sysexits.h EX_TEMPFAIL: ending in order took too long."""


class ProgramFailed(Exception):
    """Raised by a program that ends otherwise than in order and has said why: `code` is its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class Program(Protocol):
    """What runs until `closing` is set. `ending` is called when the end begins; more than once. `urls` holds the
    addresses it listens on once it does.
    """

    closing: trio.Event
    ending: Callable[[], None]
    systemd: Systemd
    urls: Latest[list[str]]

    async def run(self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Run; started with the base URLs, once clients can connect."""

    def reload(self) -> None:
        """Have the configuration read again."""


def run_program(program: Program, announce: Callable[[list[str]], None], shutdown_s: float) -> int:
    """Run a program until a signal ends it; return the exit code. `announce` gets the base URLs once it listens.

    Raises `ConfigError` as the program does, and what `is_want` tells if the system has too little to begin with.
    """
    end = HardEnd(shutdown_s, EXIT_STUCK)
    turns = LoopTurns()
    refused: BaseException | None = None
    code = 0
    try:
        trio.run(_main, program, announce, end.begin, turns, clock=LoopClock(turns.stand))
    except* ConfigError as group:
        refused = first_of(group)
    except* ProgramFailed as group:
        failed = first_of(group)
        assert isinstance(failed, ProgramFailed)
        code = failed.code
    except* Exception as group:
        if is_want(group) and not program.urls.value:
            refused = first_of(group)
        else:
            log.exception("the daemon crashed")
            code = EXIT_CRASH
    finally:
        end.cancel()
    if refused is not None and not code:
        raise refused
    return code


async def _main(
    program: Program, announce: Callable[[list[str]], None], ending: Callable[[], None], turns: LoopTurns
) -> None:
    """Run one program. Whatever holds up its start or end, it is over in time after `ending`, which needs no loop."""
    program.ending = ending
    with watch_turns(turns), short_pauses():
        async with trio.open_nursery() as watching:
            at_once = partial(os._exit, EXIT_STUCK)
            await watching.start(end_on_signals, program.closing, ending, at_once, program.reload)
            async with trio.open_nursery() as running:
                announce(await running.start(program.run))
                program.systemd.ready("runs as configured")
            watching.cancel_scope.cancel()
