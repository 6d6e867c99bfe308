"""The journals of all servers, and what of them goes into the daemon's log.

The journal of a server has every line of ours. The daemon's log has them, too, but a server that crashes without end
must not fill it: each has a burst of lines, which comes back slowly, and what was left out is counted and told.

Numbers of lines go up from one run of the daemon to the next: they begin with the time, in microseconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import msgspec

from actors.command_line import command
from actors.kit import Latest
from actors.launch import is_own
from actors.server.operators.journal import Journal, Level
from actors.transport.redaction import Mask

log = logging.getLogger("servers")  # of interest to people is the server, not the module that tells of it

BURST = 30
"""Lines that one server may have in the daemon's log at once."""
LINE_S = 6.0
"""After this time it may have another one."""
_LEVELS: dict[Level, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


class JournalLog:
    """What one server says in the daemon's log. `now` is a clock in seconds that is never set back."""

    def __init__(self, server: str, now: Callable[[], float]) -> None:
        self._server = server
        self._now = now
        self._left = float(BURST)
        self._at = now()
        self._silenced = 0

    def tell(self, level: Level, text: str) -> None:
        """Log a line, or count it if there were too many."""
        now = self._now()
        self._left = min(float(BURST), self._left + (now - self._at) / LINE_S)
        self._at = now
        if self._left < 1:
            self._silenced += 1
            return
        self._left -= 1
        if self._silenced:
            text = f"{text} ({self._silenced} lines before this one are only in: {command('logs', self._server)})"
            self._silenced = 0
        log.log(_LEVELS[level], "%s: %s", self._server, text)


class Due(msgspec.Struct):
    """What is to be done on the disk, by names: to write lines, to mask again what is there, to remove it."""

    changed: set[str] = msgspec.field(default_factory=set)
    masked: set[str] = msgspec.field(default_factory=set)
    dropped: set[str] = msgspec.field(default_factory=set)


class Journals:
    """The journal of each launch by name, from when it is first asked for. `clock` gives unix time in seconds.

    `news` is set with each line of any of them. `people_of` tells which users have a launch that not all share.
    """

    def __init__(self, clock: Callable[[], float], now: Callable[[], float] = time.monotonic) -> None:
        self.news = Latest(0)
        self.people_of: Callable[[str], list[str]] = lambda launch: []
        self._clock = clock
        self._now = now
        self._journals: dict[str, Journal] = {}
        self._due = Due()

    def make(self, server: str, mask: Mask) -> Journal:
        journal = self._journals.get(server) or self._make(server)
        if journal.hide(mask):
            self._due.masked.add(server)
            self._announce()
        return journal

    def _make(self, server: str) -> Journal:
        voice = JournalLog(server, self._now)
        journal = Journal(self._clock, tell=voice.tell, now=self._now, before=int(self._clock() * 1e6))
        journal.stir = partial(self._stir, server, journal)
        if is_own(server):
            journal.user = partial(self._only_user, server)
        self._journals[server] = journal
        self._due.masked.add(server)  # an earlier run may have known less
        return journal

    def drop(self, server: str) -> None:
        self._journals.pop(server, None)
        self._due.changed.discard(server)
        self._due.masked.discard(server)
        self._due.dropped.add(server)
        self._announce()

    def find(self, server: str) -> Journal | None:
        return self._journals.get(server)

    def names(self) -> list[str]:
        return list(self._journals)

    def take_due(self) -> Due:
        """Return what is to be done on the disk, which counts as done from now on."""
        due, self._due = self._due, Due()
        return due

    def put_back(self, due: Due) -> None:
        """Have that be done later, as far as it still makes sense."""
        self._due.changed |= due.changed & self._journals.keys()
        self._due.masked |= due.masked & self._journals.keys()
        self._due.dropped |= due.dropped
        self._announce()

    def _stir(self, server: str, journal: Journal) -> None:
        if self._journals.get(server) is journal:  # else it was dropped, and its process is about to end
            self._due.changed.add(server)
            self._announce()

    def _announce(self) -> None:
        self.news.set(self.news.value + 1)

    def _only_user(self, launch: str) -> str:
        users = self.people_of(launch)
        return users[0] if len(users) == 1 else ""
