"""Write-behind: callers never wait for the disk, and never learn that it failed.

- Saving is a plain `def`: it queues and returns, so a handler of an actor may call it.
- A disk that fails, is full or locked, or want of threads costs persistence only: the writes are counted, the state
  is "degraded", and the batch is tried again by itself, with pauses, together with what came meanwhile; the newest
  wins.
- A file that cannot be opened at the start holds nobody up: it is opened later, and `ready` says when.
- One thread at a time uses the file.
- The writer is shielded from the cancellation of its surroundings: only closing ends it, after a last flush.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeVar, TypeVarTuple

import trio
from msgspec.structs import replace

from actors.errors import ConfigError
from actors.kit import Conditions, Pauses, is_want
from supervisor.store.database import Database, Key, Later, Write
from supervisor.store.records import Row, Statement, StoreStatus, Table, ToolUsage

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The queue of writes that wait for the disk.
#
# It holds one write per key: a newer one replaces the older, usage is added up. It is therefore bounded by the
# number of servers, principals and tools, launches, vectors and ended sessions, and by `max_keys` whatever those are.
# New keys are refused, too, where what waits has `max_bytes`: minutes of what was called add up while a disk fails for
# long. Records of the audit have a key each, and a bound of their own: no record is lost for another one, and none of
# the rest.

MAX_KEYS = 50_000
_MAX_BYTES = 64 * 1024 * 1024
"""Of the texts and bytes of all that waits. What is made only when it is written is held by somebody else anyhow."""
_MAX_RECORDS = 10_000
"""So many of them wait while the disk fails; those that follow are lost, and counted."""


class WriteQueue:
    """The newest write of each key, in the order in which they came: one that removes rows must not pass one of a row
    that was put after it."""

    def __init__(self, *, max_keys: int = MAX_KEYS, max_bytes: int = _MAX_BYTES) -> None:
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._waiting: dict[Key, Write] = {}
        self._records = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether so much waits that what others may send without end is to give way to the rest."""
        return len(self._waiting) >= self._max_keys // 8 or self._bytes >= self._max_bytes // 4

    def put(self, write: Write) -> bool:
        """Queue a write. False: the queue is full of other keys, or of bytes, and the write is dropped."""
        older = self._waiting.get(write.key)
        size = write.size - (0 if older is None else older.size)
        if older is None:
            if size and self._waiting and self._bytes + size > self._max_bytes:
                return False
            if write.is_record and self._records >= _MAX_RECORDS:
                return False
            if not write.is_record and len(self._waiting) - self._records >= self._max_keys:
                return False
            self._records += write.is_record
        self._waiting.pop(write.key, None)
        self._waiting[write.key] = _merge(older, write)
        self._bytes += size
        return True

    def take(self) -> list[Write]:
        batch, self._waiting, self._records, self._bytes = list(self._waiting.values()), {}, 0, 0
        return batch

    def put_back(self, batch: Collection[Write]) -> int:
        """Return the batch taken last, which failed; the number of its writes that had not failed before.

        What was queued meanwhile is newer and wins. The queue may pass `max_keys` here, by one batch at most.
        """
        returned = {write.key: replace(write, tried=True) for write in batch}
        newer = {key: _merge(returned.pop(key, None), write) for key, write in self._waiting.items()}
        self._waiting = returned | newer
        self._records = sum(write.is_record for write in self._waiting.values())
        self._bytes = sum(write.size for write in self._waiting.values())
        return sum(not write.tried for write in batch)


def _merge(older: Write | None, newer: Write) -> Write:
    if older is None or older.usage is None or newer.usage is None:
        return newer
    return Write(newer.key, usage=older.usage.plus(newer.usage))


_DATABASE = "database"
"""How the file is called in what is told of it."""
_WHAT = "store"
"""How the condition is called while nothing can be saved."""
_MAX_PAUSE_S = 5.0
_FAILURES = (sqlite3.Error, OSError, ConfigError, RuntimeError, MemoryError, ImportError)
"""What an outage may look like; `RuntimeError` and `ImportError` only if they are want of resources."""


