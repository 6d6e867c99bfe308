"""The end that nothing can hold up: a bound on the time from the first sign of the end to the end of the process.

Made at the start, when there is still everything: its thread waits all the while, so that at the end no thread, no
descriptor, no memory and no turn of the loop is needed. Where there was no thread even then, the kernel's timer ends
the process: by SIGALRM instead of an exit code.

The time is waited for in pieces. Of a standstill, in which the end could not go on either, one piece counts.
"""

from __future__ import annotations

import os
import signal
import threading

from actors.kit import is_want

PIECES = 20


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
        if not any(self._cancelled.wait(self._seconds / PIECES) for _ in range(PIECES)):
            os._exit(self._code)
