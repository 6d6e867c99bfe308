"""The tracer of the daemon, by the SDK of OpenTelemetry. Imported only where traces are wanted: it is an extra.

What the settings do not say the SDK reads in the environment: `OTEL_EXPORTER_OTLP_*`, `OTEL_RESOURCE_ATTRIBUTES`,
`OTEL_SERVICE_NAME`, `OTEL_BSP_SCHEDULE_DELAY`.

Spans leave the daemon by a bounded queue and the thread of the SDK that sends what is in it. What does not fit, or is
not taken, is dropped and counted, and the log says so now and then. The SDK's own messages are not logged: they have
stacks, and addresses that may hold secrets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, TraceState, get_current_span

from actors.facts import Logged, ReadingEnded, StartEnded
from actors.launch import server_of
from supervisor.config import Settings
from supervisor.host.version import VERSION
from supervisor.tracing import spans as names
from supervisor.tracing.context import TraceContext, TracedRequest, read_head, read_params
from supervisor.tracing.spans import Attributes, SdkRequestTrace, SpanFactory

log = logging.getLogger(__name__)

_MAX_BATCH: Final = 512
_TELL_EVERY_S: Final = 60.0


class CountingExporter(SpanExporter):
    """Hands spans to another exporter, in the thread of the SDK; whatever that does, nothing is raised.

    `taken` are the spans that came here, `failed` those of them that were not delivered.
    """

    def __init__(self, inner: SpanExporter, clock: Callable[[], float] = time.monotonic) -> None:
        self.taken = self.failed = 0
        self._inner = inner
        self._clock = clock
        self._tell_from = clock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send some spans."""
        self.taken += len(spans)
        try:
            result = self._inner.export(spans)
        except Exception:  # noqa: BLE001 - the border to the SDK: it says nothing that may be logged
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self.failed += len(spans)
            self._tell()
        return result

    def _tell(self) -> None:
        if self._clock() >= self._tell_from:
            self._tell_from = self._clock() + _TELL_EVERY_S
            log.warning("traces cannot be delivered: %d spans were lost so far; calls go on", self.failed)

    def shutdown(self) -> None:
        """Close its connections."""
        self._inner.shutdown()


class BoundedSpans(SpanProcessor):
    """Takes spans that have ended, and drops those for which there is no room among `most` that wait."""

    def __init__(self, exporter: SpanExporter, most: int, pause_s: float | None = None) -> None:
        self._exporter = CountingExporter(exporter)
        self._most = most
        self._kept = self._refused = 0
        self._batches = BatchSpanProcessor(
            self._exporter,
            max_queue_size=most,
            max_export_batch_size=min(_MAX_BATCH, most),
            schedule_delay_millis=None if pause_s is None else pause_s * 1000,
        )

    def count_dropped(self) -> int:
        return self._refused + self._exporter.failed

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing yet."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span, or drop it."""
        if self._kept - self._exporter.taken >= self._most:
            self._refused += 1
            return
        self._kept += 1
        self._batches.on_end(span)

    def shutdown(self) -> None:
        """Send what waits, and end the thread. Blocks."""
        self._batches.shutdown()  # type: ignore[no-untyped-call]  # it says nothing of its types

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits now. Blocks."""
        return self._batches.force_flush(timeout_millis)


def _quiet_sdk() -> None:
    """Have the SDK log nothing."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)


class PerSecond(Sampler):
    """Takes so many spans a second, and as many at once after a second without any."""

    def __init__(self, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._left = most
        self._at = clock()

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Any = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Say whether there is room for one more."""
        now = self._clock()
        self._left = min(max(1.0, self._most), self._left + (now - self._at) * self._most)
        self._at = now
        state = get_current_span(parent_context).get_span_context().trace_state
        if self._left < 1:
            return SamplingResult(Decision.DROP, trace_state=state)
        self._left -= 1
        return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes, state)

    def get_description(self) -> str:
        """Return what the SDK shows of it."""
        return f"PerSecond{{{self._most:g}}}"


def make_sampler(ratio: float, remote_per_s: float) -> Sampler:
    """Return what decides: `ratio` of what begins here, and of what is traced already so many a second."""
    return ParentBased(TraceIdRatioBased(ratio), remote_parent_sampled=PerSecond(remote_per_s))


class SdkTracer:
    """Implements `Tracer`. `exporter` sends spans; its thread is that of the SDK."""

    kinds = (StartEnded, ReadingEnded)

    def __init__(self, settings: Settings, exporter: SpanExporter, pause_s: float | None = None) -> None:
        _quiet_sdk()
        self._spans = BoundedSpans(exporter, settings.trace_queue, pause_s)
        self._provider = TracerProvider(
            sampler=make_sampler(settings.trace_ratio, settings.trace_remote_per_s),
            resource=_resource(),
            shutdown_on_exit=False,  # that would wait for as long as the collector likes
        )
        self._provider.add_span_processor(self._spans)
        tracer = self._provider.get_tracer(names.SCOPE, VERSION)
        self._factory = SpanFactory(tracer, baggage=settings.trace_baggage)

    def count_dropped(self) -> int:
        return self._spans.count_dropped()

    def begin(self, request: TracedRequest) -> SdkRequestTrace:
        said = read_params(request.params)
        beside = read_head(request.lines) if request.lines is not None else None
        attributes: Attributes = {
            names.METHOD: request.method[: names.MAX_TEXT],
            names.REQUEST_ID: request.id.decode(errors="replace").strip('"')[: names.MAX_TEXT],
            names.VERSION: request.version,
            names.TRANSPORT: "tcp",
            names.PROTOCOL: request.protocol,
        }
        if request.session:
            attributes[names.SESSION] = request.session
        links = [Link(_span_context(beside))] if beside is not None else None
        name = names.span_name(request.method, "")
        span = self._factory.start(name, _parent(said), SpanKind.SERVER, attributes, links=links)
        return SdkRequestTrace(self._factory, span, request.method, said.baggage if said is not None else "")

    def fold(self, logged: Logged) -> None:
        match logged.fact:
            case StartEnded(launch=launch, seconds=seconds, good=good):
                self._factory.add(names.START_SPAN, {names.SERVER: server_of(launch)}, seconds, good=good)
            case ReadingEnded(launch=launch, seconds=seconds, good=good):
                self._factory.add(names.READING_SPAN, {names.SERVER: server_of(launch)}, seconds, good=good)

    def close(self) -> None:
        self._provider.shutdown()


def _resource() -> Resource:
    resource = Resource.create({"service.version": VERSION})
    named = str(resource.attributes.get("service.name", "unknown_service"))
    return resource.merge(Resource({"service.name": names.SCOPE})) if named.startswith("unknown_service") else resource


def _span_context(context: TraceContext) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), True, flags, state)


def _parent(context: TraceContext | None) -> Context:
    if context is None:
        return Context()
    return trace.set_span_in_context(NonRecordingSpan(_span_context(context)), Context())


def otlp_exporter(settings: Settings) -> SpanExporter:
    """Return what sends spans by OTLP over HTTP."""
    return OTLPSpanExporter(endpoint=settings.trace_endpoint or None, headers=dict(settings.trace_headers) or None)
