"""Virtual time stands still while a thread works for somebody: what is computed takes none of it.

Without that, a clock that jumps to the next deadline as soon as no task can go on gives each thread no time at all.
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
_at_work: Counter[int] = Counter()
_run_sync: Final = trio.to_thread.run_sync
_jump: Final = MockClock._autojump


async def _counted(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    clock = id(trio.lowlevel.current_clock())
    _at_work[clock] += 1
    try:
        return await _run_sync(work, *arguments, **options)
    finally:
        _at_work[clock] -= 1
        if not _at_work[clock]:
            del _at_work[clock]


def _jump_if_idle(clock: MockClock) -> None:
    if id(clock) in _at_work:
        time.sleep(LOOK_S)  # noqa: TID251 - while no task can go on, and not for long
    else:
        _jump(clock)


def have_time_wait_for_threads() -> None:
    """From now on, for all runs of this process."""
    trio.to_thread.run_sync = _counted  # type: ignore[assignment]  # its options are passed on
    MockClock._autojump = _jump_if_idle  # type: ignore[assignment,method-assign]  # there is no public way
