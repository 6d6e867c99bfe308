"""Many clients at once that are slow, leave together, or only wait: each costs little. Real sockets, real clock."""

from __future__ import annotations

import gc
import json
import socket
import struct
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.fakes.front_server import Running, frame, read_all, running, until
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.service import FakeService, forever
from tests.supervisor.front.edge import test_bodies as bodies
from tests.supervisor.front.edge.test_floods import HELD_MS, front, post, watched

CROWD = 40
TIMEOUT_S = 2.0
"""Longer than a machine that is busy with other things leaves us waiting: a client that is not slow is in time."""
PAUSE_S = 0.05
IDLE_BYTES = 40_000
"""What a WebSocket that only waits may take, with what this test has of it; 10,000 are 400 MB."""


async def trickle(server: Running, start: bytes, told: list[bytes]) -> None:
    """Send this, and then a byte each moment until the connection is closed."""
    async with await server.connect() as stream, trio.open_nursery() as nursery:

        async def send() -> None:
            try:
                await stream.send_all(start)
                while True:
                    await stream.send_all(b"a")
                    await trio.sleep(PAUSE_S)
            except trio.BrokenResourceError:
                return

        nursery.start_soon(send)
        told.append(await read_all(stream))
        nursery.cancel_scope.cancel()


@pytest.mark.case("C02")
@pytest.mark.parametrize("sent", ["head", "body"])
async def test_a_crowd_that_sends_a_byte_at_a_time_is_let_go_in_time_and_holds_up_nobody(sent: str) -> None:
    told: list[bytes] = []
    async with bodies.front(head_timeout_s=TIMEOUT_S, body_timeout_s=TIMEOUT_S) as here, trio.open_nursery() as nursery:
        start = b"GET / HTTP/1.1\r\nX: " if sent == "head" else here.post(b"", length=100_000)
        for _ in range(CROWD):
            nursery.start_soon(trickle, here.server, start, told)
        while len(told) < CROWD:
            healthy = here.post(bodies.request(10), headers=bodies.CLOSE)
            assert (await here.server.exchange(healthy)).startswith(b"HTTP/1.1 200")
            await trio.sleep(PAUSE_S)
    heads = {each[:12] for each in told}
    if sent == "body":
        assert b"HTTP/1.1 408" in heads
        heads.remove(b"HTTP/1.1 408")
    assert heads <= {b""}, "who goes on sending for long may lose the answer (RFC 9112, 9.6)"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def reset(stream: trio.SocketStream) -> None:
    """Vanish without a word: what is unsent is thrown away."""
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


@pytest.mark.case("C13")
@pytest.mark.parametrize("kind", ["stream", "call", "socket"])
async def test_a_crowd_that_vanishes_at_once_leaves_nothing_behind(kind: str) -> None:
    service = FakeService(hold=forever)
    async with front(service) as server:
        listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        body, method = (listen, "subscriptions/listen") if kind == "stream" else (modern("hold"), "hold")
        headers = [f"{name}: {value}".encode() for name, value in modern_headers(method).items()]
        opening = post(server, body, *headers[1:], b"Content-Length: %d" % len(body))
        opening = server.upgrade(b"") if kind == "socket" else opening
        counts: list[tuple[int, int]] = []
        for _ in range(5):
            crowd = [await server.connect() for _ in range(CROWD)]
            for stream in crowd:
                await stream.send_all(opening)
            await until(lambda: server.counters.open == CROWD)
            if kind == "call":
                await until(lambda: len(service.asked) % CROWD == 0)
            else:
                for stream in crowd:
                    await stream.receive_some(1)
            for stream in crowd:
                reset(stream)
            await until(lambda: server.counters.open == 0)
            with trio.fail_after(30):
                await wait_all_tasks_blocked(0.05)  # none is left that goes round and round
            counts.append((descriptors(), trio.lowlevel.current_statistics().tasks_living))
        assert len(set(counts)) == 1


async def opened(server: Running) -> trio.SocketStream:
    """Open a WebSocket, and a session on it."""
    stream = await server.connect()
    await stream.send_all(server.upgrade())
    assert b" 101 " in await stream.receive_some(4096)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    for message in (first, {"jsonrpc": "2.0", "method": "notifications/initialized"}):
        await stream.send_all(frame(json.dumps(message).encode()))
    assert b'"id":1' in await stream.receive_some(4096)
    return stream


async def hear(stream: trio.SocketStream) -> None:
    heard = b""
    while b"notifications/tools/list_changed" not in heard:  # a ping may come first
        said = await stream.receive_some(4096)
        assert said
        heard += said


@pytest.mark.case("W01")
async def test_sockets_that_only_wait_cost_little_and_are_all_told_of_a_change_soon() -> None:
    service = FakeService()
    async with front(service) as server, AsyncExitStack() as open_ones:
        await open_ones.enter_async_context(await opened(server))
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            streams = [await open_ones.enter_async_context(await opened(server)) for _ in range(2 * CROWD)]
            await wait_all_tasks_blocked()
            each = (tracemalloc.get_traced_memory()[0] - before) / len(streams)
        finally:
            tracemalloc.stop()
        assert each < IDLE_BYTES
        async with watched() as ticker:
            service.change(tools=1)
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    for stream in streams:
                        nursery.start_soon(hear, stream)
        assert ticker.longest_ms < HELD_MS
    assert server.counters.open == 0


@pytest.mark.case("W12")
async def test_connections_that_come_in_a_storm_are_taken_in_turns_and_leave_nothing_behind() -> None:
    async def come(server: Running) -> None:
        async with await opened(server):
            pass

    async with front(FakeService()) as server:
        await come(server)
        await until(lambda: server.counters.open == 0)
        await wait_all_tasks_blocked()
        gc.collect()  # what tests before this one have left, which may go at any time
        before = descriptors(), trio.lowlevel.current_statistics().tasks_living
        for _ in range(2):
            async with watched() as ticker, trio.open_nursery() as nursery:
                for _ in range(2 * CROWD):
                    nursery.start_soon(come, server)
            assert ticker.longest_ms < HELD_MS
            await until(lambda: server.counters.open == 0)
        await wait_all_tasks_blocked()
        assert descriptors() <= before[0]
        assert trio.lowlevel.current_statistics().tasks_living == before[1]
    assert server.counters.accepted == 4 * CROWD + 1


@pytest.mark.case("C27")
@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", b"POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n%sExpect: 100-continue\r\n\r\n"]
)
async def test_a_client_that_has_closed_its_half_is_not_waited_for(sent: bytes) -> None:
    async with running(head_timeout_s=600) as server, await server.connect() as stream:
        await stream.send_all(sent.replace(b"%s", server.host))
        await stream.send_eof()
        await read_all(stream)
        await until(lambda: server.counters.open == 0)
        assert await server.answers()
