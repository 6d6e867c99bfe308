"""A call is one trace: of its client, of the daemon, and of the server, which is told by `_meta`."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from actors.errors import ConfigError
from supervisor.config import Settings
from supervisor.host.datadir import DataDir
from supervisor.tracing import sdk
from supervisor.tracing import tracer as tracing
from supervisor.tracing.context import TracedRequest
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.otlp_collector import OtlpCollector, collecting
from tests.scenario.client import Client, message
from tests.scenario.daemon import World, world

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
SECRET = "canary-7f3a"


class Scene:
    """A daemon with one server, and what came of it: the spans are complete when the daemon has ended."""

    def __init__(self, directory: Path, data: DataDir) -> None:
        self.exporter: SpanExporter = InMemorySpanExporter()
        self.server = FakeServer(tools=[tool(name) for name in ("echo", "refuse", "hang", "ask")])
        self._place = directory, data

    def run(self, **settings: Any) -> AbstractAsyncContextManager[World]:
        entry = {"desk": {"command": "x", "call_timeout_s": 0.2, "ask": "clients"}}
        return world(*self._place, entry, {"desk": self.server}, **{"tracing": True, **settings})

    @property
    def metas(self) -> list[dict[str, Any]]:
        """What the server got in `_meta`, call by call."""
        called = [each for each in self.server.messages if each.get("method") == "tools/call"]
        return [each["params"].get("_meta", {}) for each in called]

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        assert isinstance(self.exporter, InMemorySpanExporter)
        return self.exporter.get_finished_spans()

    def of(self, name: str) -> ReadableSpan:
        (span,) = (each for each in self.spans if each.name == name)
        return span

    def children(self, parent: ReadableSpan) -> list[str]:
        at = parent.get_span_context()
        return [each.name for each in self.spans if each.parent and at and each.parent.span_id == at.span_id]


@pytest.fixture
def scene(tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path, data)
    monkeypatch.setattr(sdk, "otlp_exporter", lambda settings: made.exporter)
    return made


async def execute(at: Client, path: str, meta: Any = None, text: str = "") -> dict[str, Any]:
    """Call a tool with this `_meta`."""
    arguments = {"tool_path": path, "arguments": {"text": text}}
    more = {"_meta": meta} if meta is not None else {}
    return await at.rpc("tools/call", name="execute_mcp_tool", arguments=arguments, **more)


def ids(span: ReadableSpan) -> tuple[str, str]:
    at = span.get_span_context()
    assert at is not None
    return f"{at.trace_id:032x}", f"{at.span_id:016x}"


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_client_daemon_and_server_are_one_trace(scene: Scene) -> None:
    async with scene.run() as at:
        answer = await execute(at, "desk:echo", {"traceparent": CONTEXT, "tracestate": "a=1", "x": 1, "baggage": "b=2"})
        assert "result" in answer
    request, call = scene.of("tools/call execute_mcp_tool"), scene.of("tools/call echo")
    assert {ids(span)[0] for span in (request, call)} == {TRACE}
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert set(scene.children(request)) - {"mcpvisor.wait"} == {"tools/call echo"}
    assert (request.kind, call.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert scene.metas == [{"traceparent": f"00-{TRACE}-{ids(call)[1]}-01", "tracestate": "a=1", "x": 1}]
    assert attributes(request) == {
        "mcp.method.name": "tools/call",
        "jsonrpc.request.id": "1",
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "gen_ai.tool.name": "execute_mcp_tool",
        "gen_ai.operation.name": "execute_tool",
    }
    assert attributes(call) == {
        "mcp.method.name": "tools/call",
        "mcpvisor.server": "desk",
        "network.transport": "pipe",
        "gen_ai.tool.name": "echo",
        "gen_ai.operation.name": "execute_tool",
    }
    assert request.start_time is not None
    assert call.start_time is not None
    assert call.end_time is not None
    assert request.end_time is not None
    assert request.start_time <= call.start_time <= call.end_time <= request.end_time


async def test_a_head_of_http_is_a_link_and_the_trace_is_our_own(scene: Scene) -> None:
    async with scene.run() as at:
        await execute(at.showing(traceparent=CONTEXT), "desk:echo")
    request = scene.of("tools/call execute_mcp_tool")
    assert request.parent is None
    (link,) = request.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == (TRACE, PARENT)
    assert scene.metas[0]["traceparent"].startswith(f"00-{ids(request)[0]}-")


async def test_a_malformed_context_begins_a_new_trace(scene: Scene) -> None:
    malformed = ["00-bad", CONTEXT.upper(), 7, f"00-{'0' * 32}-{PARENT}-01"]
    async with scene.run() as at:
        for parent in malformed:
            await execute(at, "desk:echo", {"traceparent": parent})
    begun = [
        [each for each in scene.spans if each.name == f"tools/call {name}"] for name in ("execute_mcp_tool", "echo")
    ]
    for parent, request, call, meta in zip(malformed, *begun, scene.metas, strict=True):
        assert request.parent is None, parent
        assert meta == {"traceparent": f"00-{ids(request)[0]}-{ids(call)[1]}-01"}, parent


async def test_without_tracing_meta_is_left_as_it_is(scene: Scene) -> None:
    meta = {"traceparent": "00-bad", "tracestate": "a=1", "baggage": "b=2", "x": 1}
    async with scene.run(tracing=False) as at:
        await execute(at, "desk:echo", meta)
    assert scene.metas == [meta]
    assert not scene.spans


@pytest.mark.parametrize("passes", [False, True])
async def test_baggage_travels_by_a_setting(scene: Scene, passes: bool) -> None:
    async with scene.run(trace_baggage=passes) as at:
        await execute(at, "desk:echo", {"traceparent": CONTEXT, "baggage": "b=2"})
    assert scene.metas[0].get("baggage") == ("b=2" if passes else None)


async def test_what_is_not_sampled_is_passed_on_and_not_sent(scene: Scene) -> None:
    async with scene.run(trace_ratio=0.0) as at:
        await execute(at, "desk:echo", {"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert not scene.spans
    (meta,) = scene.metas
    assert meta["traceparent"].startswith(f"00-{TRACE}-")
    assert meta["traceparent"].endswith("-00")
    assert PARENT not in meta["traceparent"]


async def test_errors_say_whose_they_are(scene: Scene) -> None:
    async with scene.run() as at:
        await execute(at, "desk:refuse")
        await execute(at, "desk:hang")
        await at.call("execute_mcp_tool", tool_path="desk:none")
    refuse, hang = scene.of("tools/call refuse"), scene.of("tools/call hang")
    told = attributes(refuse)
    assert (told["error.type"], told["rpc.response.status_code"]) == ("-32602", "-32602")
    assert attributes(hang)["error.type"] == "timeout"
    assert {refuse.status.status_code, hang.status.status_code} == {StatusCode.ERROR}
    requests = [each for each in scene.spans if each.name == "tools/call execute_mcp_tool"]
    assert [attributes(each).get("error.type") for each in requests] == ["tool_error"] * 3


async def test_searches_starts_and_readings_have_spans(scene: Scene) -> None:
    async with scene.run() as at:
        await at.call("discover_mcp_tools", query=f"{SECRET} echo")
    search = scene.of("mcpvisor.search")
    assert scene.children(scene.of("tools/call discover_mcp_tools")) == ["mcpvisor.search"]
    assert attributes(search).keys() == {"mcpvisor.search.hits"}
    assert attributes(scene.of("mcpvisor.start")) == {"mcpvisor.server": "desk"}
    assert attributes(scene.of("mcpvisor.discovery")) == {"mcpvisor.server": "desk"}


async def test_a_question_during_a_call_is_part_of_its_trace(scene: Scene) -> None:
    async with scene.run() as at, at.socket("/mcp") as socket:
        await socket.greet(elicitation={})
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "desk:ask", "arguments": {}}}
        await socket.send(message("tools/call", params, 2))
        question = await socket.next()
        assert question["method"] == "elicitation/create"
        await socket.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert (await socket.next())["id"] == 2
    asked = scene.of("elicitation/create")
    assert scene.children(scene.of("tools/call ask")) == ["elicitation/create"]
    assert (asked.kind, asked.status.status_code) == (SpanKind.CLIENT, StatusCode.UNSET)
    request = scene.of("tools/call execute_mcp_tool")
    assert attributes(request)["network.protocol.name"] == "websocket"
    assert attributes(request)["mcp.session.id"]


async def test_nothing_that_is_said_is_in_a_span(scene: Scene) -> None:
    async with scene.run() as at:
        answer = await execute(at, "desk:echo", text=SECRET)
        assert SECRET in json.dumps(answer)
        await execute(at, "desk:refuse", text=SECRET)
        await at.call("discover_mcp_tools", query=SECRET)
    assert scene.spans
    assert SECRET not in "".join(span.to_json() for span in scene.spans)
    assert "refused" not in "".join(span.to_json() for span in scene.spans)


async def test_an_exemplar_leads_from_the_metric_to_the_trace(scene: Scene) -> None:
    async with scene.run() as at:
        await execute(at, "desk:echo", {"traceparent": CONTEXT})
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        page = (await at.ask("GET", "/metrics", headers=accept)).text
    lines = [line for line in page.splitlines() if TRACE in line]
    assert {line.partition("_bucket")[0] for line in lines} == {
        "mcp_client_operation_duration_seconds",
        "mcp_server_operation_duration_seconds",
    }


class Unwilling(SpanExporter):
    """Refuses, raises, or hangs until it is released."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.released = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.how == "hangs":
            self.released.wait(60)
        if self.how == "raises":
            raise ConnectionError(SECRET)
        return SpanExportResult.FAILURE


