"""The short form of `python -m tests.fuzz.remote`: the same cases in each run, and that a defect would be seen."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
import trio

from actors.errors import SupervisorError
from actors.protocol.wire.jsonrpc import RemoteError
from actors.server import ServerSettings
from actors.transport.http import streamable
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from tests.actors.server.rig import running_server
from tests.fakes.mcp_server import FakeServer
from tests.fakes.remote_server import RemoteServer, Request
from tests.fuzz.cases import KINDS
from tests.fuzz.grammars import Grammar
from tests.fuzz.remote import fuzz, run

BYTES = 400_000


def test_whatever_remote_servers_write_ends_in_an_answer_or_a_typed_error() -> None:
    outcomes, wrong, written = fuzz(BYTES, 20)
    assert wrong == {}
    assert written >= BYTES
    for kind in KINDS:
        assert len([outcome for outcome in outcomes if outcome.startswith(kind)]) > 1
    assert any(outcome.startswith("http: answer") for outcome in outcomes)
    assert any(outcome.startswith("websocket: answer") for outcome in outcomes)


def test_a_case_is_the_same_each_time() -> None:
    assert [run("http", "7-1") for _ in range(2)] == [run("http", "7-1")] * 2


def test_an_error_that_nobody_foresaw_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(_: str) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(streamable, "media_type", raising)
    assert any("ZeroDivisionError" in run("http", f"7-{number}")[2] for number in range(20))


async def test_what_is_written_over_sockets_ends_no_actor(caplog: pytest.LogCaptureFixture) -> None:
    grammar = Grammar(Random(3))

    async def fault(request: Request) -> None:
        await request.stream.send_all(grammar.answer(request.message.get("id")))

    server = RemoteServer(FakeServer().serve)
    limits = HttpLimits(max_line_bytes=65_536, max_event_bytes=32_768, call_max_s=20)
    with trio.fail_after(120):
        async with (
            server.running(),
            running_server(
                transport=HttpTransport(Remote(url=server.url), limits),
                era="legacy",
                settings=ServerSettings(breaker=False),
            ) as rig,
        ):
            await rig.wake()
            for _ in range(60):
                server.faults["tools/call"] = fault
                with suppress(SupervisorError, RemoteError):
                    await rig.call("echo", n=1, deadline_s=10)
                server.faults.clear()
                assert await rig.call("echo", n=1, deadline_s=30) == {"n": 1}
            await rig.stop()
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
