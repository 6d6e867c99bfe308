"""Want of resources: descriptors, threads, processes, memory, disk may be missing at any moment, in any task.

Rules of this file:
- It is told from a bug by `is_want` alone. A bug leaves its task; want is waited out, as it ends by itself or by an
  operator's hand, and nothing is lost by asking again.
- `persist` is how a task waits it out: the same step again and again, with pauses that double up to two seconds, so
  that everything works again soon after there is enough again.
- What does not work meanwhile stands in one `Conditions`, for the status page, and is logged when it begins and when it
  ends: one line each, however often it is tried and however fast it comes and goes.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple, Unpack

import msgspec
import trio

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
MAX_UNTOLD = 100
"""What the start has to tell before anybody hears it."""
QUIET_S = 30.0
"""A condition that comes and goes is logged at most this often."""

_ERRNOS = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE),  # descriptors
        *(errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS),  # processes and threads, memory
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),  # disk; the last is RLIMIT_FSIZE
    }
)
_NO_THREAD = "can't start new thread"
_REASONS = tuple(os.strerror(number) for number in sorted(_ERRNOS))


def is_want(error: BaseException) -> bool:
    """Return whether an exception says that the system has too little of something; a group if each one of it does."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_want(inner) for inner in error.exceptions)
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    if isinstance(error, ImportError):  # the linker's words, as it has no numbers
        return any(reason in str(error) for reason in _REASONS)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == _NO_THREAD)


def first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason_of(error: BaseException) -> str:
    """Return the want in a few words without paths, which may be secret: `Too many open files`."""
    error = first_of(error)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, MemoryError):
        return os.strerror(errno.ENOMEM)
    return next((reason for reason in _REASONS if reason in str(error)), str(error))


class Pauses:
    """The seconds to wait before each next attempt: they double up to `max_s`, and chance keeps tasks apart."""

    def __init__(self, first_s: float = FIRST_PAUSE_S, max_s: float = MAX_PAUSE_S) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._failures = 0

    def next(self) -> float:
        """Return the next pause in seconds, between half and all of what the doubling gives."""
        pause = min(self._max_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return pause / 2 + pause / 2 * random.random()

    def reset(self) -> None:
        self._failures = 0


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that works only in part. `since` is unix time in seconds, `why` a reason an operator can read."""

    what: str
    since: float
    why: str


class _Told(msgspec.Struct):
    """What was logged of one condition: `at` is when it was last said to begin, `open` whether its end is owed."""

    at: float
    open: bool = True
    unsaid: int = 0


class Conditions:
    """What works only in part now. One for each daemon, for the loop's thread only.

    `clock` gives unix time, which may be set; `elapsed` is what durations are of.
    """

    def __init__(self, clock: Callable[[], float] = time.time, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._present: dict[str, tuple[float, str]] = {}
        self._began = trio.lowlevel.ParkingLot()
        self._told: dict[str, _Told] = {}
        self._untold: deque[tuple[str, str]] = deque(maxlen=MAX_UNTOLD)
        self._hear: Callable[[str, str], None] | None = None

    @property
    def tell(self) -> Callable[[str, str], None]:
        """Told of each begin that is logged and of what is noted, as is whatever was before anybody heard it."""
        return self._hear or self._keep

    @tell.setter
    def tell(self, hear: Callable[[str, str], None]) -> None:
        self._hear = hear
        while self._untold:
            hear(*self._untold.popleft())

    def _keep(self, what: str, why: str) -> None:
        self._untold.append((what, why))

    def note(self, what: str, why: str) -> None:
        """Tell of something that was missing, or found damaged, and is well again."""
        self.tell(what, why)

    def begin(self, what: str, why: str) -> None:
        """Note that something does not work, or still does not; the newest reason is shown."""
        before = self._present.get(what)
        began = before[0] if before is not None else self._elapsed()
        self._present[what] = began, why
        self._began.unpark_all()
        self._tell(what, why, fresh=before is None)

    def end(self, what: str) -> None:
        """Note that it works; no news if it did before."""
        condition = self._present.pop(what, None)
        told = self._told.get(what)
        if condition is None or told is None or not told.open:
            return
        told.open = False
        log.info("%s: works again after %.1f s", what, self._elapsed() - condition[0])

    async def present(self, what: str) -> None:
        """Wait until something is degraded; return at once if it is. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while what not in self._present:
            await self._began.park()

    def now(self) -> list[Degraded]:
        """Return what is degraded, the oldest first."""
        unix, elapsed = self._clock(), self._elapsed()
        present = sorted(self._present.items(), key=lambda item: item[1][0])
        return [Degraded(what=what, since=unix - (elapsed - began), why=why) for what, (began, why) in present]

    def _tell(self, what: str, why: str, *, fresh: bool) -> None:
        now, told = self._elapsed(), self._told.get(what)
        if told is not None and (told.open or now < told.at + QUIET_S):
            told.unsaid += fresh and not told.open
            return
        more = f" (and {told.unsaid} times since it was last said)" if told is not None and told.unsaid else ""
        self._told[what] = _Told(now)
        log.warning("%s: degraded, tried again until it works: %s%s", what, why, more)
        self.tell(what, why)


async def persist(conditions: Conditions, what: str, step: Callable[[Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
    """Return what `step` returns, after as many attempts as want of resources makes necessary; every other exception
    leaves. `what` is how the condition is called while it lasts. A checkpoint if `step` is one.
    """
    pauses = Pauses()
    while True:
        try:
            result = await step(*args)
        except Exception as error:
            if not is_want(error):
                raise
            conditions.begin(what, reason_of(error))
        else:
            conditions.end(what)
            return result
        await trio.sleep(pauses.next())
