"""Whether a server that left a call unanswered still lives: it is asked for a sign of life, and has a while for it.

Any message that makes sense is one: a server that works on other calls need not answer a ping.
"""

from __future__ import annotations

import trio

from actors.kit.timers import Timers
from actors.server.link import Link


class Liveness:
    """The questions to one server. `patience_s`: how long, in seconds, it may be silent after one."""

    def __init__(self, patience_s: float, timers: Timers) -> None:
        self._patience_s = patience_s
        self._timers = timers

    def ask(self, link: Link, nursery: trio.Nursery) -> None:
        """Ask for a sign of life, unless it was asked already; the timer `silence` says when its time is over."""
        if not self._timers.running("silence"):
            link.talk.ask_for_life()
            self._timers.start(nursery, "silence", self._patience_s)

    def doubt(self, link: Link) -> str:
        """Return why the server cannot be alive, empty if it has said something since it was asked."""
        if link.heard >= trio.current_time() - self._patience_s:
            return ""
        return f"it answers nothing, not even a ping within {self._patience_s:g} s"
