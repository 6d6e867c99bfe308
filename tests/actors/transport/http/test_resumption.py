"""Streams that break off before the answer: taken up where they ended, and no call is asked twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from actors.errors import ServerExited
from actors.protocol.agreement.versions import Era
from actors.transport.http import streamable
from actors.transport.http.remote import HttpLimits
from tests.actors.server.rig import Rig
from tests.actors.transport.behind import behind
from tests.fakes.mcp_server import FakeServer
from tests.fakes.remote_server import RemoteServer, Request


class Breaking:
    """Breaks the stream of each call, after its first event if there is one; a GET brings what followed.

    `kept`: the events that a GET brings, one after the other, before its answer; None for no such stream.
    """

    def __init__(self, server: RemoteServer, *, marked: bool = True, kept: list[str] | None) -> None:
        self.marked = marked
        self.kept = kept
        self.asked: list[str] = []
        self._call: object = None
        server.faults |= {"tools/call": self._break, "GET": self._follow}

    async def _break(self, request: Request) -> None:
        self._call = request.message["id"]
        await request.begin_events()
        mark = b"id: e0\nretry: 1\n" if self.marked else b"event: other\n"
        await request.stream.send_all(mark + b"data: \n\n")

    async def _follow(self, request: Request) -> None:
        last = request.headers.get("last-event-id")
        if last is None or self.kept is None:
            await request.respond(405)
            return
        self.asked.append(last)
        await request.begin_events()
        if self.kept:
            await request.stream.send_all(f"id: {self.kept.pop(0)}\ndata: \n\n".encode())
            return
        answer = {"jsonrpc": "2.0", "id": self._call, "result": {"content": [], "structuredContent": {"n": 1}}}
        await request.event(json.dumps(answer).encode())
        await trio.sleep_forever()


@asynccontextmanager
async def called(server: RemoteServer, era: Era = "legacy") -> AsyncIterator[Rig]:
    async with behind(server, limits=HttpLimits(call_max_s=5.0), era=era) as rig:
        await rig.wake()
        yield rig
    assert server.count("POST", "tools/call") == 1


@pytest.mark.parametrize("kept", [[], ["e1", "e2"]])
async def test_a_stream_that_breaks_off_is_taken_up_where_it_ended(kept: list[str]) -> None:
    server = RemoteServer(FakeServer().serve)
    breaking = Breaking(server, kept=list(kept))
    async with called(server) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
    assert breaking.asked == ["e0", *kept]


async def test_a_stream_that_brings_nothing_new_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "_RETRY_S", (0.01, 0.02))
    server = RemoteServer(FakeServer().serve)
    breaking = Breaking(server, kept=["e0"] * 20)
    async with called(server) as rig:
        with pytest.raises(ServerExited) as raised:
            await rig.call("echo")
        assert raised.value.outcome == "unknown"
    assert breaking.asked == ["e0"] * streamable.MAX_RESUMPTIONS


@pytest.mark.parametrize(("marked", "kept"), [(False, []), (True, None)])
async def test_what_nobody_has_kept_is_lost(marked: bool, kept: list[str] | None) -> None:
    server = RemoteServer(FakeServer().serve)
    breaking = Breaking(server, marked=marked, kept=kept)
    async with called(server) as rig:
        with pytest.raises(ServerExited, match="ended its answer before the result"):
            await rig.call("echo")
    assert breaking.asked == []


async def test_there_is_nothing_to_take_up_in_the_modern_era() -> None:
    server = RemoteServer(FakeServer(probe="modern").serve, modern=True)
    breaking = Breaking(server, kept=[])
    async with called(server, "modern") as rig:
        with pytest.raises(ServerExited):
            await rig.call("echo")
    assert breaking.asked == []
