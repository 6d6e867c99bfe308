"""A server that has said anything since it was asked for a sign of life is not replaced, however late a timer fires."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import CallTimedOut
from actors.kit import timers
from actors.life.states import State, Timer
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.weight import LARGE_BYTES
from actors.server import ServerSettings, incarnation
from actors.transport.base import Transport
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from actors.transport.stdio.command import Launch
from actors.transport.stdio.process import ProcessTransport
from actors.transport.websocket import WebSocketTransport
from tests.actors.server.rig import Rig, running_server
from tests.fakes.lines import line
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.remote_server import RemoteServer
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer

LATE_S = 0.5
SETTINGS = ServerSettings(unresponsive_s=1.0, idle_timeout_s=0)
TEST_S = 60.0
LIMITS = HttpLimits()
SCRIPT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": []} if message["method"] == "tools/list" else {}
    if message["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if "id" in message and message["method"] != "tools/call":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@asynccontextmanager
async def in_memory() -> AsyncIterator[Transport]:
    yield MemoryTransport(FakeServer().serve)


@asynccontextmanager
async def as_process() -> AsyncIterator[Transport]:
    yield ProcessTransport(Launch(command=sys.executable, args=("-I", "-S", "-c", SCRIPT)))


@asynccontextmanager
async def over_http() -> AsyncIterator[Transport]:
    async with RemoteServer(FakeServer().serve).running() as server:
        yield HttpTransport(Remote(url=server.url), LIMITS)


@asynccontextmanager
async def over_sse() -> AsyncIterator[Transport]:
    async with SseServer(FakeServer().serve).running() as server:
        yield HttpTransport(Remote(url=server.url), LIMITS, "sse")


@asynccontextmanager
async def over_websocket() -> AsyncIterator[Transport]:
    async with SocketServer(FakeServer().serve).running() as server:
        yield WebSocketTransport(Remote(url=server.url), LIMITS)


async def fire_late(self: timers.Timers[Any], name: Any, timer: Any) -> None:
    """Fire as on a machine that does something else just then."""
    with timer.scope:
        await trio.sleep_until(timer.moment)
        await trio.sleep(LATE_S)
        await self._fire(name, timer.number)


async def until_judged(rig: Rig) -> None:
    """Wait until the server was found alive, or dead."""
    while rig.actor._timers.runs(Timer.SILENCE):
        await trio.sleep(0.01)
        await wait_all_tasks_blocked()


@pytest.mark.parametrize(
    "reached",
    [
        pytest.param(in_memory, id="memory"),
        pytest.param(as_process, id="stdio", marks=pytest.mark.process),
        pytest.param(over_http, id="http"),
        pytest.param(over_sse, id="sse"),
        pytest.param(over_websocket, id="websocket"),
    ],
)
async def test_a_server_that_answered_the_ping_is_not_killed(
    monkeypatch: pytest.MonkeyPatch, reached: Callable[[], AbstractAsyncContextManager[Transport]]
) -> None:
    with trio.fail_after(TEST_S):
        async with reached() as transport, running_server(transport=transport, settings=SETTINGS) as rig:
            await rig.wake()
            call_of_another = rig.submit("hang")
            monkeypatch.setattr(timers.Timers, "_run", fire_late)
            while not rig.actor._timers.runs(Timer.SILENCE):  # what was said before may be heard during the first
                with pytest.raises(CallTimedOut):
                    await rig.call("hang", deadline_s=0.1)
            await until_judged(rig)
            await trio.sleep(0.1)  # what a process that is killed needs to be gone, or a part of it
            assert (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 1)
            assert not call_of_another.settled


@pytest.mark.parametrize("stalled_s", [0.9, 1.1, 3.0, 3600.0])
async def test_a_server_is_not_killed_for_the_time_that_we_did_not_listen(
    mock_clock: MockClock, stalled_s: float
) -> None:
    """The daemon stands still just after it asked: stopped by a signal, or without a processor."""
    async with running_server(settings=SETTINGS) as rig:
        await rig.wake()
        reply = rig.submit("hang", deadline_s=1.0)
        await wait_all_tasks_blocked()
        mock_clock.jump(1.0)
        while not reply.settled:
            await trio.lowlevel.checkpoint()
        assert rig.actor._timers.runs(Timer.SILENCE)
        mock_clock.jump(stalled_s)
        await wait_all_tasks_blocked()
        mock_clock.autojump_threshold = 0.0
        await until_judged(rig)
        assert (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 1)


async def test_a_server_is_not_killed_while_what_it_said_is_still_being_read(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large message goes through a thread, and those of other servers may be before it."""
    read = trio.Event()

    async def decoded(decode: Callable[[], Any]) -> Any:
        await read.wait()
        return decode()

    async with running_server(settings=SETTINGS) as rig:
        monkeypatch.setattr(incarnation, "decode_in_thread", decoded)
        await rig.wake()
        reply = rig.submit("hang", deadline_s=1.0)
        await wait_all_tasks_blocked()
        await rig.fake.write(line(method="notifications/message", params={"data": "x" * LARGE_BYTES}))
        await trio.sleep(30)
        assert (reply.settled, rig.actor.life.state) == (True, State.READY)
        read.set()
        await trio.sleep(30)
        assert (rig.actor.life.state, rig.actor.life.incarnation) == (State.READY, 1)


@pytest.mark.case("P01")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_says_nothing_is_killed_once_its_time_is_over(autojump_clock: MockClock, era: Era) -> None:
    fake = FakeServer(probe="modern" if era == "modern" else "error")
    async with running_server(fake, settings=ServerSettings(unresponsive_s=8.0), era=era) as rig:
        await rig.wake()
        rig.fake.silent_at = {"tools/call", "ping", "server/discover"}
        with pytest.raises(CallTimedOut):
            await rig.call(deadline_s=1.0)
        await trio.sleep(8.5)
        assert rig.fake.exits == 0
        rig.fake.silent_at = set()
        with trio.fail_after(4.0):  # there are five looks, each of which may be late
            while rig.fake.exits == 0:  # noqa: ASYNC110 - virtual time, and nothing tells
                await trio.sleep(0.05)
        assert "not even a ping" in ((await rig.status()).last_error or "")
        assert await rig.call(a=2) == {"a": 2}
        assert rig.fake.starts == 2


async def test_a_server_that_writes_nonsense_alone_is_killed_as_if_it_said_nothing(autojump_clock: MockClock) -> None:
    async def chatter() -> None:
        while rig.fake.exits == 0:
            await rig.fake.write(b'{"no": "message"}\n')
            await trio.sleep(0.1)

    async with running_server(settings=SETTINGS) as rig, trio.open_nursery() as nursery:
        await rig.wake()
        rig.fake.silent_at = {"tools/call", "ping"}
        nursery.start_soon(chatter)
        with pytest.raises(CallTimedOut):
            await rig.call(deadline_s=1.0)
        await trio.sleep(10)
        assert rig.fake.exits == 1
