"""A collector of spans: takes what the official exporter sends by OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(msgspec.Struct, frozen=True):
    """A span as it was sent. `service` is that of its sender; ids are in hexadecimal digits, `parent` may be empty."""

    service: str
    name: str
    trace: str
    id: str
    parent: str


class OtlpCollector:
    """What came so far: paths, values of the header `x-key`, bodies."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.seen: list[tuple[str, str | None, bytes]] = []

    @property
    def spans(self) -> list[Span]:
        return [span for _, _, body in self.seen for span in _spans(body)]


def _spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        named = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                yield Span(named["service.name"], span.name, *ids)


@contextmanager
def collecting() -> Iterator[OtlpCollector]:
    """Listen for the block, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.seen.append((self.path, self.headers["x-key"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library calls it so
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = OtlpCollector(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
