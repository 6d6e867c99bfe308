"""The database behind one thread at a time, and whether it can be used now."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio

from actors.errors import ConfigError
from actors.kit import Conditions, Pauses, is_want
from supervisor.store.database import Database

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WHAT = "store"
"""How the condition is called while nothing can be saved."""

MAX_PAUSE_S = 5.0
_FAILURES = (sqlite3.Error, OSError, ConfigError, RuntimeError, MemoryError, ImportError)
"""What an outage may look like; `RuntimeError` and `ImportError` only if they are want of resources."""


class Outage(Exception):
    """The disk refuses, or the system lacks what using it needs. `conditions` and `Disk.trouble` say why."""


class Disk:
    """Uses one database. `trouble` is empty, or why the last use failed; `ready` is set once it could be used."""

    def __init__(self, database: Database, conditions: Conditions) -> None:
        self.ready = trio.Event()
        self.trouble = ""
        self._database = database
        self._conditions = conditions
        self._limiter = trio.CapacityLimiter(1)

    async def use(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return what `work` of the database returns, in a thread. Raises `Outage`. A checkpoint."""
        try:
            # An abandoned thread keeps its place in the limiter until it ends, so two never use the file together.
            returned = await trio.to_thread.run_sync(work, *args, limiter=self._limiter, abandon_on_cancel=True)
        except _FAILURES as error:
            if isinstance(error, RuntimeError | ImportError) and not is_want(error):
                raise
            self.fail(str(error))
            raise Outage from error
        self.ready.set()
        return returned

    def fail(self, why: str) -> None:
        self.trouble = why or "unknown error"
        self._conditions.begin(WHAT, f"nothing is saved until the disk recovers: {self.trouble}")

    def recover(self) -> None:
        self.trouble = ""
        self._conditions.end(WHAT)

    async def open(self, open_s: float) -> None:
        """Try for so long to open the file. Raises `ConfigError` for one that a newer version wrote."""
        with trio.move_on_after(open_s):
            try:
                await self.use(self._database.open)
            except Outage as outage:
                if isinstance(outage.__cause__, ConfigError):
                    raise outage.__cause__ from None
            return
        self.fail(f"the disk did not answer within {open_s:g} s")

    async def open_later(self) -> None:
        pauses = Pauses(max_s=MAX_PAUSE_S)
        while not self.ready.is_set():
            with trio.move_on_after(pauses.next()):
                await self.ready.wait()
                return
            try:
                await self.use(self._database.open)
            except Outage:
                continue
            self.recover()

    async def close(self, rest: Callable[[], object]) -> None:
        """Close the file. Without a thread to be had `rest`, what there is left to do, is done on the loop before."""
        try:
            await self.use(self._database.close)
        except Outage as outage:
            if outage.__cause__ is not None and is_want(outage.__cause__):
                self._close_here(rest)

    def _close_here(self, rest: Callable[[], object]) -> None:
        try:
            rest()
            self._database.close()
        except _FAILURES as error:
            self.fail(str(error))
