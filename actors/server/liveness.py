"""Whether a server that left a call unanswered still lives: it is asked for a sign of life, and has a while for it.

Any message that makes sense is one: a server that works on other calls need not answer a ping.
"""

from __future__ import annotations

import trio

from actors.kit.timers import Timers
from actors.life.events import Violated
from actors.life.timers import Timer
from actors.server.course import Course
from actors.server.processes import Processes


class Liveness:
    """The questions to one server. `patience_s`: how long, in seconds, it may be silent after one."""

    def __init__(self, patience_s: float, timers: Timers[Timer], processes: Processes, course: Course) -> None:
        self._patience_s = patience_s
        self._timers = timers
        self._processes = processes
        self._course = course

    def ask(self) -> None:
        """A call timed out in silence, or found nobody: ask for a sign of life, unless that was done."""
        link = self._processes.link
        if link is None or not self._course.life.serving:
            return
        if not self._timers.running(Timer.SILENCE):
            link.talk.ask_for_life()
            self._timers.start(Timer.SILENCE, self._patience_s)
        self._processes.flush()

    def judge(self) -> None:
        """Replace the server if it has said nothing since it was asked."""
        link = self._processes.link
        if link is not None and link.heard < trio.current_time() - self._patience_s:
            why = f"it answers nothing, not even a ping within {self._patience_s:g} s"
            self._course.step(Violated(link.number, why))
