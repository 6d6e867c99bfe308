"""Whether a server that left a call unanswered still lives: it is asked for a sign of life, and has a while for it.

Any message that makes sense is one: a server that works on other calls need not answer a ping.

A timer may fire late, and an answer may be here and unread: in a pipe, with the reader, in a thread that decodes. So no
moments are compared. The patience is a number of looks: one counts if everything that had arrived by the look before is
read. The last one follows when the patience is over, for an answer that arrived at its very end. While the daemon
stands still there are no looks, so a standstill costs the server one of them at most.
"""

from __future__ import annotations

import trio

from actors.life.breaker import Trial
from actors.life.events import Violated
from actors.life.states import Timer
from actors.server.context import ServerContext
from actors.server.processes import Processes

LOOKS = 4
"""How many looks there are within the patience. One more follows it."""


class Liveness:
    """The questions to one server."""

    def __init__(self, context: ServerContext, processes: Processes) -> None:
        self._breakers = context.breakers
        self._patience_s = context.server.settings.unresponsive_s
        self._timers = context.timers
        self._course = context.course
        self._processes = processes
        self._said = 0
        self._arrived = 0
        self._looks = 0
        self._trial = Trial()

    def ask(self) -> None:
        """A call timed out in silence, or found nobody: ask for a sign of life, unless that was done."""
        link = self._processes.link
        if link is None or not self._course.life.serving:
            return
        if link.talk.ask_for_life(again=not self._timers.runs(Timer.SILENCE)):
            self._said, self._arrived, self._looks = link.said, link.counters.messages_received, LOOKS
            self._timers.start(Timer.SILENCE, self._patience_s / LOOKS)
            self._trial = self._breakers.begin(trio.current_time())
        self._processes.flush()

    def look(self) -> None:
        """Replace the server if it has said nothing since it was asked."""
        link = self._processes.link
        if link is None:
            return
        if link.said > self._said:
            self._breakers.end(self._trial, trio.current_time())
            return
        if link.read >= self._arrived:
            self._looks -= 1
        if self._looks >= 0:
            self._arrived = link.counters.messages_received
            self._timers.start(Timer.SILENCE, self._patience_s / LOOKS)
            return
        why = f"it answers nothing, not even a ping within {self._patience_s:g} s"
        self._breakers.end(self._trial, trio.current_time(), why)
        self._course.step(Violated(link.number, why))
