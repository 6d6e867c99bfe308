"""Write-behind: callers never wait for the disk, and never learn that it failed.

- Saving is a plain `def`: it queues and returns, so a handler of an actor may call it.
- A disk that fails, is full or locked, or want of threads costs persistence only: the writes are counted, the state is
  "degraded", and the batch is tried again by itself, with pauses, together with what came meanwhile; the newest wins.
- A file that cannot be opened at the start holds nobody up: it is opened later, and `ready` says when.
- The writer is shielded from the cancellation of its surroundings: only closing ends it, after a last flush.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, TypeVarTuple

import trio

from actors.kit import Conditions, Pauses
from supervisor.store.database import MAX_PAUSE_S, Database, Disk, Outage
from supervisor.store.records import StoreStatus, ToolUsage
from supervisor.store.writes import Key, Later, Statement, Write, WriteQueue

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

log = logging.getLogger(__name__)

FLUSH_S = 5.0
LINGER_S = 0.2
OPEN_S = 3.0
"""For a slow disk at the start; a locked file is given up sooner, after SQLite's own wait."""
CLOSE_S = 2.0
KEEP_S = 1.0
READ_S = 5.0


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
        self._disk = Disk(database, conditions or Conditions(clock))
        self._database = database
        self._clock = clock
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

    async def flush(self, deadline_s: float = FLUSH_S) -> bool:
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
        return self.state == "ok" and await self.flush(KEEP_S)

    def _put(
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

    async def _load(self, kind: type[R], query: str, values: Sequence[object] = (), *, tidy: str = "") -> list[R]:
        return await self._read(self._database.load, kind, query, values, tidy) or []

    async def _read(self, load: Callable[[*Ts], R], *args: *Ts) -> R | None:
        await self.flush()  # so that a reader finds what was saved before
        with trio.move_on_after(READ_S):
            try:
                loaded = await self._disk.use(load, *args)
            except Outage:
                return None
            if not self._queue:
                self._disk.recover()
            return loaded
        self._disk.fail(f"the disk did not answer within {READ_S:g} s")
        return None

    async def _write_behind(self) -> None:
        pauses = Pauses(max_s=MAX_PAUSE_S)
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
        except Outage:
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
