"""Pages of logs: what is in memory, and behind it what is on the disk; of one launch or of many, merged by time.

- What is searched is what is shown: nobody finds a secret by guessing it.
- A page takes a bounded time in a thread, whatever is asked for: it may end early, and says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import islice
from typing import Final

import msgspec
import trio

from actors.server.operators.journal import MAX_LINES, MAX_NOTES, Journal, KeptLine
from supervisor.host.loop.workbench import beside
from supervisor.servers.journals.files import LogFiles, ReadLimit
from supervisor.servers.journals.journals import Journals
from supervisor.servers.journals.keeper import DiskFailure, LogKeeper
from supervisor.servers.journals.lines import FileLine, ServerLine, Wanted

READ_BYTES: Final = 32 * 1024 * 1024
READ_S: Final = 2.0
"""So much of the disk, and so long, one page may be looked for."""
ANSWER_S: Final = 5.0
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
                return await self._keeper.use(work, ANSWER_S)
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
