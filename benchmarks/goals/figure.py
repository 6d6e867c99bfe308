"""What a goal asks, and what was measured. Counts are exact; times depend on the machine, and are only said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from benchmarks.table import Aim

NONE = Aim("<=", 0)


class Figure(msgspec.Struct, frozen=True):
    """One figure of a goal: `what` was measured, how much of it is good enough, and how much it was.

    `exact`: it counts what must never happen, so it does not depend on how fast the machine is.
    """

    what: str
    aim: Aim
    value: float
    exact: bool = False

    @property
    def met(self) -> bool:
        """Whether it is good enough."""
        return self.aim.met(self.value)

    def __str__(self) -> str:
        number = f"{self.value:.3g}" if self.value < 1000 else f"{self.value:,.0f}"
        return (
            f"{self.what}: {number} {self.aim.unit}".rstrip()
            + f" (asked {self.aim})"
            + ("" if self.met else ", missed")
        )


class Goal(msgspec.Struct, frozen=True):
    """`what` is promised. `measure` yields its figures: it gets a directory, and whether to measure at full scale."""

    what: str
    measure: Callable[[Path, bool], Iterator[Figure]]


def count(what: str, value: int) -> Figure:
    """Return a figure of what must not happen at all."""
    return Figure(what, NONE, value, exact=True)
