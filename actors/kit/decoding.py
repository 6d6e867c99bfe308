"""Where large messages are decoded: in a thread, so that the loop goes on. Small ones take no time.

One run of a decoder cannot be interrupted, but a message takes several (is it JSON, what of it is the envelope, what
does its metadata say): in a thread the loop has its turn in between.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import trio

T = TypeVar("T")

MAX_THREADS: Final = 2
"""They hold the interpreter's lock while they decode: more of them would only take turns."""

TURN_S: Final = 0.002
_FREED: Final = 16
"""So many things are freed at a time; each may be a definition with all of its parameters."""
_limiter = trio.lowlevel.RunVar[trio.CapacityLimiter]("threads that decode messages")
PART_BYTES: Final = 64 * 1024
"""Smaller pieces become parts of that size: a piece of two bytes takes the room of fifty."""
LONG_BYTES: Final = 4 * 1024 * 1024
"""From that size on a thread joins them: below, that takes a millisecond, and the way to one as much."""


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
    """Long work in a thread that asks for much that gives up the interpreter's lock for moments: digests, compression,
    SQL, NumPy.

    Whoever waits for the lock asks for it only when it was not given up for a whole switch interval (`take_gil` of
    CPython 3.11), and such a moment is too short to take it: the loop would stand still until the work is over. A pause
    is no cure: where all cores are busy the thread may be awake again before the loop is. So it waits for the loop.
    """

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN_S

    def between(self) -> None:
        """Wait until the loop has had a turn, if it is time. Does nothing in a thread that is not one of trio's."""
        if time.perf_counter() >= self._until:
            with contextlib.suppress(RuntimeError):  # the loop does the work itself, or has ended
                trio.from_thread.run_sync(_have_a_turn)
            self._until = time.perf_counter() + TURN_S


def _have_a_turn() -> None:
    """The loop calls this."""


def free_in_turns(things: list[Any]) -> None:
    """Empty a long list, to whose things nobody else holds: at the end of the list all of them would be freed in one
    go, in which nothing else runs. In a thread the loop has its turn in between.
    """
    turns = GivesWay()
    while things:
        del things[-_FREED:]
        turns.between()


class Gathered:
    """Bytes that come in pieces of any size: gathered, and joined once. One buffer that grows is copied again and
    again.

    What has come so far; `size` in bytes.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._part = bytearray()

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(piece) < PART_BYTES:
            self._part += piece
            if len(self._part) >= PART_BYTES:
                self._end_part()
        else:
            self._end_part()
            self._parts.append(piece)

    async def whole(self) -> bytes:
        """Return all of it. A checkpoint if it is much."""
        self._end_part()
        if self.size < LONG_BYTES or len(self._parts) == 1:
            return b"".join(self._parts)  # of one it is that one
        return await decode_in_thread(partial(b"".join, self._parts))

    def _end_part(self) -> None:
        if self._part:
            self._parts.append(bytes(self._part))
            self._part.clear()
