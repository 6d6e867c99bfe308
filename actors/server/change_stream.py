"""The subscription to the changes of a modern server's lists: opened, and opened again whenever it ends. No I/O.

What changed while there was none was not told, so the lists are read again once it is open. A legacy server tells on
whatever it has; nothing is opened here for it.
"""

from __future__ import annotations

import trio

from actors.kit.timers import Timers
from actors.life.policy import RestartLog
from actors.life.timers import Timer
from actors.server.course import Course
from actors.server.discovery import Discovery
from actors.server.processes import Processes

STABLE_S = 60.0
"""One that was open for so long ends for reasons of its own: the next pause is the shortest again."""


class ChangeStream:
    """The subscription to one server. `restarts` says how long the pauses are before it is opened again."""

    def __init__(
        self, restarts: RestartLog, timers: Timers[Timer], processes: Processes, course: Course, discovery: Discovery
    ) -> None:
        self._restarts = restarts
        self._timers = timers
        self._processes = processes
        self._course = course
        self._discovery = discovery
        self._losses = 0
        self._useful = True
        self._opened_at: float | None = None

    def begin(self) -> None:
        """Ask for the first one of a process."""
        self._losses, self._useful, self._opened_at = 0, True, None
        self.open()

    def open(self) -> None:
        """Ask for one, if the server is one that is asked for that."""
        if (link := self._processes.link) is not None:
            link.talk.listen()
            self._processes.flush()

    def opened(self, *, useful: bool) -> None:
        """It is open; `useful`: the server will tell of changes on it."""
        self._useful, self._opened_at = useful, trio.current_time()
        if self._losses:
            self._discovery.missed()

    def ended(self) -> None:
        """It has ended: open it again after a pause."""
        if not self._useful or not self._course.life.serving:
            return
        lasted = trio.current_time() - self._opened_at if self._opened_at is not None else 0.0
        self._losses = 1 if lasted >= STABLE_S else self._losses + 1
        self._opened_at = None
        self._timers.start(Timer.LISTEN, self._restarts.pause_s(self._losses))
