"""What a benchmark found, and the list that shows it. Ratios come from rounds that alternate within one run.

A ratio is the median of the rounds' ratios, with the least and the greatest: on a shared machine a number of one round
means nothing, and two numbers of different runs cannot be compared at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec


class Aim(msgspec.Struct, frozen=True):
    """What is wanted of a number: at least, or at most, `bound`, which has a `unit` where it is not of the ratio."""

    relation: Literal[">=", "<="]
    bound: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g} {self.unit}".rstrip()

    def met(self, value: float) -> bool:
        """Return whether `value` is good enough."""
        return value >= self.bound if self.relation == ">=" else value <= self.bound


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison. `value` decides over the aim: the ratio, or else the number itself."""

    what: str
    measured: str
    compared: str = ""
    ratio: str = ""
    aim: Aim | None = None
    value: float | None = None


class Spread(msgspec.Struct, frozen=True):
    """Median, least and greatest of several rounds."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} to {self.greatest:.2f})"


def spread(values: Sequence[float]) -> Spread:
    """Summarise rounds; there must be one."""
    return Spread(statistics.median(values), min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Summarise ours over theirs, round by round; both have one number for each round."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which `part` (0 to 1) of the values are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a list of Markdown: what was measured, and below it each comparison of it."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.what, []).append(row)
    return "".join(f"- {what}\n{''.join(map(_item, some))}" for what, some in groups.items())


def _item(row: Row) -> str:
    """Return the ratio, whether it is good enough, and the numbers that it is made of."""
    name, _, theirs = row.compared.partition(": ")
    numbers = f"{row.measured}; {name}: {theirs}" if name else row.measured
    met = "" if row.aim is None or row.value is None else ": met" if row.aim.met(row.value) else ": **not met**"
    aim = f" (aim {row.aim}{met})" if row.aim else ""
    return f"  - **{row.ratio}** compared with {name}{aim}:\n    {numbers}\n" if row.ratio else f"  - {numbers}{aim}\n"
