"""Logging that never blocks the loop.

A daemon whose stderr is a pipe that nobody reads must go on, and so must one whose stderr is closed. Records go through
a bounded queue to a thread of their own; what does not fit, or cannot be written, is dropped and counted. A record
begins on a line of its own with its time; control characters in it are escaped, line ends too. Only a traceback has
more lines, indented; as JSON it is in the line, too.

Where the system has no thread to give, at the start or later, records wait in the queue until it has one, or until the
end.

The thread writes to a duplicate of the file descriptor, never through `sys.stderr`: a thread that hangs in a write
would hold that object's lock, and Python aborts when it finds it held at its end.
"""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from actors.kit import is_want

if TYPE_CHECKING:  # the bridge logs, too, and has no use for the configuration
    from supervisor.config.values import LogFormat

_MAX_RECORDS = 10_000
MAX_RECORD_CHARS = 16_384
MAX_TRACE_LINES = 200
_JOIN_S = 2.0
_SHORT_CHARS = min(1000, select.PIPE_BUF // 4 - 1)
"""In UTF-8 at most PIPE_BUF bytes (POSIX): a pipe that takes any takes all of them."""
_STDERR = 2
_NOISY = ("hypercorn", "quart", "httpx2", "httpcore2", "trio_websocket", "watchdog")


class Lines(logging.Formatter):
    """Escapes what would end the line or speak to a terminal; a traceback keeps its lines, indented.

    `node`: which of several daemons writes here, if there are several.
    """

    def __init__(self, node: str = "") -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(node)s%(name)s: %(message)s")
        self._node = f"{node} " if node else ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record. What another handler left in the record is not used: it is not escaped."""
        record.message, record.node = record.getMessage(), self._node
        record.asctime = self.formatTime(record)
        lines = [_visible(self.formatMessage(record)[:MAX_RECORD_CHARS])]
        if record.exc_info:
            lines += ["    " + line for line in _trace(self.formatException(record.exc_info))]
        return "\n".join(lines)


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record as a line of JSON. `time` is RFC 3339 in UTC with milliseconds, `level` a level of `logging` in small
    letters, `trace` the lines of a traceback, `node` which of several daemons wrote it.
    """

    time: str
    level: str
    logger: str
    message: str
    trace: list[str] = []
    node: str = ""


class JsonLines(logging.Formatter):
    """Each record as an object on a line of its own, nothing unprintable in it. `node`: see `Lines`."""

    def __init__(self, node: str = "") -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with `message` and `trace` cut as `Lines` cuts them."""
        trace = _trace(self.formatException(record.exc_info)) if record.exc_info else []
        return _json_line(
            LogRecord(
                time=_rfc3339(record.created),
                level=record.levelname.lower(),
                logger=record.name,
                message=_visible(record.getMessage()[:MAX_RECORD_CHARS]),
                trace=trace,
                node=self._node,
            )
        )


_FORMATS: Final[dict[LogFormat, Callable[[str], logging.Formatter]]] = {"text": Lines, "json": JsonLines}


def _json_line(record: LogRecord) -> str:
    return msgspec.json.encode(record).decode()


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(text: str) -> list[str]:
    """Return the last lines of a traceback, which say most."""
    return [_visible(line) for line in text[-MAX_RECORD_CHARS:].splitlines()[-MAX_TRACE_LINES:]]


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Writer(logging.Handler):
    """Hands lines to a thread that writes them to a file descriptor, which it owns. Never waits."""

    def __init__(self, fd: int, max_records: int = _MAX_RECORDS, form: LogFormat = "text", node: str = "") -> None:
        super().__init__()
        self.setFormatter(_FORMATS[form](node))
        self._form, self._node = form, node
        self.lost = 0
        """Records that did not fit or could not be written."""
        self._fd = fd
        self._told = 0
        self._queue: queue.Queue[str | None] = queue.Queue(max_records)
        self._ending = False
        self._thread: threading.Thread | None = None
        self._start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._queue.put_nowait(self.format(record))
            if self._thread is None:
                self._start()
        except queue.Full:
            self.lost += 1
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not harm whoever logged it
            self.lost += 1

    def finish(self, timeout_s: float = _JOIN_S) -> None:
        """Write what is queued, but never wait longer for a pipe that nobody reads."""
        self._ending = True
        with suppress(queue.Full):  # then the thread looks at `_ending` when it gets that far
            self._queue.put_nowait(None)
        if self._thread is None:
            self._write_here()
        else:
            self._thread.join(timeout_s)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not is_want(error):
                raise
        else:
            self._thread = thread

    def _write_here(self) -> None:
        """Write what a pipe takes without waiting; the rest is lost, as is JSON that would have to be cut."""
        while not self._queue.empty() and select.select((), (self._fd,), (), 0)[1]:
            line = self._queue.get_nowait() or ""
            if line and (self._form == "text" or len(line) <= _SHORT_CHARS):
                self._write(line[:_SHORT_CHARS])
        os.close(self._fd)

    def _run(self) -> None:
        while not (self._ending and self._queue.empty()):
            line = self._queue.get()
            if line is None:
                break
            self._write(line)
            if self.lost > self._told:
                lost, self._told = self.lost, self.lost
                self._write(self._loss(lost))
        os.close(self._fd)

    def _loss(self, lost: int) -> str:
        said = f"{lost} log records were lost so far"
        if self._form == "text":
            return f"({said})"
        now = _rfc3339(time.time())
        return _json_line(LogRecord(time=now, level="warning", logger=__name__, message=said, node=self._node))

    def _write(self, line: str) -> None:
        data = (line + "\n").encode(errors="backslashreplace")
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self.lost += 1
            self._told += 1  # there is nobody to tell


def set_level(level: str) -> None:
    """Log records of this severity and above from now on."""
    logging.getLogger().setLevel(level.upper())


def count_lost_records() -> int:
    return sum(handler.lost for handler in logging.getLogger().handlers if isinstance(handler, Writer))


@contextmanager
def logging_to_stderr(level: str, fd: int = _STDERR, form: LogFormat = "text", node: str = "") -> Iterator[Writer]:
    """Log to stderr for the block, from a thread that may block alone. The root logger is as before afterwards.

    `node`: which of several daemons writes there, if there are several.
    """
    root = logging.getLogger()
    before = root.level
    writer = Writer(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1), form=form, node=node)
    root.addHandler(writer)
    set_level(level)
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        yield writer
    finally:
        root.removeHandler(writer)
        root.setLevel(before)
        writer.finish()