class _Outage(Exception):
    """The disk refuses, or the system lacks what using it needs. `conditions` and `_Disk.trouble` say why."""


class _Disk:
    """Uses one database. `trouble` is empty, or why the last use failed; `ready` is set once it could be used."""

    def __init__(self, database: Database, conditions: Conditions) -> None:
        self.ready = trio.Event()
        self.trouble = ""
        self._database = database
        self._conditions = conditions
        self._told = ""
        self._limiter = trio.CapacityLimiter(1)

    async def use(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return what `work` of the database returns, in a thread. Raises `_Outage`. A checkpoint."""
        try:
            # An abandoned thread keeps its place in the limiter until it ends, so two never use the file together.
            returned = await trio.to_thread.run_sync(work, *args, limiter=self._limiter, abandon_on_cancel=True)
        except _FAILURES as error:
            if isinstance(error, RuntimeError | ImportError) and not is_want(error):
                raise
            self.fail(str(error))
            raise _Outage from error
        self.ready.set()
        if self._database.moved != self._told:
            self._told = self._database.moved
            self._conditions.note(_DATABASE, f"it was damaged, so it is {self._told} now, and a fresh one was made")
        return returned

    def fail(self, why: str) -> None:
        self.trouble = why or "unknown error"
        self._conditions.begin(_WHAT, f"nothing is saved until the disk recovers: {self.trouble}")

    def recover(self) -> None:
        self.trouble = ""
        self._conditions.end(_WHAT)

    async def open(self, open_s: float) -> None:
        """Try for so long to open the file. Raises `ConfigError` for one that a newer version wrote."""
        with trio.move_on_after(open_s):
            try:
                await self.use(self._database.open)
            except _Outage as outage:
                if isinstance(outage.__cause__, ConfigError):
                    raise outage.__cause__ from None
            return
        self.fail(f"the disk did not answer within {open_s:g} s")

    async def open_later(self) -> None:
        pauses = Pauses(max_s=_MAX_PAUSE_S)
        while not self.ready.is_set():
            with trio.move_on_after(pauses.next()):
                await self.ready.wait()
                return
            try:
                await self.use(self._database.open)
            except _Outage:
                continue
            self.recover()

    async def close(self, rest: Callable[[], object]) -> None:
        """Close the file. Without a thread to be had `rest`, what there is left to do, is done on the loop before."""
        try:
            await self.use(self._database.close)
        except _Outage as outage:
            if outage.__cause__ is not None and is_want(outage.__cause__):
                self._close_here(rest)

    def _close_here(self, rest: Callable[[], object]) -> None:
        try:
            rest()
            self._database.close()
        except _FAILURES as error:
            self.fail(str(error))


_FLUSH_S = 5.0
LINGER_S = 0.2
OPEN_S = 3.0
"""For a slow disk at the start; a locked file is given up sooner, after SQLite's own wait."""
CLOSE_S = 2.0
_KEEP_S = 1.0
_READ_S = 5.0


class WriteBehind:
    """What every table is saved and loaded by."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float],
        linger_s: float,
        max_keys: int,
        conditions: Conditions | None = None,
    ) -> None:
        self._disk = _Disk(database, conditions or Conditions(clock))
        self._database = database
        self.clock = clock
        self._linger_s = linger_s
        self._queue = WriteQueue(max_keys=max_keys)
        self._unsettled = 0  # writes of the batch that is with the thread now
        self._flushes: list[trio.Event] = []
        self._wake = trio.Event()
        self._hurry = trio.Event()
        self._writer = trio.CancelScope(shield=True)
        self._closed = False
        self._lost_writes = 0

    @property
    def ready(self) -> trio.Event:
        return self._disk.ready

    @property
    def is_busy(self) -> bool:
        """See `WriteQueue.is_busy`."""
        return self._queue.is_busy

    @property
    def state(self) -> Literal["ok", "degraded"]:
        return "degraded" if self._disk.trouble else "ok"

    def status(self) -> StoreStatus:
        return StoreStatus(
            state=self.state,
            lost_writes=self._lost_writes,
            pending_writes=len(self._queue) + self._unsettled,
            last_error=self._disk.trouble,
            damaged=self._database.moved,
        )

    async def flush(self, deadline_s: float = _FLUSH_S) -> bool:
        """Wait until everything queued so far was tried. True: it is all on disk. A checkpoint."""
        tried = trio.Event()
        with trio.move_on_after(deadline_s):
            if self._queue or self._unsettled:
                self._flushes.append(tried)
                self._wake.set()
                self._hurry.set()
                await tried.wait()
            await trio.lowlevel.checkpoint()
            return not self._queue and not self._unsettled
        return False

    async def secure(self) -> bool:
        """Wait until what was saved so far was tried; return whether the disk took it. A checkpoint."""
        await self.flush()
        return self.state == "ok"

    async def keep(self) -> bool:
        """Wait until what was saved so far is on disk, at most a moment, and not at all while the disk fails us."""
        return self.state == "ok" and await self.flush(_KEEP_S)

    def write(
        self, key: Key, *statements: Statement, usage: ToolUsage | None = None, later: Later | None = None
    ) -> bool:
        """Save by some statements, in the place of what waits under the same key, or by adding to it; see `Write`.

        False if that is lost.
        """
        if self._closed or not self._queue.put(Write(key, statements, usage, later=later)):
            self._lost_writes += 1
            self._disk.fail("the store is closed" if self._closed else "too many writes wait for the disk")
            return False
        self._wake.set()
        return True

    async def read(self, kind: type[T], query: str, values: Sequence[object] = (), tidy: str = "") -> list[T] | None:
        """Return what `Database.load` does, after all that was saved before; None if the disk does not say."""
        return await self._use(self._database.load, kind, query, values, tidy)

    async def read_used(self, table: Table[Row], keys: Sequence[object]) -> list[Row] | None:
        """Return what `Database.load_used` does, in the same way."""
        return await self._use(self._database.load_used, table, keys, self.clock())

    async def _use(self, load: Callable[[*Ts], T], *args: *Ts) -> T | None:
        await self.flush()  # so that a reader finds what was saved before
        with trio.move_on_after(_READ_S):
            try:
                loaded = await self._disk.use(load, *args)
            except _Outage:
                return None
            if not self._queue:
                self._disk.recover()
            return loaded
        self._disk.fail(f"the disk did not answer within {_READ_S:g} s")
        return None

    async def _write_behind(self) -> None:
        pauses = Pauses(max_s=_MAX_PAUSE_S)
        with self._writer:
            while True:
                await self._wake.wait()
                with trio.move_on_after(self._linger_s):
                    await self._hurry.wait()
                self._wake, self._hurry = trio.Event(), trio.Event()
                flushes, self._flushes = self._flushes, []
                saved = await self._write_batch(self._queue.take())
                for tried in flushes:
                    tried.set()
                if saved:
                    pauses.reset()
                else:
                    self._wake.set()
                    with trio.move_on_after(pauses.next()):
                        await self._hurry.wait()

    async def _write_batch(self, batch: list[Write]) -> bool:
        """Save a batch or keep it for the next attempt; return whether none is needed."""
        if not batch:
            return True
        self._unsettled = len(batch)
        try:
            dropped = await self._disk.use(self._database.write, batch)
        except _Outage:
            self._lost_writes += self._queue.put_back(batch)
            self._unsettled = 0
            return False
        self._lost_writes += dropped
        self._unsettled = 0
        self._disk.recover()
        return True

    def _write_here(self) -> None:
        """Save on the loop: at the end nobody else needs it."""
        self._lost_writes += self._database.write(self._queue.take())

    def _stop(self) -> None:
        self._closed = True
        self._writer.cancel()
        unsaved = len(self._queue) + self._unsettled
        if unsaved:
            log.warning(
                "%d writes were not saved before the store closed: %s", unsaved, self._disk.trouble or "too slow"
            )
