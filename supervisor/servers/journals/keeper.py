"""Keeps what servers write on the disk, behind their backs: nothing waits for it, and a disk that fails harms nobody.

- Every second at most, what the journals have more than the files is taken from them, so that nothing queues here. It
  is rendered and written in a thread, which rests nine times as long as it worked.
- Servers that write faster than that share what is written at once; how much was left out stands in its place.
- A disk that fails, is full, read-only or does not answer is a condition: what comes meanwhile stays in the journals
  as long as it fits there, and is written later.
- Where a server has new secrets, what was written of it is masked again.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final, TypeVar

import msgspec
import trio

from actors.kit import AnyOf, Conditions, Latest, Pauses, is_want, reason_of
from actors.server.operators.journal import MAX_LINES, MAX_NOTES, Journal, KeptLine
from actors.transport.redaction import Mask
from supervisor.host.workbench import beside
from supervisor.servers.deployment import Deployment
from supervisor.servers.journals.files import FileLine, Limits, LogFiles, ReadLimit, ServerLine, Wanted
from supervisor.servers.journals.journals import Due, Journals
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
MAX_BATCH_LINES: Final = 2000
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
            share = max(MIN_LINES, MAX_BATCH_LINES // max(1, len(names)))
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


# Pages of logs: what is in memory, and behind it what is on the disk; of one launch or of many, merged by time.
#
# - What is searched is what is shown: nobody finds a secret by guessing it.
# - A page takes a bounded time in a thread, whatever is asked for: it may end early, and says so.

READ_BYTES: Final = 32 * 1024 * 1024
READ_S: Final = 2.0
"""So much of the disk, and so long, one page may be looked for."""
PAGE_S: Final = 5.0
"""A disk that takes longer is left out of a page."""

Hide = Callable[[str], str]


class LogPage(msgspec.Struct, frozen=True):
    """The newest lines that are wanted, the oldest of them first. Not `complete`: there may be more than was found."""

    lines: list[ServerLine]
    complete: bool


class _Source(msgspec.Struct, frozen=True):
    """What is known of the log of one launch. `hide` takes secrets out of what is on the disk."""

    launch: str
    hide: Hide
    journal: Journal | None
    kept: list[KeptLine]


class LogReader:
    """Makes pages of what `journals` have, and of files where there is a `keeper` of them."""

    def __init__(self, journals: Journals, keeper: LogKeeper | None = None) -> None:
        self.journals = journals
        self._keeper = keeper

    async def page(self, launches: Collection[str], wanted: Wanted, mask_of: Callable[[str], Hide]) -> LogPage:
        """Return the newest lines of some launches. A checkpoint.

        `mask_of` gives what hides the secrets of one of which nothing was written since the daemon started.
        """
        sources = []
        most = MAX_LINES + MAX_NOTES if wanted.grep or wanted.before is not None else wanted.lines
        for launch in launches:
            await trio.lowlevel.checkpoint()
            journal = self.journals.find(launch)
            kept = journal.last(most) if journal is not None else []
            hide = mask_of(launch) if journal is None else journal.mask
            sources.append(_Source(launch, hide, journal, kept))
        if self._keeper is not None:
            work = partial(_collect, sources, wanted, self._keeper.files)
            try:
                return await self._keeper.use(work, PAGE_S)
            except DiskFailure:
                pass
        page = await beside(partial(_collect, sources, wanted, None))
        return page if self._keeper is None else LogPage(page.lines, complete=False)


def _collect(sources: list[_Source], wanted: Wanted, files: LogFiles | None) -> LogPage:
    limit = ReadLimit(READ_BYTES, READ_S)
    lines = (_lines(source, wanted, files, limit) for source in sources)
    merged = heapq.merge(*lines, key=lambda line: (-line.time, -line.number))
    newest = list(islice(merged, wanted.lines))
    order: Callable[[ServerLine], tuple[float, int]] = lambda line: (line.time if len(sources) > 1 else 0, line.number)  # noqa: E731
    return LogPage(sorted(newest, key=order), complete=not limit.spent)


def _lines(source: _Source, wanted: Wanted, files: LogFiles | None, limit: ReadLimit) -> Iterator[ServerLine]:
    """Yield the lines of one launch that are wanted, the newest first, each once."""
    on_disk = files.newest_first(source.launch, limit) if files is not None else iter(())
    both: Iterator[KeptLine | FileLine] = heapq.merge(reversed(source.kept), on_disk, key=lambda line: -line.number)
    seen = -1
    for line in both:
        if line.time < wanted.since or not limit.take():
            return
        if line.number == seen or not wanted.may_show(line.user, line.time, line.number):
            continue
        seen = line.number
        text = _text(source, line)
        if wanted.fits(text):
            yield ServerLine(server=source.launch, number=line.number, time=line.time, source=line.source, text=text)


def _text(source: _Source, line: KeptLine | FileLine) -> str:
    if isinstance(line, FileLine):
        return source.hide(line.text)
    assert source.journal is not None, "lines in memory are of one"
    return source.journal.shown_text(line)
