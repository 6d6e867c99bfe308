"""Which requests are traced: as their parent says, else a share of them; of what comes from outside only so many."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState, get_current_span


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
