"""Virtual time stands still while a thread works for somebody: what is computed takes none of it.

Without that, a clock that jumps to the next deadline as soon as no task can go on gives each thread no time at all. A
thread that is long at it is taken for one that waits until time has passed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio
from trio.testing import MockClock

T = TypeVar("T")

LOOK_S: Final = 0.0005
"""Real time between two looks whether the thread is done."""
LONG_S: Final = 1.0
"""Real time for which virtual time waits for the same threads."""
_at_work: Counter[int] = Counter()
_since: dict[int, float] = {}
"""When it began to wait for them (real time)."""
_run_sync: Final = trio.to_thread.run_sync
_jump: Final = MockClock._autojump


async def _counted(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    clock = id(trio.lowlevel.current_clock())
    _at_work[clock] += 1
    _since.pop(clock, None)
    try:
        return await _run_sync(work, *arguments, **options)
    finally:
        _at_work[clock] -= 1
        _since.pop(clock, None)
        if not _at_work[clock]:
            del _at_work[clock]


def _jump_if_idle(clock: MockClock) -> None:
    if id(clock) in _at_work and time.perf_counter() < _since.setdefault(id(clock), time.perf_counter()) + LONG_S:
        time.sleep(LOOK_S)  # noqa: TID251 - while no task can go on, and not for long
    else:
        _jump(clock)


def have_time_wait_for_threads() -> None:
    """From now on, for all runs of this process."""
    trio.to_thread.run_sync = _counted  # type: ignore[assignment]  # its options are passed on
    MockClock._autojump = _jump_if_idle  # type: ignore[assignment,method-assign]  # there is no public way
