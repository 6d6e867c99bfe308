"""Named timers of an actor: child tasks that post a message when they fire. Starting one again replaces the older.

A firing that is already in the mailbox cannot be taken back: hence it carries a number, and only the number of the
newest timer of that name counts (`take`).

A daemon that was stopped, or whose machine was, finds everything overdue when it goes on: also what would have been in
time, as it lies in a pipe and is not read yet. So a timer that is that late waits until this was read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec
import trio

from actors.kit.mailbox import StartSoon

N = TypeVar("N", bound=str)

STANDSTILL_S = 1.0
"""A timer fires that late only if nothing at all went on meanwhile."""
CATCH_UP_S = 1.0
"""How long it takes to read what came meanwhile."""


class _Timer(msgspec.Struct, frozen=True):
    number: int
    moment: float
    scope: trio.CancelScope


class Timers(Generic[N]):
    """Timers by name; `fire(name, number)` is awaited in the timer's own task, which `start_soon` starts."""

    def __init__(self, fire: Callable[[N, int], Awaitable[None]], start_soon: StartSoon) -> None:
        self._fire = fire
        self._start_soon = start_soon
        self._number = 0
        self._timers: dict[N, _Timer] = {}

    def start(self, name: N, seconds: float) -> None:
        """Fire `name` in that many seconds, instead of any earlier timer of that name."""
        self._start_at(name, trio.current_time() + seconds)

    def start_by(self, name: N, moment: float) -> None:
        """Fire `name` at `moment` of the trio clock, unless a timer of that name fires no later anyway."""
        timer = self._timers.get(name)
        if timer is None or timer.moment > moment:  # kept as it is: what is asked for again is no earlier than itself
            self._start_at(name, max(moment, trio.current_time()))

    def _start_at(self, name: N, moment: float) -> None:
        self.cancel(name)
        self._number += 1
        timer = _Timer(self._number, moment, trio.CancelScope())
        self._timers[name] = timer
        self._start_soon(self._run, name, timer)

    def cancel(self, name: N) -> None:
        """Stop a timer; its firing does not count any more, even if it was posted."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.scope.cancel()

    def runs(self, name: N) -> bool:
        """Return whether a timer of that name runs, or fired and was not taken yet."""
        return name in self._timers

    def remaining_s(self, name: N) -> float | None:
        timer = self._timers.get(name)
        return None if timer is None else max(0.0, timer.moment - trio.current_time())

    def take(self, name: N, number: int) -> bool:
        """Return whether a firing counts: the timer was neither cancelled nor replaced since."""
        timer = self._timers.get(name)
        if timer is None or timer.number != number:
            return False
        del self._timers[name]
        return True

    async def _run(self, name: N, timer: _Timer) -> None:
        with timer.scope:
            await trio.sleep_until(timer.moment)
            if trio.current_time() - timer.moment > STANDSTILL_S:
                await trio.sleep(CATCH_UP_S)
            await self._fire(name, timer.number)
