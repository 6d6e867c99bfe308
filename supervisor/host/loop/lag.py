"""By how much the loop is late: everything else it does is late by as much."""

from __future__ import annotations

from typing import Final

import trio

LOOK_EVERY_S: Final = 5.0
"""Metrics are read every 15 s or so, and a daemon that nobody uses should sleep."""


class LoopLag:
    """`seconds` is what was measured last; `run` has to run for that."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def run(self) -> None:
        while True:
            due = trio.current_time() + LOOK_EVERY_S
            await trio.sleep_until(due)
            self.seconds = max(0.0, trio.current_time() - due)
