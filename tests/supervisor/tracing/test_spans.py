"""The spans of one call: a wait is one only if it took its time, and what is not traced has none."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import SpanKind

from actors.kit import Reply
from actors.messages import CallTrace
from supervisor.tracing.spans import LEAST_WAIT_NS, SdkRequestTrace, SpanFactory

START = 1_800_000_000_000_000_000


class Scene:
    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self.now = START
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.factory = SpanFactory(provider.get_tracer("t"), baggage=False, clock=lambda: self.now)

    def call(self) -> CallTrace:
        span = self.factory.start("request", Context(), SpanKind.SERVER, {})
        return SdkRequestTrace(self.factory, span, "tools/call", "").begin_call("s", "tools/call", "t", remote=False)

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans()]


def test_what_is_asked_during_one_of_several_calls_is_part_of_that_one() -> None:
    scene = Scene()
    whole = SdkRequestTrace(
        scene.factory, scene.factory.start("whole", Context(), SpanKind.SERVER, {}), "tools/call", ""
    )
    parts = [whole.branch() for _ in range(2)]
    calls = [part.begin_call("s", "tools/call", name, remote=False) for part, name in zip(parts, "ab", strict=True)]
    for call in calls:
        call.send(b"")
    reply = Reply[Any]()
    parts[0].ask("elicitation/create", reply)
    reply.answer(None)
    for call in calls:
        call.end("")
    whole.end("execute_mcp_tool", "")
    spans = {span.name: span for span in scene.spans()}
    parents = {name: span.parent.span_id if span.parent else None for name, span in spans.items()}
    first, top = spans["tools/call a"].context, spans["tools/call execute_mcp_tool"].context
    assert first is not None
    assert top is not None
    assert parents == {
        "elicitation/create": first.span_id,
        "tools/call a": top.span_id,
        "tools/call b": top.span_id,
        "tools/call execute_mcp_tool": None,
    }


@pytest.mark.parametrize(("waited_ns", "told"), [(0, False), (LEAST_WAIT_NS - 1, False), (LEAST_WAIT_NS, True)])
def test_a_wait_has_a_span_if_it_was_one(waited_ns: int, told: bool) -> None:
    scene = Scene()
    call = scene.call()
    scene.now += waited_ns
    call.send(b"")
    call.end("")
    assert scene.names == [*(["mcpvisor.wait"] if told else []), "tools/call t"]
    if told:
        assert (scene.spans()[0].start_time, scene.spans()[0].end_time) == (START, START + waited_ns)


def test_what_was_never_sent_has_waited_in_vain() -> None:
    scene = Scene()
    scene.call().end("timeout")
    (wait,) = scene.spans()
    assert (wait.name, dict(wait.attributes or {})["error.type"]) == ("mcpvisor.wait", "timeout")


def test_what_is_sent_again_has_a_span_each_time() -> None:
    scene = Scene()
    call = scene.call()
    first, second = call.send(b""), call.send(b'"x":1')
    call.end("")
    assert scene.names == ["tools/call t"] * 2
    assert dict(scene.spans()[0].attributes or {})["error.type"] == "unreached"
    assert first != second
    assert second.startswith(b'"x":1,"traceparent":')


def test_what_is_not_traced_has_no_span_and_its_server_is_told_so() -> None:
    scene = Scene(ALWAYS_OFF)
    call = scene.call()
    told = call.send(b'"x":1')
    call.end("error", 5)
    assert scene.spans() == []
    assert told.endswith(b'-00"')
