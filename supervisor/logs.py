"""Logging that never blocks the loop.

A daemon whose stderr is a pipe that nobody reads must go on. Records go through a bounded queue to a thread of their
own; what does not fit is dropped and counted. One record is one line: control characters are escaped.
"""

from __future__ import annotations

import logging
import logging.handlers
import queue
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MAX_RECORDS = 10_000


class _Dropping(logging.handlers.QueueHandler):
    """Drops records instead of waiting or raising."""

    def __init__(self, records: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(records)
        self.dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            super().enqueue(record)
        except queue.Full:
            self.dropped += 1


class _OneLine(logging.Formatter):
    """Escapes what would end the line or speak to a terminal; a traceback keeps its lines, indented."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        first, *rest = text.split("\n")
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in first)
        return "\n    ".join([shown, *("".join(c if c.isprintable() else " " for c in line) for line in rest)])


@contextmanager
def logging_to_stderr(level: str) -> Iterator[None]:
    """Log to stderr for the block, from a thread that may block alone."""
    records: queue.Queue[logging.LogRecord] = queue.Queue(MAX_RECORDS)
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(_OneLine("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    listener = logging.handlers.QueueListener(records, output, respect_handler_level=True)
    handler = _Dropping(records)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for noisy in ("hypercorn", "quart", "httpx2", "httpcore2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    thread = _start(listener)
    try:
        yield
    finally:
        root.removeHandler(handler)
        _stop(listener, thread)


def _start(listener: logging.handlers.QueueListener) -> object:
    listener.start()
    return listener._thread


def _stop(listener: logging.handlers.QueueListener, thread: object) -> None:
    """Write what is queued, but never wait for a pipe that nobody reads: the thread is a daemon thread."""
    try:
        listener.enqueue_sentinel()
    except queue.Full:
        return
    join = getattr(thread, "join", None)
    if join is not None:
        join(2.0)
