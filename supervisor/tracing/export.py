"""The way of spans out of the daemon: a bounded queue, and the thread of the SDK that sends what is in it.

What does not fit, or is not taken, is dropped and counted, and the log says so now and then. The SDK's own messages are
not logged: they have stacks, and addresses that may hold secrets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

log = logging.getLogger(__name__)

MAX_BATCH: Final = 512
TELL_EVERY_S: Final = 60.0


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
            self._tell_from = self._clock() + TELL_EVERY_S
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
            max_export_batch_size=min(MAX_BATCH, most),
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


def quiet_sdk() -> None:
    """Have the SDK log nothing."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
