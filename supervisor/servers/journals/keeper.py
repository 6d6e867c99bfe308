"""Keeps what servers write on the disk, behind their backs: nothing waits for it, and a disk that fails harms nobody.

- Every second at most, what the journals have more than the files is taken from them, so that nothing queues here. It
  is rendered and written in a thread, which rests nine times as long as it worked.
- Servers that write faster than that share what is written at once; how much was left out stands in its place.
- A disk that fails, is full, read-only or does not answer is a condition: what comes meanwhile stays in the journals
  as long as it fits there, and is written later.
- Where a server has new secrets, what was written of it is masked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec
import trio

from actors.kit import AnyOf, Conditions, Latest, Pauses, is_want, reason_of
from actors.server.operators.journal import Journal, KeptLine
from actors.transport.redaction import Mask
from supervisor.servers.deployment import Deployment
from supervisor.servers.journals.files import Limits, LogFiles
from supervisor.servers.journals.journals import Due, Journals
from supervisor.servers.journals.lines import FileLine
from supervisor.store.records import LAUNCH_KEPT_S

T = TypeVar("T")

WHAT: Final = "logs of servers"
"""How the condition is called while nothing can be written."""
LINGER_S: Final = 1.0
REST: Final = 9.0
"""The thread rests so many times as long as it worked."""
ANSWER_S: Final = 10.0
"""A disk that takes longer for what is written at once counts as failing."""
CLOSE_S: Final = 1.0
MASK_S: Final = 0.2
"""So long what was written is masked again at once; with the rest after it that is a tenth of the time."""
MAX_LINES: Final = 2000
"""Written at once, of all servers together."""
MIN_LINES: Final = 20
"""Of each server that has so many."""


class DiskFailure(Exception):
    """The disk cannot be used now; the text says why."""


class LogBatch(msgspec.Struct, frozen=True):
    """The newest lines of one journal. `missed` came before them, and are not written; `end` is the last number."""

    launch: str
    journal: Journal
    lines: list[KeptLine]
    missed: int
    end: int

    def render(self) -> list[FileLine]:
        """Return the lines as they are written. Slow."""
        shown = [
            FileLine(
                number=line.number,
                time=line.time,
                source=line.source,
                text=self.journal.shown_text(line),
                user=line.user,
            )
            for line in self.lines
        ]
        if self.missed and shown:
            text = f"({self.missed} lines before this one were not written to the disk: they came too fast)"
            first = shown[0]
            shown.insert(0, msgspec.structs.replace(first, number=first.number - 1, source="supervisor", text=text))
        return shown


class LogKeeper:
    """Writes what the journals have into files; `run` has to run. `clock` gives unix time in seconds."""

    def __init__(
        self,
        files: LogFiles,
        journals: Journals,
        deployment: Latest[Deployment],
        conditions: Conditions,
        clock: Callable[[], float],
    ) -> None:
        self.files = files
        self._journals = journals
        self._deployment = deployment
        self._conditions = conditions
        self._clock = clock
        self._written: dict[str, tuple[Journal, int]] = {}
        self._one = trio.CapacityLimiter(1)
        self._turn = trio.Lock()
        self._tidy = False
        self._empty = False

    async def run(self) -> None:
        """Write for ever."""
        pauses, news = Pauses(max_s=5.0), trio.Event()
        with AnyOf(self._journals.news, self._deployment).on_set(lambda: news.set()):
            while True:
                news, began = trio.Event(), trio.current_time()
                written = await self.flush()
                if written:
                    pauses.reset()
                took = trio.current_time() - began
                await trio.sleep(max(LINGER_S, REST * took if written else pauses.next()))
                if not any(self._has_begun_line(name) for name in self._written):
                    await news.wait()

    async def close(self) -> None:
        """Write what is there at the end, as far as that takes no time."""
        with trio.move_on_after(CLOSE_S):
            await self.flush()

    async def flush(self) -> bool:
        """Write what the journals have; return whether the disk took it, else it is tried again. A checkpoint."""
        async with self._turn:
            settings = self._deployment.value.settings
            limits = Limits(settings.server_log_bytes, settings.server_log_files)
            due = self._journals.take_due()
            self._written = {name: at for name, at in self._written.items() if self._journals.find(name) is at[0]}
            written: list[LogBatch] = []
            names = {name for name in self._written if self._has_begun_line(name)} | due.changed
            batches: list[LogBatch] = []
            share = max(MIN_LINES, MAX_LINES // max(1, len(names)))
            for name in sorted(names) if limits.max_bytes else ():
                await trio.lowlevel.checkpoint()
                batches += self._batch(name, share)
            try:
                if limits.max_bytes:
                    await self.use(partial(self._write, batches, due, limits, written, self._clock()))
                    await self._mask(due.masked)
                else:
                    await self._clear()
            except DiskFailure as failure:
                self._conditions.begin(WHAT, f"nothing more is written to the disk: {failure}")
                self._journals.put_back(due)
                return False
            finally:
                self._written.update({batch.launch: (batch.journal, batch.end) for batch in [*written]})
            self._conditions.end(WHAT)
            return True

    async def _clear(self) -> None:
        """Remove what was written before it was switched off."""
        if not self._empty:
            await self.use(partial(self.files.tidy, (), 0.0))
            self._empty = True

    async def _mask(self, names: set[str]) -> None:
        """Mask again what was written of some servers, as far as that takes no long time; the rest is for later."""
        masks = {name: journal.mask for name in names if (journal := self._journals.find(name)) is not None}
        left = await self.use(partial(_mask_some, self.files, masks))
        if left:
            self._journals.put_back(Due(masked=left))

    def _has_begun_line(self, name: str) -> bool:
        journal = self._journals.find(name)
        return journal is not None and journal.has_begun_line

    def _batch(self, name: str, share: int) -> list[LogBatch]:
        journal = self._journals.find(name)
        if journal is None:  # dropped meanwhile
            return []
        known, number = self._written.get(name, (journal, 0))
        end, missed, lines = journal.after(number if known is journal else 0, share)
        self._written.setdefault(name, (journal, 0))
        return [LogBatch(name, journal, lines, missed, end)] if lines else []

    def _write(self, batches: list[LogBatch], due: Due, limits: Limits, written: list[LogBatch], now: float) -> None:
        """Do what is due, and note what was written. In a thread."""
        self._empty = False
        if not self._tidy:
            self.files.tidy(self._deployment.value.server_names, now - LAUNCH_KEPT_S)
            self._tidy = True
        for name in due.dropped:
            self.files.remove(name)
        for batch in batches:
            self.files.append(batch.launch, batch.render(), limits)
            written.append(batch)

    async def use(self, work: Callable[[], T], answer_s: float = ANSWER_S) -> T:
        """Return what is worked out with the files, in a thread. Raises `DiskFailure`. A checkpoint."""
        with trio.move_on_after(answer_s):
            try:
                # An abandoned thread keeps its place until it ends, so two never use the files together.
                return await trio.to_thread.run_sync(work, limiter=self._one, abandon_on_cancel=True)
            except (OSError, RuntimeError, MemoryError) as error:
                if not isinstance(error, OSError) and not is_want(error):
                    raise
                raise DiskFailure(reason_of(error)) from error
        raise DiskFailure(f"the disk did not answer within {answer_s:g} s")


def _mask_some(files: LogFiles, masks: Mapping[str, Mask]) -> set[str]:
    """Mask what was written of some servers; return those for which there was no time."""
    until, left = time.monotonic() + MASK_S, {*masks}
    for name, mask in masks.items():
        if time.monotonic() > until:
            break
        files.mask(name, mask)
        left.discard(name)
    return left
