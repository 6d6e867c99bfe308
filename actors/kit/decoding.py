"""Where large messages are decoded: in a thread, so that the loop goes on. Small ones take no time.

One run of a decoder cannot be interrupted, but a message takes several (is it JSON, what of it is the envelope, what
does its metadata say): in a thread the loop has its turn in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import trio

T = TypeVar("T")

MAX_THREADS: Final = 2
"""They hold the interpreter's lock while they decode: more of them would only take turns."""

TURN_S: Final = 0.002
PAUSE_S: Final = 0.0001
"""Long enough for the loop to wake and take the lock."""

_limiter = trio.lowlevel.RunVar[trio.CapacityLimiter]("threads that decode messages")


async def decode_in_thread(decode: Callable[[], T]) -> T:
    """Return what `decode`, which must not raise, makes of a large message. A checkpoint."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(MAX_THREADS)
        _limiter.set(limiter)
    try:
        return await trio.to_thread.run_sync(decode, limiter=limiter)
    except RuntimeError:  # the system has no thread for us: a pause is better than no answer
        return decode()


class GivesWay:
    """Long work in a thread that asks for much that gives up the interpreter's lock for moments: digests, compression.

    Whoever waits for the lock asks for it only when it was not given up for a whole switch interval (`take_gil` of
    CPython 3.11), and such a moment is too short to take it: the loop would stand still until the work is over.
    """

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN_S

    def between(self) -> None:
        """Let the loop go on, if it is time."""
        if time.perf_counter() >= self._until:
            time.sleep(PAUSE_S)  # noqa: TID251  (in a thread)
            self._until = time.perf_counter() + TURN_S
