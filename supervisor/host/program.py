"""A program of the loop: its exit codes, its signals, what systemd is told of it, and that its end is bounded.

A crash is our bug: everything is stopped and the process exits with 70, so that whoever started it starts it afresh.

Ending is bounded from the first signal on, whenever it comes: after a while a thread kills what is left, and a second
signal does so at once. That end (`HardEnd`) is made at the start, when there is still everything: its thread waits all
the while, so that at the end no thread, no descriptor, no memory and no turn of the loop is needed. Where there was no
thread even then, the kernel's timer ends the process: by SIGALRM instead of an exit code. The time is waited for in
pieces. Of a standstill, in which the end could not go on either, one piece counts.

Systemd is told (sd_notify(3)) that we are ready, reload, stop, and still live. It names a socket for that in
`NOTIFY_SOCKET`, and in `WATCHDOG_USEC` how often it wants a sign of life. Without them nothing is told. What it does
not take at once is dropped: it must not hold us up.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import trio

from actors.errors import ConfigError
from actors.kit import Latest, first_of, is_want
from supervisor.host.pauses import short_pauses
from supervisor.host.signals import end_on_signals
from supervisor.host.turns import LoopClock, LoopTurns, watch_turns

_PIECES = 20


class HardEnd:
    """Ends the process with `code`, `seconds` after `begin`, unless `cancel` comes first."""

    def __init__(self, seconds: float, code: int) -> None:
        self._seconds = seconds
        self._code = code
        self._begun = threading.Event()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="hard end", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            if not is_want(error):
                raise
            self._thread = None

    def begin(self) -> None:
        if self._thread is None and not self._begun.is_set():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        self._begun.set()

    def cancel(self) -> None:
        self._cancelled.set()
        if self._thread is None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._begun.set()

    def _run(self) -> None:
        self._begun.wait()
        if not any(self._cancelled.wait(self._seconds / _PIECES) for _ in range(_PIECES)):
            os._exit(self._code)


MAX_STATUS_CHARS = 200
_MAX_DIGITS = 20
"""Of a number of microseconds, which has 64 bits."""
_LOOK_S = 1.0
"""So often is looked whether a sign of life is due."""


class Systemd:
    """Speaks to the systemd that `environ` names, if any."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        ours = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        every_us = environ.get("WATCHDOG_USEC", "")
        known = ours and every_us.isdecimal() and len(every_us) <= _MAX_DIGITS
        self._watched_s = int(every_us) / 1e6 if known else 0.0

    def ready(self, status: str) -> None:
        """Say that the start, or a reload, is done. `status` is for people."""
        self._tell("READY=1", f"STATUS={' '.join(status.split())[:MAX_STATUS_CHARS]}")

    def begin_reload(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def begin_stop(self) -> None:
        self._tell("STOPPING=1", "STATUS=ending: calls in flight may end")

    async def give_signs_of_life(self, now: Callable[[], float] = time.monotonic) -> None:
        """Give them twice as often as asked, from the loop: one that is stuck gives none.

        systemd counts the time in which we stood still, and the clock of the loop does not. So `now` is the system's.
        """
        given = -math.inf
        while self._watched_s:
            left = given + self._watched_s / 2 - now()
            if left <= 0:
                self._tell("WATCHDOG=1")
                given, left = now(), self._watched_s / 2
            await trio.sleep(min(left, _LOOK_S))

    def _tell(self, *assignments: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            out.sendto("\n".join(assignments).encode(), self._address)


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
