"""Logging that never blocks the loop.

A daemon whose stderr is a pipe that nobody reads must go on, and so must one whose stderr is closed. Records go through
a bounded queue to a thread of their own; what does not fit, or cannot be written, is dropped and counted. A record
begins on a line of its own with its time; control characters in it are escaped, line ends too. Only a traceback has
more lines, indented. (Threat catalogue D20, D21.)

The thread writes to a duplicate of the file descriptor, never through `sys.stderr`: a thread that hangs in a write
would hold that object's lock, and Python aborts when it finds it held at its end.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MAX_RECORDS = 10_000
MAX_RECORD_CHARS = 16_384
JOIN_S = 2.0
STDERR = 2
_NOISY = ("hypercorn", "quart", "httpx2", "httpcore2", "trio_websocket")


class Lines(logging.Formatter):
    """Escapes what would end the line or speak to a terminal; a traceback keeps its lines, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record. What another handler left in the record is not used: it is not escaped."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        lines = [_visible(self.formatMessage(record)[:MAX_RECORD_CHARS])]
        if record.exc_info:
            trace = self.formatException(record.exc_info)[-MAX_RECORD_CHARS:]
            lines += ["    " + _visible(line) for line in trace.splitlines()]
        return "\n".join(lines)


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Writer(logging.Handler):
    """Hands lines to a thread that writes them to a file descriptor, which it owns. Never waits."""

    def __init__(self, fd: int, max_records: int = MAX_RECORDS) -> None:
        super().__init__()
        self.setFormatter(Lines())
        self.lost = 0
        """Records that did not fit or could not be written."""
        self._fd = fd
        self._told = 0
        self._queue: queue.Queue[str | None] = queue.Queue(max_records)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or count it as lost."""
        try:
            self._queue.put_nowait(self.format(record))
        except queue.Full:
            self.lost += 1
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not harm whoever logged it
            self.lost += 1

    def finish(self, timeout_s: float = JOIN_S) -> None:
        """Write what is queued, but never wait longer for a pipe that nobody reads."""
        self._ending = True
        with suppress(queue.Full):  # then the thread looks at `_ending` when it gets that far
            self._queue.put_nowait(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not (self._ending and self._queue.empty()):
            line = self._queue.get()
            if line is None:
                break
            self._write(line)
            if self.lost > self._told:
                lost, self._told = self.lost, self.lost
                self._write(f"({lost} log records were lost so far)")
        os.close(self._fd)

    def _write(self, line: str) -> None:
        data = (line + "\n").encode(errors="backslashreplace")
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self.lost += 1
            self._told += 1  # there is nobody to tell


def records_lost() -> int:
    """Return how many records were lost by the writers in use."""
    return sum(handler.lost for handler in logging.getLogger().handlers if isinstance(handler, Writer))


@contextmanager
def logging_to_stderr(level: str, fd: int = STDERR) -> Iterator[Writer]:
    """Log to stderr for the block, from a thread that may block alone. The root logger is as before afterwards."""
    root = logging.getLogger()
    before = root.level
    writer = Writer(os.dup(fd))
    root.addHandler(writer)
    root.setLevel(level.upper())
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        yield writer
    finally:
        root.removeHandler(writer)
        root.setLevel(before)
        writer.finish()
