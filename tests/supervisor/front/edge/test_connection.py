"""What is peculiar to our connections: one idle timer for all requests, head and body together, no waiting to send."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from supervisor.front.edge.connection import ClientConnection
from supervisor.front.edge.parser import RequestParser
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import WebSocket
from tests.fakes.front_server import frame, read_all, running, until
from tests.fakes.garbage import no_search

GET = b"GET / HTTP/1.1\r\n%s\r\n"


async def test_a_request_that_takes_longer_than_the_idle_timeout_is_answered() -> None:
    async def slow(request: HttpRequest) -> None:
        await trio.sleep(0.2)  # four times the timeout: it is the duration that is tested
        await request.answer(200, b"late")

    async with running(slow, head_timeout_s=0.05) as server, await server.connect() as stream:
        await stream.send_all(GET % server.host)
        assert (await read_all(stream)).endswith(b"late")


@pytest.mark.case("C27")
async def test_a_kept_connection_serves_requests_one_after_the_other_and_is_dropped_when_idle() -> None:
    async with running(head_timeout_s=0.2) as server, await server.connect() as stream:
        for _ in range(3):
            await stream.send_all(GET % server.host)
            assert bytes(await stream.receive_some(4096)).endswith(b"\r\n\r\nok")
        assert await read_all(stream) == b""


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def tell_path(request: HttpRequest) -> None:
        await request.answer(200, request.path.encode())

    async with running(tell_path) as server:
        requests = [b"GET /%d HTTP/1.1\r\n" % number + server.host + b"\r\n" for number in range(5)]
        last = b"GET /last HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n"
        found = await server.exchange(b"".join(requests) + last)
    bodies = [part.partition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 200")[1:]]
    assert bodies == [b"/0", b"/1", b"/2", b"/3", b"/4", b"/last"]


async def test_an_answer_that_the_kernel_does_not_take_at_once_arrives_whole() -> None:
    body = bytes(range(256)) * 64 * 1024

    async def large(request: HttpRequest) -> None:
        await request.answer(200, body)

    async with running(large) as server:
        found = await server.exchange(b"GET / HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n")
    assert found.partition(b"\r\n\r\n")[2] == body


async def test_the_head_of_a_stream_does_not_wait_for_its_first_part() -> None:
    told = trio.Event()

    async def stream_later(request: HttpRequest) -> None:
        await request.start(200, [(b"content-type", b"text/event-stream")])
        await told.wait()
        await request.send(b"event")
        await request.end()

    async with running(stream_later) as server, await server.connect() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n")
        with trio.fail_after(30):
            assert bytes(await stream.receive_some(4096)).startswith(b"HTTP/1.1 200")
        told.set()
        assert b"event" in await read_all(stream)


async def test_an_application_that_fails_between_head_and_body_ends_its_connection_only() -> None:
    async def fails(request: HttpRequest) -> None:
        await request.start(200, ())
        if request.path == "/":
            await request.end()
        else:
            await request.send(b"hell")

    async with running(fails) as server:
        assert (await server.exchange(b"GET /x HTTP/1.1\r\n" + server.host + b"\r\n")).endswith(b"\r\nhell\r\n")
        assert await server.answers()


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
            assert alive(ClientConnection, HttpRequest, RequestParser, WebSocket) == 0


@pytest.mark.case("C27")
async def test_a_client_that_waits_for_a_100_gets_it_when_somebody_wants_its_body() -> None:
    async with running() as server:
        head = b"POST / HTTP/1.1\r\n" + server.host + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        async with await server.connect() as stream:
            await stream.send_all(head)
            assert await stream.receive_some(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
            await stream.send_all(b"hello")
            assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 200")
        # Nobody who has sent it wants to be told, and nobody whose body is refused.
        assert b" 100 " not in await server.exchange(head.replace(b"Expect", b"Connection: close\r\nExpect") + b"hello")


async def test_a_body_that_nobody_reads_is_not_asked_for_and_ends_the_connection() -> None:
    async def refuses(request: HttpRequest) -> None:
        await request.answer(413)

    async with running(refuses) as server:
        head = b"POST / HTTP/1.1\r\n" + server.host + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        told = await server.exchange(head)
        assert told.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in told


async def stream_two(request: HttpRequest) -> None:
    await request.start(200, ())
    for part in (b"one", b"", b"two"):
        await request.send(part)
    await request.end()


async def test_a_stream_goes_in_chunks_and_to_old_clients_up_to_the_end_of_the_connection() -> None:
    async with running(stream_two) as server:
        lines = server.host + b"Connection: close\r\n\r\n"
        new = await server.exchange(b"GET / HTTP/1.1\r\n" + lines)
        assert new.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        assert b"transfer-encoding: chunked" in new
        old = await server.exchange(b"GET / HTTP/1.0\r\n" + server.host + b"Connection: keep-alive\r\n\r\n")
        assert old.endswith(b"\r\n\r\nonetwo")
        assert b"chunked" not in old


async def test_the_answer_to_a_head_has_no_body() -> None:
    async with running() as server, await server.connect() as stream:
        for _ in range(2):  # what comes next on the connection is not taken for it
            await stream.send_all(GET.replace(b"GET", b"HEAD") % server.host)
            answer = bytes(await stream.receive_some(4096))
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"content-length: 2" in answer
            assert answer.endswith(b"\r\n\r\n")


async def test_a_bug_behind_a_request_is_a_500_without_its_text_and_costs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def breaks(request: HttpRequest) -> None:
        if request.path == "/":
            await request.answer(200)
        else:
            raise RuntimeError("a secret")

    async with running(breaks) as server:
        told = await server.exchange(b"GET /x HTTP/1.1\r\n" + server.host + b"\r\n")
        assert told.startswith(b"HTTP/1.1 500")
        assert b"secret" not in told
        assert await server.answers()
        assert server.counters.errors == 1
    assert "a secret" in caplog.text
