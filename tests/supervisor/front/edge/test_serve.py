"""The server under malformed, slow, silent and too many peers. Real sockets, real clock."""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import ConfigError
from supervisor.config import Settings
from supervisor.front.edge.listening import open_sockets, reserve_port
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.serve import serve
from supervisor.front.edge.websocket import Handshake
from tests.fakes.front_server import Running, read_all, running, until

MIB = 1024 * 1024

MALFORMED: dict[str, Callable[[Running], list[bytes]]] = {
    "a chunk size in C notation": lambda s: [
        b"POST /mcp HTTP/1.1\r\n" + s.host + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n"
    ],
    "a byte behind an upgrade": lambda s: [s.upgrade(b"x")],
    "a reserved opcode": lambda s: [s.upgrade(), b"\x8f\x80\0\0\0\0"],
    "an unmasked frame": lambda s: [s.upgrade(), b"\x81\x05hello"],
    "text that is not UTF-8": lambda s: [s.upgrade(), b"\x81\x82\0\0\0\0\xff\xff"],
    "a close code that does not exist": lambda s: [s.upgrade(), b"\x88\x82\0\0\0\0\x00\x01"],
    "a ping over 125 bytes": lambda s: [s.upgrade(), b"\x89\xfe\x01\x00\0\0\0\0" + b"a" * 256],
    "gone after the upgrade": lambda s: [s.upgrade()],
    "the preface of HTTP/2": lambda s: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64],
    "an upgrade to h2c": lambda s: [
        b"GET /x HTTP/1.1\r\n"
        + s.host
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
    ],
    "an upgrade to h2c with bad settings": lambda s: [
        b"GET /x HTTP/1.1\r\n"
        + s.host
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: !!!!\r\n\r\n"
    ],
    "a path that is not ASCII": lambda s: [b"GET /\xff\xfe HTTP/1.1\r\n" + s.host + b"\r\n"],
    "an expectation that is not waited for": lambda s: [
        b"POST /mcp HTTP/1.1\r\n" + s.host + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    ],
    "a header line without end": lambda s: [b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000],
    "a length with a sign": lambda s: [b"POST / HTTP/1.1\r\n" + s.host + b"Content-Length: +5\r\n\r\nhello"],
    "a subprotocol that is not ASCII": lambda s: [s.upgrade()[:-4] + b"\r\nSec-WebSocket-Protocol: \xe4\r\n\r\n"],
    "binary noise": lambda s: [bytes(range(256)) * 8],
}


