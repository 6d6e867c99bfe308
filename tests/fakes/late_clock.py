"""Clocks that wake whoever sleeps late by a random amount, as a busy machine does: what a perfect clock hides shows."""

from __future__ import annotations

import os
import random
import zlib
from typing import Any
from weakref import WeakSet

import pytest
import trio
from trio._core._run import SystemClock  # there is no public name for the clock that is taken if no other is given
from trio.testing import MockClock

MOST_S = 0.25
"""How late, in seconds, anybody is woken. Mostly it is much less."""
MOST_REAL_S = 0.05
"""The same on the real clock, where it costs the tests that time."""

exact_clock = pytest.mark.parametrize("autojump_clock", ["exact"], indirect=True)
"""For a test of how exactly something is on time."""
_late: WeakSet[MockClock] = WeakSet()


def seed_of(test: str) -> int:
    """Return the seed for a test: `LATE_SEED` of the environment; else any, or in continuous integration its own."""
    given = os.environ.get("LATE_SEED", "")
    if given or not os.environ.get("CI"):
        return int(given or random.randrange(2**32))
    return zlib.crc32(test.encode())


def late_clock(seed: int) -> MockClock:
    """Return virtual time that jumps a little past what is waited for next: what is due soon after that is due, too.

    The seed is printed: pytest shows it with a failure.
    """
    print(f"a clock that wakes late: LATE_SEED={seed} repeats it")
    chance = random.Random(seed)
    clock = MockClock(autojump_threshold=0)
    jump = clock.jump

    def jump_late(seconds: float) -> None:
        jump(seconds + MOST_S * chance.random() ** 4)

    clock.__dict__["jump"] = jump_late  # its class is final
    _late.add(clock)
    return clock


def wake_late(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Have the real clock wake whoever sleeps late, for a test. The seed is not printed: the machine is late, too."""
    chance = random.Random(seed)
    left_s = SystemClock.deadline_to_sleep_time

    def late_s(clock: SystemClock, deadline: float) -> float:
        left = left_s(clock, deadline)
        return left + MOST_REAL_S * chance.random() ** 4 if left > 0 else left

    monkeypatch.setattr(SystemClock, "deadline_to_sleep_time", late_s)


def lasting(seconds: float, wakes: int = 1) -> Any:
    """Return what equals so many seconds, and no less; after `wakes` wakes by a late clock it may be somewhat more."""
    slack = wakes * MOST_S if trio.lowlevel.current_clock() in _late else 0.0
    return pytest.approx(seconds + slack / 2, abs=slack / 2 + seconds * 1e-6)
