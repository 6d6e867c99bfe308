"""Nothing is imported once the daemon listens: an import needs descriptors, which may be missing by then."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import daemons
from tests.e2e.daemons import Daemon, client, running, stand_in
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import Serve
from tests.fakes.remote_server import RemoteServer
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PAGES = ("/healthz", "/readyz", "/api/status", "/api/status/debug", "/api/tools", "/api/tokens", "/nothing", "/%ff%00")
MALFORMED = (b"\0\1\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n")


async def use_everything(daemon: Daemon) -> None:
    session = await daemon.session()
    await daemon.discover("echo a text")
    await daemon.execute("growing:echo", text="é")
    await daemon.execute("nowhere:nothing")
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "nothing"):
        await daemon.rpc(method)
    body = message("tools/list", {"_meta": MODERN})
    await daemon.showing(mcp_protocol_version="2026-07-28", mcp_method="tools/list").post(body)
    for wrong in (b"{", b"\xff\xfe", b"x" * 5_000_000):
        await daemon.post(wrong)
    for page in PAGES:
        await daemon.ask("GET", page)
    await refused_ones(daemon)
    async with daemon.websocket("/ws") as socket:
        for text in (json.dumps(message("initialize", HELLO)), "{"):
            await socket.send_message(text)
            await socket.get_message()
    assert await daemon.delete(session) == 204


async def refused_ones(daemon: Daemon) -> None:
    async with client() as http:
        for method in ("PUT", "OPTIONS", "HEAD"):
            await http.request(method, f"{daemon.url}/mcp")
        for headers in ({"host": "elsewhere"}, {"origin": "http://elsewhere"}, {"content-encoding": "gzip"}):
            assert (await http.post(f"{daemon.url}/mcp", content=b"{}", headers=headers)).status_code >= 400
    for wrong in MALFORMED:
        async with await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream:
            await stream.send_all(wrong)
            with trio.move_on_after(5):
                while await stream.receive_some(4096):
                    pass


@pytest.fixture
def imports_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "COMMAND", (sys.executable, "-X", "importtime", "-m", "supervisor", "run"))


def told(log: str) -> list[str]:
    """The imports that a part of a log tells of."""
    return [line for line in log.splitlines() if line.startswith("import time:")]


@pytest.mark.usefixtures("imports_told")
async def test_nothing_is_imported_once_it_listens(tmp_path: Path) -> None:
    servers = {"growing": stand_in("growing"), "missing": {"command": "no-such-program"}}
    with running(tmp_path, servers) as daemon:
        before = len(daemon.log)
        async with daemon.events() as events:
            await daemon.ready()
            await use_everything(daemon)
            await daemon.counted()
            await events.where(lambda event: True)
    assert told(daemon.log[before:]) == []
    assert not any("httpx2" in line for line in told(daemon.log))


@pytest.mark.usefixtures("imports_told")
@pytest.mark.parametrize(
    ("make", "kind"), [(RemoteServer, "http"), (SseServer, "sse"), (SseServer, "http"), (SocketServer, "ws")]
)
async def test_what_a_remote_server_needs_is_imported_before_it_listens(
    make: Callable[[Serve], Any], kind: str, tmp_path: Path
) -> None:
    fake = FakeServer()
    async with make(fake.serve).running() as far:
        with running(tmp_path, {"far": {"url": far.url, "type": kind}}) as daemon:
            before = len(daemon.log)
            await daemon.ready()
            assert await daemon.execute("far:echo", text="x")
        assert told(daemon.log[before:]) == []
    assert fake.count("tools/call") == 1