@pytest.mark.parametrize("how", ["refuses", "raises", "hangs"])
async def test_a_collector_that_takes_nothing_harms_no_call(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    scene.exporter = unwilling = Unwilling(how)
    monkeypatch.setattr(tracing, "_CLOSE_S", 0.1)
    try:
        async with scene.run(trace_queue=8) as at:
            for _ in range(30):
                assert "result" in await execute(at, "desk:echo")
            while not await dropped(at):  # noqa: ASYNC110 - the thread of the SDK has its own pace
                await trio.sleep(0.02)
    finally:
        unwilling.released.set()


async def dropped(at: Client) -> bool:
    page = (await at.ask("GET", "/metrics")).text
    (line,) = (line for line in page.splitlines() if line.startswith("mcpvisor_spans_dropped_total "))
    return float(line.split()[1]) > 0


def test_without_the_extra_the_configuration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "supervisor.tracing.s"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert tracing.open_tracer(Settings()) is None
    with pytest.raises(ConfigError, match="not installed") as caught:
        tracing.open_tracer(Settings(tracing=True))
    assert "mcpvisor[otel]" in str(caught.value)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with collecting() as collector:
        yield collector


def send_span(settings: Settings) -> None:
    tracer = sdk.SdkTracer(settings, sdk.otlp_exporter(settings))
    asked = TracedRequest(
        method="tools/list", id=b"1", params=b"", version="2025-11-25", session="", protocol="http", lines=None
    )
    tracer.begin(asked).end("", "")
    tracer.close()


def test_settings_reach_the_collector(collector: OtlpCollector) -> None:
    send_span(Settings(trace_endpoint=f"{collector.url}/own/path", trace_headers={"x-key": "k"}))
    ((path, key, _),) = collector.seen
    assert (path, key) == ("/own/path", "k")
    assert [(span.service, span.name) for span in collector.spans] == [("mcpvisor", "tools/list")]


def test_variables_of_the_sdk_hold_where_settings_say_nothing(
    monkeypatch: pytest.MonkeyPatch, collector: OtlpCollector
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of-variable")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "service-of-mine")
    send_span(Settings())
    ((path, key, _),) = collector.seen
    assert (path, key) == ("/v1/traces", "of-variable")
    assert [span.service for span in collector.spans] == ["service-of-mine"]
