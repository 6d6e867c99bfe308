"""What is counted of one family: a number, or a histogram, for each set of its labels. Bounded. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from prometheus_client.samples import Exemplar

from supervisor.metrics.families import OTHER, Family

Labels = tuple[str, ...]
"""The values of the labels of a family, in its order."""
MAX_SETS: Final = 800
"""Different sets of labels of a histogram, whose 17 series each are the most of the page."""
MAX_COUNTS: Final = 5000
"""The same of a counter."""


class Measured(msgspec.Struct):
    """`counts` by bucket, the last one for what is above all bounds; the `total` in seconds.

    `exemplars` by the place of their bucket, each with its seconds and the unix time.
    """

    counts: list[int]
    total: float = 0.0
    exemplars: dict[int, Exemplar] = {}

    def copy(self) -> Measured:
        return Measured([*self.counts], self.total, dict(self.exemplars))


Values = Mapping[Labels, float] | Mapping[Labels, Measured]


class Counts:
    """What only grows. `known` sets of labels are there from the beginning, at 0."""

    def __init__(self, family: Family, known: Iterable[Labels] = (), most: int = MAX_COUNTS) -> None:
        self.family = family
        self._most = most
        self.values: dict[Labels, float] = dict.fromkeys(known, 0)

    def add(self, *labels: str, by: float = 1) -> None:
        values = self.values
        if labels not in values and len(values) >= self._most:
            labels = (OTHER,) * len(labels)
        values[labels] = values.get(labels, 0) + by

    def know(self, known: Iterable[Labels]) -> None:
        """Have sets of labels be there from now on."""
        for labels in known:
            if len(self.values) < self._most:
                self.values.setdefault(labels, 0)


class Durations:
    """How long something took: a histogram for each set of labels."""

    def __init__(self, family: Family, known: Iterable[Labels] = (), most: int = MAX_SETS) -> None:
        self.family = family
        self._most = most
        self.values: dict[Labels, Measured] = {labels: self._new() for labels in known}

    def _new(self) -> Measured:
        return Measured([0] * (len(self.family.buckets) + 1))

    def add(self, labels: Labels, seconds: float) -> None:
        measured = self.values.get(labels) or self._make(labels)
        measured.counts[bisect_left(self.family.buckets, seconds)] += 1
        measured.total += seconds

    def note(self, labels: Labels, exemplar: Exemplar) -> None:
        """Keep the newest measurement of its bucket that is in a trace. Its `value` is in seconds."""
        measured = self.values.get(labels) or self._make(labels)
        measured.exemplars[bisect_left(self.family.buckets, exemplar.value)] = exemplar

    def _make(self, labels: Labels) -> Measured:
        if len(self.values) >= self._most:
            labels = (OTHER,) * len(labels)
        return self.values.setdefault(labels, self._new())


def forget(tables: Iterable[Counts | Durations], label: str, values: Iterable[str]) -> None:
    """Drop every set of labels in which one label has one of some values."""
    gone = frozenset(values)
    for table in tables:
        if gone and label in table.family.labels:
            at = table.family.labels.index(label)
            for labels in [labels for labels in table.values if labels[at] in gone]:
                del table.values[labels]
