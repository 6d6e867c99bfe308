"""Spans wait for their collector in a bounded queue: what it does not take is dropped and counted; nothing waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from supervisor.tracing.sdk import BoundedSpans, CountingExporter, PerSecond, make_sampler


class Collector(SpanExporter):
    """Takes nothing before it is `open`, and answers with `result`, or raises."""

    def __init__(self, result: SpanExportResult | Exception = SpanExportResult.SUCCESS, *, hangs: bool = False) -> None:
        self.result = result
        self.open = threading.Event()
        self.entered = threading.Event()
        self.names: list[str] = []
        if not hangs:
            self.open.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        self.open.wait(30)
        if isinstance(self.result, Exception):
            raise self.result
        self.names += [span.name for span in spans]
        return self.result


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage() + str(record.exc_info or ""))


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def end_spans(spans: BoundedSpans, count: int) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(spans)
    tracer = provider.get_tracer("test")
    for number in range(count):
        tracer.start_span(f"span {number}").end()


def test_a_collector_that_hangs_costs_what_does_not_fit() -> None:
    collector = Collector(hangs=True)
    spans = BoundedSpans(collector, 4, pause_s=60)
    end_spans(spans, 4)
    assert collector.entered.wait(30)  # a full batch is taken at once
    end_spans(spans, 10)
    assert spans.count_dropped() == 6
    collector.open.set()
    spans.shutdown()
    assert len(collector.names) == 8
    assert spans.count_dropped() == 6


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, RuntimeError("secret of the collector")])
def test_what_a_collector_refuses_is_counted_and_said_without_its_words(
    result: SpanExportResult | Exception, kept: Kept
) -> None:
    spans = BoundedSpans(Collector(result), 100, pause_s=60)
    end_spans(spans, 5)
    spans.shutdown()
    assert spans.count_dropped() == 5
    assert kept.lines == ["traces cannot be delivered: 5 spans were lost so far; calls go on"]


def test_the_log_says_so_now_and_then(kept: Kept) -> None:
    now = [0.0]
    exporter = CountingExporter(Collector(SpanExportResult.FAILURE), lambda: now[0])
    for moment in (0.0, 1.0, 59.0, 60.0):
        now[0] = moment
        exporter.export([])
    assert len(kept.lines) == 2


def remote(*, sampled: bool) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return set_span_in_context(NonRecordingSpan(SpanContext(7, 7, True, flags)), Context())


def test_traces_of_others_are_taken_so_many_a_second() -> None:
    now = [0.0]
    sampler = PerSecond(3, lambda: now[0])

    def taken(count: int) -> int:
        results = [sampler.should_sample(remote(sampled=True), 7, "x") for _ in range(count)]
        return sum(each.decision is Decision.RECORD_AND_SAMPLE for each in results)

    assert taken(10) == 3
    now[0] = 0.5
    assert taken(10) == 1
    now[0] = 100.0
    assert taken(10) == 3


@pytest.mark.parametrize(
    ("ratio", "per_s", "parent", "decision"),
    [
        (1.0, 0.0, None, Decision.RECORD_AND_SAMPLE),
        (0.0, 9.0, None, Decision.DROP),
        (0.0, 9.0, True, Decision.RECORD_AND_SAMPLE),
        (1.0, 9.0, False, Decision.DROP),
        (1.0, 0.0, True, Decision.DROP),
        (1.0, 0.5, True, Decision.DROP),
    ],
)
def test_the_parent_decides_else_the_ratio(ratio: float, per_s: float, parent: bool | None, decision: Decision) -> None:
    context = Context() if parent is None else remote(sampled=parent)
    result = make_sampler(ratio, per_s).should_sample(context, 7, "x", SpanKind.SERVER)
    assert result.decision is decision
