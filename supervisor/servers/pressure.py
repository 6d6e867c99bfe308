"""Who sleeps when something is short: how much is missing, and which servers give that back. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import msgspec

from actors.transport.stdio.resources.allotment import MemoryBounds, MemoryLook, size

SLACK: Final = 0.25
"""Once it is short, it is so until there is a quarter more than what has to stay free: one more page ends nothing."""
LIMIT_SLACK: Final = 0.1
"""And until servers take so much less than their limit."""

PRESSURE: Final = 1
"""So many bytes are missing under pressure: nobody can say how many would help, and it shows only seconds later."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """So much of each kind that a process takes: descriptors, and bytes of memory."""

    descriptors: int = 0
    memory: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(descriptors=self.descriptors + other.descriptors, memory=self.memory + other.memory)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(descriptors=self.descriptors - other.descriptors, memory=self.memory - other.memory)

    @property
    def short(self) -> bool:
        """Whether, as what is missing, it is more than nothing."""
        return self.descriptors > 0 or self.memory > 0

    def helped_by(self, other: Amounts) -> bool:
        """Say whether the other one has anything of what is missing."""
        return (self.descriptors > 0 and other.descriptors > 0) or (self.memory > 0 and other.memory > 0)


class IdleServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that may sleep. `used_at` is when a call began or ended there last, in seconds; it `gives` that back."""

    launch: str
    used_at: float
    gives: Amounts


def choose(idle: Iterable[IdleServer], missing: Amounts, ending: Iterable[Amounts] = ()) -> str | None:
    """Return who sleeps next, None if nobody has to or can help: who was used longest ago.

    One at a time, and what those give back that are `ending` is no longer missing: what a server gives is known only
    once it has ended, and each more that sleeps is a start for somebody who calls.
    """
    missing = reduce(Amounts.__sub__, ending, missing)
    helpful = [each for each in idle if missing.helped_by(each.gives)]
    first = min(helpful, key=lambda each: (each.used_at, each.launch), default=None)
    return None if first is None else first.launch


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found: `missing` bytes, 0 if nothing is, and `why`.

    `critical`: so little is left that not even calls may begin. `near`: it is short of bytes, or may be soon.
    """

    missing: int = 0
    why: str = ""
    critical: bool = False
    near: bool = False


class Pressure:
    """Judges one look after the other; what is short once is short for a little more, so that nothing flutters."""

    def __init__(self) -> None:
        self._short = False
        self._critical = False

    def judge(self, memory: MemoryLook, taken: int, bounds: MemoryBounds) -> Shortage:
        """Return what is short now; `taken` is what all servers took when somebody looked last, in bytes."""
        missing, why = _lack(memory, taken, bounds, short=self._short)
        if missing and not self._short:
            missing, why = _lack(memory, taken, bounds, short=True)
        self._short = missing > 0
        near = missing > PRESSURE
        reserve = bounds.reserve_of(memory.total)
        if memory.available is None:
            return Shortage(missing=missing, why=why, near=near)
        self._critical = memory.available < reserve * (0.75 if self._critical else 0.5)
        near = near or memory.available < 2 * reserve
        return Shortage(missing=missing, why=why, critical=self._critical, near=near)


def _lack(memory: MemoryLook, taken: int, bounds: MemoryBounds, *, short: bool) -> tuple[int, str]:
    """Return how many bytes are missing, and why; `short`: they were before."""
    reserve, limit = bounds.reserve_of(memory.total), bounds.limit_bytes
    wanted = int(reserve * (1 + SLACK)) if short else reserve
    if memory.available is not None and memory.available < wanted:
        why = f"{size(memory.available)} of memory is free, {size(reserve)} has to be (memory.reserve_mib)"
        return wanted - memory.available, why
    most = limit if limit is None or not short else int(limit * (1 - LIMIT_SLACK))
    if limit is not None and most is not None and taken > most:
        why = f"the servers take {size(taken)} of memory, their limit is {size(limit)} (memory.limit_mib)"
        return taken - most, why
    percent = bounds.pressure_percent
    if percent and memory.pressure is not None and memory.pressure >= (percent / 2 if short else percent):
        why = f"for {memory.pressure:.0f} % of the time somebody waits for memory (memory.pressure_percent)"
        return PRESSURE, why
    return 0, ""
