"""Which sink goes with an entry of the configuration: a file, the database, or an address (`http_sink`)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.kit import is_want
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivered, EventBatch, Sink
from supervisor.events.kinds import OfServer, ToolsDiscovered
from supervisor.host.files import PRIVATE
from supervisor.host.loading import preload
from supervisor.host.workbench import beside
from supervisor.store import Store
from supervisor.store.records import DAY_S, SavedEvent

# Writes events to a file, a line of JSON each, in a thread.
#
# - The file is for its owner alone, and no link is followed. One that is full is renamed to `NAME.1`, and that to
#   `NAME.2`; the last is removed.
# - A batch is written whole or not at all: what a full disk cut off is taken back.

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


# Keeps events in the daemon's own database, for so many days and rows.


class StoreSink:
    """Hands batches to the store. `clock` gives unix seconds."""

    def __init__(self, config: EventSink, store: Store, clock: Callable[[], float]) -> None:
        self._config = config
        self._store = store
        self._clock = clock

    async def deliver(self, batch: EventBatch) -> Delivered:
        """Save a batch. Of the lists of tools of a server only the newest is kept."""
        rows = [
            SavedEvent(
                id=id_,
                time=event.time,
                type=event.type,
                server=event.data.installation_id if isinstance(event.data, OfServer) else "",
                payload=text,
            )
            for event, id_, text in zip(batch.events, batch.ids, batch.texts, strict=True)
        ]
        before = self._clock() - self._config.days * DAY_S
        lists = {event.type for event in batch.events if isinstance(event.data, ToolsDiscovered)}
        saved = self._store.events.append(batch.id, rows, before, self._config.rows, lists)
        if not saved or not await self._store.secure():
            return Delivered("kept", "the database cannot be written now; /api/status says why")
        return Delivered("taken")

    async def close(self) -> None:
        """The store is the daemon's."""


class LateHttpSink:
    """An HTTP sink whose libraries are imported in a thread, before its first batch: they take a fifth of a second."""

    def __init__(self, config: EventSink, clock: Callable[[], float]) -> None:
        self._config = config
        self._clock = clock
        self._sink: Sink | None = None

    async def deliver(self, batch: EventBatch) -> Delivered:
        if self._sink is None:
            await beside(partial(preload, remote=True))
            from supervisor.delivery.http_sink import HttpSink

            self._sink = HttpSink(self._config, self._clock)
        return await self._sink.deliver(batch)

    async def close(self) -> None:
        if self._sink is not None:
            await self._sink.close()


class Sinks:
    """Makes sinks. `clock` gives unix seconds."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def make(self, config: EventSink) -> Sink:
        match config.type:
            case "store":
                return StoreSink(config, self._store, self._clock)
            case "file":
                return FileSink(config)
            case "http":
                return LateHttpSink(config, self._clock)
