"""Figures as metric families of prometheus-client, and which of its formats a request is answered in.

What is counted is in tables of ours and not in the counters and histograms of the library: those take three to eight
times as long for a measurement, eight times the memory, and a lock that the loop would share with the thread in which
the page is written. They know no bound either.
"""

from __future__ import annotations

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

from supervisor.metrics.families import Family
from supervisor.metrics.tables import Labels, Measured, Values

Encoder: TypeAlias = Callable[[Collector], bytes]
Bucket: TypeAlias = tuple[str, float] | tuple[str, float, Exemplar]
ASKED: Final = (
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
ENCODERS: Final[dict[str, Encoder]] = {kind: encode for encode, kind in map(choose_encoder, ASKED)}
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
