"""What is counted of one family, and all of it as metric families of prometheus-client in the format that is asked for.

What is counted is in tables of ours and not in the counters and histograms of the library: those take three to eight
times as long for a measurement, eight times the memory, and a lock that the loop would share with the thread in which
the page is written. They know no bound either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Final, TypeAlias, cast

import msgspec
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, PROCESS_COLLECTOR, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from supervisor.metrics.families import OTHER, Family

Labels = tuple[str, ...]
"""The values of the labels of a family, in its order."""
MAX_SETS: Final = 800
"""Different sets of labels of a histogram, whose 17 series each are the most of the page."""
_MAX_COUNTS: Final = 5000
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

    def __init__(self, family: Family, known: Iterable[Labels] = (), most: int = _MAX_COUNTS) -> None:
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


Encoder: TypeAlias = Callable[[Collector], bytes]
Bucket: TypeAlias = tuple[str, float] | tuple[str, float, Exemplar]
_ASKED: Final = (
    "*/*",
    "application/openmetrics-text",
    *(
        f"{kind}; version=1.0.0; escaping={escaping}"
        for kind in ("application/openmetrics-text", "text/plain")
        for escaping in ("allow-utf-8", "underscores")
    ),
)
"""What readers ask for. The library also writes other escapings, which change our names, and takes a reader's word for
versions that it does not know."""
ENCODERS: Final[dict[str, Encoder]] = {kind: encode for encode, kind in map(choose_encoder, _ASKED)}
"""The encoders of the library by the content type of what they write."""


class FamilyValues(msgspec.Struct, frozen=True):
    """The values of one family."""

    family: Family
    values: Values


class FigureCollector(Collector):
    """Figures, and those of this process. Makes one family at a time, as samples take much memory. Blocks."""

    def __init__(self, figures: Sequence[FamilyValues], process: Collector = PROCESS_COLLECTOR) -> None:
        self._figures = figures
        self._process = process

    def collect(self) -> Iterator[Metric]:
        yield from map(metric_of, self._figures)
        # In a sandbox /proc may be other than the library expects. Then its figures are not there.
        with suppress(OSError, ValueError, LookupError, NameError):
            yield from self._process.collect()


def content_type_for(accept: str) -> str:
    """Return the key of `ENCODERS` for the `Accept` of a request, as the library chooses; else that of plain text."""
    try:
        _, kind = choose_encoder(accept)
    except TypeError:  # what it makes of a version that is no number
        return CONTENT_TYPE_PLAIN_0_0_4
    return kind if kind in ENCODERS else CONTENT_TYPE_PLAIN_0_0_4


def metric_of(figures: FamilyValues) -> Metric:
    family = figures.family
    if family.kind == "histogram":
        return _histogram(family, cast("Mapping[Labels, Measured]", figures.values))
    make = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = make(family.name, family.help, labels=family.labels, unit=family.unit)
    for labels, value in cast("Mapping[Labels, float]", figures.values).items():
        metric.add_metric(labels, value)
    return metric


def _histogram(family: Family, values: Mapping[Labels, Measured]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels, unit=family.unit)
    bounds = [*map(str, family.buckets), "+Inf"]
    for labels, measured in values.items():
        metric.add_metric(labels, _buckets(bounds, measured), measured.total)
    return metric


def _buckets(bounds: Iterable[str], measured: Measured) -> list[Bucket]:
    exemplars = measured.exemplars
    return [
        (bound, count, exemplars[at]) if at in exemplars else (bound, count)
        for at, (bound, count) in enumerate(zip(bounds, accumulate(measured.counts), strict=True))
    ]
