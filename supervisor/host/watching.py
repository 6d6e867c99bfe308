"""Tells that files have changed: at once where the system says so, and by looking at them where it does not.

The system is asked (inotify and its like, by watchdog) about directories, as editors replace a file, and about those
of every symbolic link on the way to it. What it says only wakes: whether anything has changed is seen by looking, so
that a volume without events (network file systems, mounts of containers) differs in nothing but the time it takes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from supervisor.config.file import Stamp as Stamp
from supervisor.config.file import stamp as stamp
from supervisor.host.workbench import beside

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

log = logging.getLogger(__name__)

_SETTLE_S: Final = 0.1
"""A file that was not touched for so long is written."""
_SETTLES: Final = 10
"""So often it may be found changed again; then it is taken as it is."""
MAX_LINKS: Final = 40
"""As the system itself follows (Linux, path_resolution(7))."""
_QUIET: Final = frozenset({"opened", "closed_no_write"})
"""Events of who only reads, such as we."""


class FileWatch:
    """Watches `files`, absolute paths, and calls `changed`; `poll_s`: how often they are looked at anyway.

    `known`: what they were when they were read, if that was before the watch began.
    """

    def __init__(
        self,
        files: Callable[[], Collection[Path]],
        changed: Callable[[], None],
        poll_s: float,
        known: Mapping[Path, Stamp] | None = None,
    ) -> None:
        self._files = files
        self._changed = changed
        self._poll_s = poll_s
        self._known = known or {}
        self._stirred = trio.Event()

    async def run(self) -> None:
        token = trio.lowlevel.current_trio_token()
        events = Events(lambda: token.run_sync_soon(self._stir))
        try:
            stamps = {**await self._look(events), **self._known}
            while True:
                with trio.move_on_after(self._poll_s):
                    await self._stirred.wait()
                self._stirred = trio.Event()
                if await self._look(events) != stamps:
                    stamps = await self._settle(events)
                    self._changed()
        finally:
            with trio.CancelScope(shield=True):
                await beside(events.close)

    def _stir(self) -> None:
        self._stirred.set()

    async def _settle(self, events: Events) -> dict[Path, Stamp]:
        stamps = await self._look(events)
        for _ in range(_SETTLES):
            await trio.sleep(_SETTLE_S)
            before, stamps = stamps, await self._look(events)
            if stamps == before:
                break
        return stamps

    async def _look(self, events: Events) -> dict[Path, Stamp]:
        files = sorted(self._files())

        def look() -> dict[Path, Stamp]:
            events.watch({place for file in files for place in places(file)})
            return {file: stamp(file) for file in files}

        return await beside(look)


class Events:
    """What the system tells of some places; `stir` is called from another thread."""

    def __init__(self, stir: Callable[[], None]) -> None:
        self._stir = stir
        self._places: set[Path] = set()
        self._observer: BaseObserver | None = None

    def watch(self, wanted: set[Path]) -> None:
        """Be told of these entries of directories, and of no others. Blocks; fails silently, as there is the look."""
        if wanted == self._places:
            return
        self._places = wanted
        self.close()
        try:
            self._observer = self._observe(wanted)
        except (OSError, RuntimeError) as error:  # no thread, no descriptor
            log.debug("the system tells nothing of changed files, so they are only looked at: %s", error)

    def _observe(self, wanted: set[Path]) -> BaseObserver:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        stir = self._stir

        class Handler(FileSystemEventHandler):
            def dispatch(self, event: Any) -> None:
                touched = {Path(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path}
                if event.event_type not in _QUIET and touched & wanted:
                    stir()

        logging.getLogger("watchdog.observers.inotify").addFilter(_is_news)
        observer = Observer()
        observer.start()
        for directory in sorted({place.parent for place in wanted}):
            try:
                observer.schedule(Handler(), str(directory))
            except OSError as error:  # no such directory, a link to one, no room for more watches
                log.debug("the system tells nothing of files in %s, so they are only looked at: %s", directory, error)
        return observer

    def close(self) -> None:
        """Be told nothing any more. Blocks until the threads have ended."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out what watchdog logs as an error where a file changes while we close it."""
    return "when the thread is inactive" not in record.msg


def places(file: Path) -> set[Path]:
    """Return the entries of directories that decide what is read at an absolute path: it, and each link on the way."""
    entries = {file}
    for _ in range(MAX_LINKS):
        link, target = next(_links(file), (None, None))
        if link is None or target is None:
            break
        file = Path(os.path.normpath(link.parent / target / file.relative_to(link)))
        entries |= {link, file}
    return entries


def _links(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the symbolic links on a path and what is in them, the first one first."""
    for place in reversed((path, *path.parents)):
        with suppress(OSError):  # no link, or nobody may look
            yield place, place.readlink()
