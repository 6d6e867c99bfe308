"""Writes events to a file, a line of JSON each, in a thread.

- The file is for its owner alone, and no link is followed. One that is full is renamed to `NAME.1`, and that to
  `NAME.2`; the last is removed.
- A batch is written whole or not at all: what a full disk cut off is taken back.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.kit import is_want
from supervisor.config.sections.event_sinks import EventSink
from supervisor.delivery.sink import Delivered, EventBatch
from supervisor.host.files import PRIVATE

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileSink:
    """Appends batches to one file."""

    def __init__(self, config: EventSink) -> None:
        self._path = Path(config.path)
        self._max_bytes = config.max_bytes
        self._files = config.files
        self._limiter = trio.CapacityLimiter(1)

    async def deliver(self, batch: EventBatch) -> Delivered:
        lines = b"".join([text + b"\n" for text in batch.texts])
        try:
            # A thread that hangs keeps its place in the limiter, so that no other one writes beside it.
            await trio.to_thread.run_sync(partial(self._write, lines), limiter=self._limiter, abandon_on_cancel=True)
        except OSError as error:
            return Delivered("kept", _reason(error))
        except RuntimeError as error:  # no thread
            if not is_want(error):
                raise
            return Delivered("kept", "the system has no thread for it")
        return Delivered("taken")

    async def close(self) -> None:
        """Nothing is held."""
        await trio.lowlevel.checkpoint()

    def _write(self, lines: bytes) -> None:
        fd = self._open()
        try:
            size = os.fstat(fd).st_size
            if size and size + len(lines) > self._max_bytes:
                os.close(fd)
                fd = -1
                self._rotate()
                fd, size = self._open(), 0
            self._append(fd, size, lines)
        finally:
            if fd >= 0:
                os.close(fd)

    def _open(self) -> int:
        fd = os.open(self._path, _FLAGS, PRIVATE)
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(fd)
            raise OSError(errno.EPERM, "not a file of ours")
        if stat.S_IMODE(about.st_mode) != PRIVATE:
            os.fchmod(fd, PRIVATE)
        return fd

    def _rotate(self) -> None:
        for number in range(self._files - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._place(number).replace(self._place(number + 1))
        if self._files:
            self._path.replace(self._place(1))
        else:
            self._path.unlink()

    def _place(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    @staticmethod
    def _append(fd: int, size: int, lines: bytes) -> None:
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError:
            os.ftruncate(fd, size)
            raise


def _reason(error: OSError) -> str:
    """Say why, without the path."""
    if error.errno == errno.ELOOP:
        return "the file is a symbolic link, which is not followed"
    return f"the file cannot be written: {error.strerror or 'unknown reason'}"
