"""A call through an official client, a daemon and an official server, each a process of its own, is one trace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import running
from tests.fakes.otlp_collector import Span, collecting
from tests.scenario.client import PATIENCE_S, Json

pytestmark = pytest.mark.e2e

SCRIPT = str(Path(__file__).with_name("traced.py"))


def ancestors(span: Span, by_id: dict[str, Span]) -> Iterator[Span]:
    """A span, and what it is part of."""
    found: Span | None = span
    while found is not None:
        yield found
        found = by_id.get(found.parent)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_client_daemon_and_server_are_one_trace(tmp_path: Path, mode: str) -> None:
    with collecting() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        servers = {"desk": {**environments.entry(environments.python_2(), SCRIPT, "server"), "env": endpoint}}
        settings: Json = {"tracing": True, "trace_endpoint": f"{collector.url}/v1/traces"}
        with running(tmp_path, servers, **settings) as daemon:
            trio.run(daemon.ready)
            command = [*environments.python_2(), SCRIPT, "client", f"{daemon.url}/mcp", mode]
            done = subprocess.run(
                command, env=os.environ | endpoint, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            assert done.returncode == 0, done.stderr
        spans = collector.spans
    (last,) = (span for span in spans if span.service == "server" and span.name == "tools/call shout")
    told = list(ancestors(last, {span.id: span for span in spans}))
    assert [(span.service, span.name) for span in told] == [
        ("server", "tools/call shout"),
        ("mcpvisor", "tools/call shout"),
        ("mcpvisor", "tools/call execute_mcp_tool"),
        ("client", "MCP send tools/call execute_mcp_tool"),
        ("client", "work"),
    ]
    assert {span.trace for span in told} == {last.trace}
    assert told[-1].parent == ""
