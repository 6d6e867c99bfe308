"""What a client may send without pause, and that nobody else has to wait for it. Real sockets, real clock."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer
from supervisor.front.websocket import McpWebSocket, WebSocketSettings
from supervisor.service.drain import RequestDrain
from tests.fakes.front_server import Running, Ticker, dispatch, frame, read_all, running, until
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.service import FakeService, OneDoor, forever, returning

HELD_MS = 60.0
"""What one turn of the loop may take at most, with room for a slow machine; unbounded it was 300 ms and more."""

PING, PONG, TEXT_BEGINS, CONTINUES, ENDS = 0x89, 0x8A, 0x01, 0x00, 0x80
FLOODS = {
    "pings": frame(opcode=PING),
    "pongs": frame(b"x", opcode=PONG),
    "empty fragments": frame(opcode=CONTINUES),
    "tiny fragments": frame(b"a", opcode=CONTINUES),
}
NOTICE = frame(b'{"jsonrpc":"2.0","method":"notifications/x"}')


@asynccontextmanager
async def front(service: FakeService | None = None, **settings: Any) -> AsyncIterator[Running]:
    service = service or FakeService(tools__list=returning(b'{"tools":[]}'), hold=forever)
    drain = RequestDrain(service, trio.Event())
    http = McpHttp(drain, sealer=Sealer(bytes(32)), doors=OneDoor(service))
    sockets = McpWebSocket(drain, WebSocketSettings(), OneDoor(service))
    handler = dispatch(mcp_http=http.serve, mcp_websocket=sockets.serve)
    async with running(handler, drain.closing, **settings) as server:
        yield server


@asynccontextmanager
async def watched() -> AsyncIterator[Ticker]:
    """Watch how long the loop is held during the block, but not by searches for garbage of other tests."""
    ticker = Ticker()
    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ticker.run)
            yield ticker
            nursery.cancel_scope.cancel()
    finally:
        gc.enable()


async def push(stream: trio.SocketStream, data: bytes) -> bytes:
    """Send, whatever comes of it, and return what comes back until the connection is closed."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_send, stream, data)
        found = await read_all(stream)
        nursery.cancel_scope.cancel()
    return found


async def _send(stream: trio.SocketStream, data: bytes) -> None:
    try:
        await stream.send_all(data)
    except trio.BrokenResourceError:
        return


async def upgraded(server: Running, path: bytes) -> trio.SocketStream:
    stream = await server.connect()
    await stream.send_all(server.upgrade().replace(b"/ws", path, 1))
    assert b" 101 " in await stream.receive_some(4096)
    return stream


@pytest.mark.case("W05")
@pytest.mark.parametrize("path", [b"/mcp", b"/ws"])
@pytest.mark.parametrize("kind", sorted(FLOODS))
async def test_a_flood_of_frames_that_say_nothing_is_closed_with_the_reason_and_holds_up_nobody(
    kind: str, path: bytes
) -> None:
    async with front() as server, await upgraded(server, path) as stream, watched() as ticker:
        opening = frame(b"a", opcode=TEXT_BEGINS) if "fragments" in kind else b""
        found = await push(stream, opening + FLOODS[kind] * 100_000)
        reason = b"\x03\xf0too many " + (b"tiny fragments" if "fragments" in kind else b"control frames")
        assert reason in found
    assert ticker.longest_ms < HELD_MS


@pytest.mark.case("W05")
async def test_as_many_control_frames_as_are_allowed_are_answered() -> None:
    async with front() as server, await upgraded(server, b"/mcp") as stream:
        await stream.send_all(frame(b"p", opcode=PING) * 90 + frame(b"\x03\xe8", opcode=0x88))
        found = await read_all(stream)
        assert found.count(b"\x8a\x01p") == 90


async def test_messages_that_want_no_answer_take_turns_with_everybody_else() -> None:
    async with front() as server, await upgraded(server, b"/mcp") as stream, watched() as ticker:
        found = await push(stream, NOTICE * 5000 + frame(b"\x03\xe8", opcode=0x88))
        assert found.endswith(b"\x88\x02\x03\xe8")
    assert ticker.longest_ms < HELD_MS


