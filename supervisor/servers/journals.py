"""The journals of all servers, and what of them goes into the daemon's log.

The journal of a server has every line of ours. The daemon's log has them, too, but a server that crashes without end
must not fill it: each has a burst of lines, which comes back slowly, and what was left out is counted and told.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from actors.server.operators.journal import Journal, Level
from actors.transport.mask import Mask

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
            text = f"{text} ({self._silenced} lines before this one are only in: mcpvisor logs {self._server})"
            self._silenced = 0
        log.log(_LEVELS[level], "%s: %s", self._server, text)


class Journals:
    """The journal of each server by name, from when it is first asked for. `clock` gives unix time in seconds."""

    def __init__(self, clock: Callable[[], float], now: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._now = now
        self._journals: dict[str, Journal] = {}

    def make(self, server: str, mask: Mask) -> Journal:
        if server not in self._journals:
            voice = JournalLog(server, self._now)
            self._journals[server] = Journal(self._clock, tell=voice.tell, now=self._now)
        self._journals[server].hide(mask)
        return self._journals[server]

    def drop(self, server: str) -> None:
        self._journals.pop(server, None)

    def find(self, server: str) -> Journal | None:
        return self._journals.get(server)