@pytest.mark.case("C14", "W07", "W09")
@pytest.mark.parametrize("name", sorted(MALFORMED))
async def test_a_malformed_opening_ends_only_its_own_connection_and_nothing_is_left_of_it(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as server:
        for _ in range(3):
            async with await server.connect() as stream:
                for part in MALFORMED[name](server):
                    await stream.send_all(part)
                    with trio.move_on_after(0.02):
                        await stream.receive_some(4096)
        assert await server.answers()
        assert not server.stopped.is_set()
        await wait_all_tasks_blocked(0.02)
        assert server.counters.open == 0
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == []


@pytest.mark.case("C21")
async def test_http_2_is_not_spoken() -> None:
    async with running() as server:
        assert (await server.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).startswith(b"HTTP/1.1 505")
        upgrade = b"GET / HTTP/1.1\r\n" + server.host + b"Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"
        assert (await server.exchange(upgrade)).startswith(b"HTTP/1.1 200")


@pytest.mark.case("W04")
async def test_compression_of_websockets_is_not_negotiated() -> None:
    async with running() as server, await server.connect() as stream:
        offer = b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        await stream.send_all(server.upgrade()[:-4] + offer)
        head = bytes(await stream.receive_some(4096))
        assert head.startswith(b"HTTP/1.1 101")
        assert b"extensions" not in head.lower()


@pytest.mark.case("C27", "W01")
async def test_connections_over_the_limit_are_told_that_it_is_busy() -> None:
    async with running(max_connections=1) as server:
        async with await server.connect() as first:
            await first.send_all(server.upgrade())
            assert bytes(await first.receive_some(4096)).startswith(b"HTTP/1.1 101")
            assert (await server.exchange(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")).startswith(b"HTTP/1.1 503")
        assert server.counters.refused == 1


async def refuse_unread(request: HttpRequest) -> None:
    await request.answer(413, b"too large")


async def test_an_answer_before_the_end_of_a_large_body_leaves_no_connection_behind() -> None:
    async with running(refuse_unread, grace_s=60) as server:
        head = b"POST / HTTP/1.1\r\n" + server.host + b"Content-Length: 20000000\r\n\r\n"
        async with await server.connect() as stream, trio.open_nursery() as nursery:
            await stream.send_all(head)
            nursery.start_soon(push, stream, b"a" * 4 * MIB)
            got = await read_all(stream)
        assert got == b"" or got.startswith(b"HTTP/1.1 413")
        await stops_by_itself(server)


async def push(stream: trio.SocketStream, data: bytes) -> None:
    try:
        await stream.send_all(data)
    except trio.BrokenResourceError:
        return


async def endless(request: HttpRequest) -> None:
    """Send without looking whether anybody reads, on HTTP and WebSocket."""
    data = "a" * 256 * 1024
    with trio.CancelScope() as scope, request.leaving.ends(scope):
        if request.is_websocket:
            socket = await Handshake(request).accept(None)
            while True:
                await socket.send(data)
        await request.start(200, ())
        while True:
            await request.send(data.encode())


@pytest.mark.case("W03")
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_shutting_down_does_not_wait_for_clients_that_never_read(kind: str) -> None:
    async with running(endless) as server, await server.connect() as stream:
        opening = server.upgrade() if kind == "websocket" else b"GET / HTTP/1.1\r\n" + server.host + b"\r\n"
        await stream.send_all(opening)
        await stream.receive_some(1)
        server.closing.set()
        with trio.fail_after(30):
            await server.stopped.wait()


@pytest.mark.parametrize("settled", [False, True])
async def test_shutting_down_does_not_wait_for_clients_that_say_nothing(settled: bool) -> None:
    async with running(grace_s=60) as server, await server.connect(), await server.connect():
        if settled:
            await until(lambda: server.counters.open == 2)
        await stops_by_itself(server)


@pytest.mark.case("W02")
async def test_a_client_that_never_reads_is_dropped_at_the_send_deadline() -> None:
    async with running(endless, send_timeout_s=0.2, grace_s=60) as server, await server.connect() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")
        await stops_by_itself(server)
        assert server.counters.stalled == 1


async def stops_by_itself(server: Running) -> None:
    """Stop the server long before its grace is over: no connection may be left that only the grace would end."""
    server.closing.set()
    with trio.fail_after(30):
        await server.stopped.wait()
    assert server.counters.open == 0


@pytest.mark.case("W08")
async def test_sending_to_a_client_that_is_gone_lets_others_run() -> None:
    async with running(endless) as server:
        async with await server.connect() as stream:
            await stream.send_all(server.upgrade())
            await stream.receive_some(1)
        async with await server.connect() as other:
            await other.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")
            with trio.fail_after(30):
                assert await other.receive_some(100)


@pytest.mark.case("W04")
async def test_a_message_over_the_limit_is_closed_as_too_big_and_not_collected() -> None:
    async with running(websocket_max_message_bytes=1000) as server, await server.connect() as stream:
        await stream.send_all(server.upgrade())
        assert b"101" in await stream.receive_some(4096)
        await stream.send_all(b"\x01\xfe\x08\x00\0\0\0\0" + b"a" * 2048)
        for _ in range(50):
            await stream.send_all(b"\x00\xfe\x08\x00\0\0\0\0" + b"a" * 2048)
        assert (await read_all(stream)).endswith(b"\x88\x02\x03\xf1")


async def test_a_hard_stop_closes_everything_at_once() -> None:
    async with trio.open_nursery() as nursery:
        sockets = open_sockets("127.0.0.1:0", 5.0)
        port = sockets[0].getsockname()[1]
        await nursery.start(partial(serve, endless, sockets, Settings(), trio.Event(), grace_s=60))
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await stream.receive_some(1)
            with trio.fail_after(30):
                nursery.cancel_scope.cancel()
                await read_all(stream)


async def test_a_request_in_flight_is_answered_during_the_grace() -> None:
    entered, release = trio.Event(), trio.Event()

    async def slow(request: HttpRequest) -> None:
        entered.set()
        await release.wait()
        await request.answer(200, b"ok")

    async with running(slow, grace_s=5) as server, await server.connect() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")
        await entered.wait()
        server.closing.set()
        await wait_all_tasks_blocked()
        with pytest.raises(OSError, match="connect"):
            await server.connect()
        release.set()
        assert (await read_all(stream)).endswith(b"\r\n\r\nok")


def test_localhost_listens_on_one_port_in_every_family() -> None:
    sockets = open_sockets("localhost:0", 5.0)
    try:
        assert {listener.getsockname()[0] for listener in sockets} <= {"127.0.0.1", "::1"}
        assert len({listener.getsockname()[1] for listener in sockets}) == 1
    finally:
        for listener in sockets:
            listener.close()


def test_the_kernel_drops_clients_that_acknowledge_nothing() -> None:
    (listener,) = open_sockets("127.0.0.1:0", 2.5)
    with listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500


def test_a_port_in_use_is_an_error_that_says_what_to_do() -> None:
    (listener,) = open_sockets("127.0.0.1:0", 5.0)
    with listener, pytest.raises(ConfigError, match=r"the port is in use.*choose another port"):
        open_sockets(f"127.0.0.1:{listener.getsockname()[1]}", 5.0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_reserved_port_is_for_those_that_it_was_reserved_for(host: str) -> None:
    with ExitStack() as stack:
        holders = [stack.enter_context(holder) for holder in reserve_port(f"{host}:0", 10.0)]
        listen = f"{host}:{holders[0].getsockname()[1]}"
        for _ in range(2):
            for take in (open_sockets, reserve_port):
                with pytest.raises(ConfigError, match="the port is in use"):
                    take(listen, 10.0)
            for listener in open_sockets(listen, 10.0, reserved=True):
                stack.enter_context(listener).listen()
    for listener in open_sockets(listen, 10.0):
        with listener, pytest.raises(ConfigError, match="the port is in use"):
            reserve_port(listen, 10.0)


def test_whoever_holds_a_port_gets_no_connection() -> None:
    with ExitStack() as stack:
        (holder,) = (stack.enter_context(each) for each in reserve_port("127.0.0.1:0", 10.0))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(holder.getsockname())
        listen = f"127.0.0.1:{holder.getsockname()[1]}"
        nodes = [stack.enter_context(open_sockets(listen, 10.0, reserved=True)[0]) for _ in range(2)]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(holder.getsockname())
        for node in nodes:
            node.listen()
        clients = [stack.enter_context(socket.create_connection(holder.getsockname())) for _ in range(64)]
        accepted = [accept_all(node, stack) for node in nodes]
    assert sum(accepted) == len(clients)
    assert all(accepted), "one of them gets none"


def accept_all(listener: socket.socket, stack: ExitStack) -> int:
    """Accept the connections that wait; return how many."""
    for count in itertools.count():
        try:
            stack.enter_context(listener.accept()[0])
        except BlockingIOError:
            return count
    raise AssertionError


@pytest.mark.case("D16")
def test_a_port_that_only_others_may_use_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", denied)
    with pytest.raises(ConfigError) as caught:
        open_sockets("127.0.0.1:80", 5.0)
    assert caught.value.key == "listen"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("listen", "problem"),
    [
        ("192.0.2.1:0", "does not have the address"),
        ("bad..name:0", "no address"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error_that_says_why(listen: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        open_sockets(listen, 5.0)
    assert caught.value.key == "listen"
    assert caught.value.hint
