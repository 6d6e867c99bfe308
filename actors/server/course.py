"""The course of a server's life: the one place where `lifecycle.step` is called."""

from __future__ import annotations

from collections.abc import Callable

from actors.life.effects import Effect
from actors.life.events import Event
from actors.life.lifecycle import step
from actors.life.states import Life
from actors.server.operators.orders import Orders


class Course:
    """The present `life`. `perform` does what follows from an event; it may let further events happen."""

    def __init__(self, perform: Callable[[Effect], None], orders: Orders) -> None:
        self.life = Life()
        self._perform = perform
        self._orders = orders

    def step(self, event: Event) -> None:
        """Let one event happen, do what follows from it, and answer those whose order is done with it."""
        self.life, effects = step(self.life, event)
        for effect in effects:
            self._perform(effect)
        self._orders.settle(self.life)
