"""The official Python SDK 2.x with that of OpenTelemetry: `traced.py server` over stdio, `traced.py client URL MODE`.

The SDK makes spans by itself and tells of them in `_meta`. They are sent as they end, to where
OTEL_EXPORTER_OTLP_ENDPOINT says. The client calls `desk:shout` within a span `work`.
"""

from __future__ import annotations

import sys

import trio
from mcp import Client
from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

CLIENT_S = 60.0


def serve() -> None:
    server = MCPServer("desk")

    @server.tool()
    def shout(text: str) -> str:
        return text.upper()

    server.run()


async def work(url: str, mode: str) -> None:
    tracer = trace.get_tracer("test")
    with trio.fail_after(CLIENT_S):
        async with Client(url, mode=mode) as client:
            with tracer.start_as_current_span("work"):
                arguments = {"tool_path": "desk:shout", "arguments": {"text": "hello"}}
                result = await client.call_tool("execute_mcp_tool", arguments)
    assert "HELLO" in str(result.content), result


def main(role: str, url: str = "", mode: str = "") -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": role}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    if role == "server":
        serve()
    else:
        trio.run(work, url, mode)


if __name__ == "__main__":
    main(*sys.argv[1:])