async def test_a_message_in_many_small_frames_is_put_together() -> None:
    request = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"a" * 20_000 + b'"}}'
    parts = [request[start : start + 128] for start in range(0, len(request), 128)]
    frames = [frame(part, opcode=CONTINUES) for part in parts]
    frames[0], frames[-1] = frame(parts[0], opcode=TEXT_BEGINS), frame(parts[-1], opcode=CONTINUES | ENDS)
    async with front() as server, await upgraded(server, b"/mcp") as stream:
        await stream.send_all(b"".join(frames))
        found = b""
        with trio.fail_after(30):
            while b'"id":1,"result":{}' not in found:
                found += await stream.receive_some(4096)


def post(server: Running, body: bytes, *headers: bytes, method: bytes = b"POST") -> bytes:
    lines = [b"%s /mcp HTTP/1.1" % method, server.host.strip(), b"Content-Type: application/json", *headers]
    return b"\r\n".join([*lines, b"", b""]) + body


@pytest.mark.case("C01")
async def test_a_body_in_very_many_chunks_is_refused_and_holds_up_nobody() -> None:
    async with front() as server, await server.connect() as stream, watched() as ticker:
        chunks = b"1\r\na\r\n" * 100_000
        found = await push(stream, post(server, chunks, b"Transfer-Encoding: chunked"))
        assert found.startswith(b"HTTP/1.1 413")
        assert b"too_large" in found
        assert b"parts" in found
    assert ticker.longest_ms < HELD_MS


@pytest.mark.case("C15")
@pytest.mark.parametrize("count", [128, 20_000])
async def test_more_header_lines_than_a_request_needs_are_refused(count: int) -> None:
    async with front() as server, watched() as ticker:
        head = b"GET /mcp HTTP/1.1\r\n" + server.host + b"a:\r\n" * count + b"\r\n"
        assert (await server.exchange(head)).startswith(b"HTTP/1.1 431")
        trailers = b"0\r\n" + b"a:\r\n" * count + b"\r\n"
        await server.exchange(post(server, trailers, b"Transfer-Encoding: chunked", b"Connection: close"))
    assert ticker.longest_ms < HELD_MS


@pytest.mark.parametrize("method", [b"GET", b"DELETE"])
async def test_a_body_where_none_belongs_is_refused(method: bytes) -> None:
    async with front() as server:
        for header in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):
            found = await server.exchange(post(server, b"", header, method=method))
            assert found.startswith(b"HTTP/1.1 400")
            assert b"has no body" in found


async def test_short_requests_sent_ahead_are_all_answered_however_many_they_are() -> None:
    async with front() as server, await server.connect() as stream, watched() as ticker:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        length = b"Content-Length: %d" % len(body)
        requests = post(server, body, length) * 499 + post(server, body, length, b"Connection: close")
        found = await push(stream, requests)
        assert found.count(b'"result":{}') == 500
    assert ticker.longest_ms < HELD_MS


async def test_what_is_sent_behind_a_long_request_is_not_read_before_its_turn() -> None:
    release = trio.Event()

    async def hold(client: Any, params: Any) -> bytes:
        await release.wait()
        return b'{"held":true}'

    async with front(FakeService(hold=hold)) as server, await server.connect() as stream:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hold"}).encode()
        request = post(server, body, b"Content-Length: %d" % len(body))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send, stream, request * 200_000)
            with trio.move_on_after(0.5):  # what the kernel holds is sent at once
                await until(lambda: not nursery.child_tasks)
            assert nursery.child_tasks, "30 MB were read while nobody works on them"
            release.set()
            found = b""
            with trio.fail_after(30):
                while found.count(b'"held":true') < 1000:
                    found += await stream.receive_some(65536)
            nursery.cancel_scope.cancel()


async def test_clients_that_open_streams_and_leave_again_and_again_leave_nothing_behind() -> None:
    listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    headers = [f"{name}: {value}".encode() for name, value in modern_headers("subscriptions/listen").items()]
    async with front() as server, watched() as ticker:
        request = post(server, listen, *headers[1:], b"Content-Length: %d" % len(listen))
        for _ in range(100):
            async with await server.connect() as stream:
                await stream.send_all(request)
            async with await server.connect() as stream:
                await stream.send_all(request)
                assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 200")
        assert ticker.longest_ms < HELD_MS
    async with front() as server:
        async with await server.connect() as stream:
            await stream.send_all(post(server, listen, *headers[1:], b"Content-Length: %d" % len(listen)))
        await until(lambda: server.counters.accepted and not server.counters.open)
