"""Why a process ended, in one of five words."""

from __future__ import annotations

import pytest

from actors.facts import ExitReason
from actors.life.states import Life, State
from actors.server.operators.record import exit_reason
from actors.transport.base import Exit

UP = Life(state=State.READY, wanted="up")


@pytest.mark.parametrize(
    ("life", "exit_", "reason"),
    [
        (UP, Exit(code=1), "exit"),
        (UP, Exit(code=0), "exit"),
        (UP, Exit(signal=9), "signal"),
        (Life(state=State.HANDSHAKING, wanted="up", reason="it said nothing"), Exit(signal=9, asked=True), "silent"),
        (Life(state=State.HANDSHAKING, wanted="up", fallback=True), Exit(code=0, asked=True), "silent"),
        (Life(state=State.DRAINING, wanted="dormant"), Exit(code=0, asked=True), "idle"),
        (Life(state=State.DRAINING, wanted="stopped"), Exit(signal=15, asked=True), "ordered"),
        (Life(state=State.DRAINING, wanted="up"), Exit(code=0), "ordered"),
    ],
)
def test_it_is_told_from_its_life_and_its_exit(life: Life, exit_: Exit, reason: ExitReason) -> None:
    assert exit_reason(life, exit_) == reason
