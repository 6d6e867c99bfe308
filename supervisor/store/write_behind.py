"""Write-behind: callers never wait for the disk, and never learn that it failed.

- Saving is a plain `def`: it queues and returns, so a handler of an actor may call it.
- SQLite runs on one thread at a time (a limiter of one), never on the loop.
- A disk that fails, is full or locked, or want of threads costs persistence only: the writes are counted, the state is
  "degraded", and the batch is tried again by itself, with pauses, together with what came meanwhile; the newest wins.
- A file that cannot be opened at the start holds nobody up: it is opened later, and `ready` says when.
- The writer is shielded from the cancellation of its surroundings: only closing ends it, after a last flush.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeVar, TypeVarTuple

import trio

from actors.kit import Conditions, Pauses
from actors.principal import Principal
from supervisor.store import writes
from supervisor.store.database import BUSY_TIMEOUT_S, Database
from supervisor.store.disk import MAX_PAUSE_S, Disk, Outage
from supervisor.store.records import EraName, SavedEra, SavedGrant, SavedServer, StoreStatus, ToolUsage
from supervisor.store.writes import MAX_KEYS, Payload, Write, WriteQueue

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


class Store:
    """The daemon's memory across restarts, opened with `open_store`; moments are unix seconds.

    None of its methods raises because of the disk. Loading is a checkpoint, and finds nothing if that cannot be read.
    """

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
        )

    def save_server(self, name: str, digest: str, payload: Payload) -> None:
        """Keep the encoded snapshot of a server, valid for the launch `digest`; encoded by the writer if it can be."""
        self._put(writes.save_server(name, digest, payload, self._clock()))

    def forget_server(self, name: str) -> None:
        self._put(writes.forget_server(name))

    def switch_server(self, name: str, *, disabled: bool) -> None:
        self._put(writes.switch_server(name, self._clock(), disabled=disabled))

    def save_grant(self, grant: SavedGrant) -> None:
        self._put(writes.save_grant(grant, self._clock()))

    def forget_grant(self, principal: Principal, server: str) -> None:
        self._put(writes.forget_grant(principal, server))

    def save_era(self, digest: str, era: EraName) -> None:
        """Keep the era verdict of the launch `digest`; `era` decides when it expires (`ERA_TTL_S`)."""
        self._put(writes.save_era(digest, era, self._clock()))

    def end_session(self, session_id: str, expires_at: float) -> None:
        """Remember an ended session by the digest of its token until `expires_at` (unix s)."""
        self._put(writes.end_session(session_id, expires_at, self._clock()))

    def end_sessions_until(self, moment: float) -> None:
        """Remember that every session that expires at `moment` (unix s) or before is ended, instead of each by name."""
        self._put(writes.end_sessions_until(moment))

    def add_usage(self, used: Iterable[ToolUsage]) -> None:
        for usage in used:
            self._put(writes.add_usage(usage))

    def save_vectors(self, vectors: Mapping[bytes, bytes]) -> None:
        self._put(writes.save_vectors(vectors, self._clock()))

    async def load_vectors(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """As if there were none until the file could be opened: whoever asks can do without."""
        if not self.ready.is_set():
            return {}
        return await self._read(self._database.load_vectors, digests, self._clock()) or {}

    async def load_servers(self) -> dict[str, SavedServer]:
        return await self._read(self._database.load_servers) or {}

    async def load_disabled(self) -> frozenset[str]:
        return await self._read(self._database.load_disabled) or frozenset()

    async def load_grants(self) -> list[SavedGrant]:
        return await self._read(self._database.load_grants) or []

    async def load_eras(self, now: float) -> dict[str, SavedEra]:
        return await self._read(self._database.load_eras, now) or {}

    async def load_ended_sessions(self, now: float) -> dict[str, float]:
        """Return the expiry (unix s) of each session ended and not expired at `now`, by digest; the moment of
        `end_sessions_until` is under `ALL_UNTIL`. A checkpoint; empty on failure.
        """
        return await self._read(self._database.load_ended_sessions, now) or {}

    async def load_usage(self) -> list[ToolUsage]:
        return await self._read(self._database.load_usage) or []

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

    async def keep(self) -> bool:
        """Wait until what was saved so far is on disk, at most a moment, and not at all while the disk fails us."""
        return self.state == "ok" and await self.flush(KEEP_S)

    def _put(self, write: Write) -> None:
        if self._closed or not self._queue.put(write):
            self._lost_writes += 1
            self._disk.fail("the store is closed" if self._closed else "too many writes wait for the disk")
            return
        self._wake.set()

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

    async def _flush_and_close(self, close_s: float) -> None:
        await self.flush(close_s)
        await self._disk.close(self._write_here)

    def _stop(self) -> None:
        self._closed = True
        self._writer.cancel()
        unsaved = len(self._queue) + self._unsettled
        if unsaved:
            log.warning(
                "%d writes were not saved before the store closed: %s", unsaved, self._disk.trouble or "too slow"
            )


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    clock: Callable[[], float] = time.time,
    linger_s: float = LINGER_S,
    open_s: float = OPEN_S,
    close_s: float = CLOSE_S,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    max_keys: int = MAX_KEYS,
    conditions: Conditions | None = None,
) -> AsyncIterator[Store]:
    """Open the store at `path` (its directory must exist) and keep its writer running until the block is left.

    Opening takes at most `open_s`, and goes on in the background if it failed. Writes are gathered for `linger_s`
    before they go to disk; leaving the block tries for `close_s` to save the rest.
    `busy_timeout_s` is how long SQLite waits for a lock that another process holds.
    Raises `ConfigError` if the file was written by a newer version. Any other trouble with the disk makes the store
    "degraded", which `conditions` is told. There is a nursery inside, so exceptions of the block arrive in a group.
    """
    database = Database(path, busy_timeout_s=busy_timeout_s)
    store = Store(database, clock=clock, linger_s=linger_s, max_keys=max_keys, conditions=conditions)
    await store._disk.open(open_s)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store._write_behind)
        nursery.start_soon(store._disk.open_later)
        try:
            yield store
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(close_s, shield=True):
                await store._flush_and_close(close_s)
            store._stop()
