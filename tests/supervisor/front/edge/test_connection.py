"""What is peculiar to our connections: one idle timer for all requests, head and body together, no waiting to send."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from supervisor.front.edge.connection import ClientConnection
from supervisor.front.edge.http11 import Http11
from supervisor.front.edge.tasks import Tasks
from supervisor.front.edge.websocket_frames import WebSocketStream
from tests.fakes.front_server import answer, frame, read_all, running, until
from tests.fakes.garbage import no_search

GET = b"GET / HTTP/1.1\r\n%s\r\n"


async def test_a_request_that_takes_longer_than_the_idle_timeout_is_answered() -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(0.2)  # four times the timeout: it is the duration that is tested
        await answer(send, b"late")

    async with running(slow, head_timeout_s=0.05) as server, await server.connect() as stream:
        await stream.send_all(GET % server.host)
        assert (await read_all(stream)).endswith(b"late")


async def test_a_kept_connection_serves_requests_one_after_the_other_and_is_dropped_when_idle() -> None:
    async with running(head_timeout_s=0.2) as server, await server.connect() as stream:
        for _ in range(3):
            await stream.send_all(GET % server.host)
            assert bytes(await stream.receive_some(4096)).endswith(b"\r\n\r\nok")
        assert await read_all(stream) == b""


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def tell_path(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, scope["path"].encode())

    async with running(tell_path) as server:
        requests = [b"GET /%d HTTP/1.1\r\n" % number + server.host + b"\r\n" for number in range(5)]
        last = b"GET /last HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n"
        found = await server.exchange(b"".join(requests) + last)
    bodies = [part.partition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 200")[1:]]
    assert bodies == [b"/0", b"/1", b"/2", b"/3", b"/4", b"/last"]


async def test_an_answer_that_the_kernel_does_not_take_at_once_arrives_whole() -> None:
    body = bytes(range(256)) * 64 * 1024

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, body)

    async with running(large) as server:
        found = await server.exchange(b"GET / HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n")
    assert found.partition(b"\r\n\r\n")[2] == body


async def test_the_head_of_a_stream_does_not_wait_for_its_first_part() -> None:
    told = trio.Event()

    async def stream_later(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await told.wait()
        await send({"type": "http.response.body", "body": b"event", "more_body": False})

    async with running(stream_later) as server, await server.connect() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n")
        with trio.fail_after(30):
            assert bytes(await stream.receive_some(4096)).startswith(b"HTTP/1.1 200")
        told.set()
        assert b"event" in await read_all(stream)


async def test_an_application_that_fails_between_head_and_body_ends_its_connection_only() -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            await answer(send)
        else:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})

    async with running(fails) as server:
        assert not (await server.exchange(b"GET /x HTTP/1.1\r\n" + server.host + b"\r\n")).endswith(b"hello")
        assert await server.answers()


async def test_a_handshake_that_is_refused_before_the_application_speaks_ends_the_connection() -> None:
    async with running() as server:
        assert (await server.exchange(server.upgrade(b"x"))).startswith(b"HTTP/1.1 400")
        assert await server.answers()
        assert server.counters.open <= 1


@pytest.mark.parametrize("websocket", [False, True])
async def test_a_connection_that_is_over_is_freed_without_a_search(websocket: bool) -> None:
    async with running() as server:
        with no_search() as alive:
            async with await server.connect() as stream:
                for sent in (server.upgrade(), frame(b"hello")) if websocket else (GET % server.host,) * 2:
                    await stream.send_all(sent)
                    assert await stream.receive_some(4096)
                assert alive(ClientConnection) == 1
            await until(lambda: server.counters.open == 0)
            await trio.testing.wait_all_tasks_blocked()
            assert alive(ClientConnection, Http11, Tasks, WebSocketStream) == 0
