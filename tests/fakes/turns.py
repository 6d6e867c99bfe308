"""What has things called in their turn, without a loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


def at_once(wake: Callable[[], None]) -> None:
    """Call it now."""
    wake()


class Turns:
    """What waits for its turn; `turn` calls the first."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def later(self, wake: Callable[[], None]) -> None:
        self.waiting.append(wake)

    def turn(self) -> None:
        self.waiting.popleft()()

    def all(self) -> None:
        while self.waiting:
            self.turn()
