"""WebSockets of the daemon, from the side of a bridge: over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from supervisor.bridge import connection as module
from supervisor.bridge.address import DoorAddress, read_address
from supervisor.bridge.connection import PING_S, DaemonConnection, NotReached, open_connection

pytestmark = pytest.mark.process

Talk = Callable[["Peer"], Awaitable[None]]


class Peer:
    """The daemon's side of one connection, frame by frame."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.frames = WSConnection(ConnectionType.SERVER)

    async def next(self) -> Event | None:
        """Wait for what the bridge does; None if it does nothing any more."""
        while True:
            for event in self.frames.events():
                return event
            data = await self.stream.receive_some(65536)
            if not data:
                return None
            self.frames.receive_data(bytes(data))

    async def send(self, *events: Event) -> None:
        await self.stream.send_all(b"".join(map(self.frames.send, events)))

    async def accept(self, *headers: tuple[bytes, bytes]) -> Request:
        asked = await self.next()
        assert isinstance(asked, Request)
        await self.send(AcceptConnection(extra_headers=list(headers)))
        return asked


@asynccontextmanager
async def daemon(talk: Talk) -> AsyncIterator[DoorAddress]:
    """Have a daemon that does this with each connection; give the address of its door."""

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            await talk(Peer(stream))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            await nursery.start(trio.serve_listeners, handle, [listener])
            yield read_address(f"127.0.0.1:{listener.socket.getsockname()[1]}/mcp/all?profile=work")
            nursery.cancel_scope.cancel()


async def refusal(talk: Talk) -> NotReached:
    """What is told of a connection that there is none of."""
    async with daemon(talk) as address:
        with pytest.raises(NotReached) as raised:
            async with open_connection(address):
                pass
    return raised.value


async def test_the_door_is_asked_for_and_says_how_much_it_takes() -> None:
    asked: list[Request] = []

    async def talk(peer: Peer) -> None:
        asked.append(await peer.accept((b"mcpvisor-max-message-bytes", b"12345")))

    async with daemon(talk) as address, open_connection(address) as connection:
        assert connection.max_message_bytes == 12345
    assert (asked[0].host, asked[0].target) == (address.authority, "/mcp/all?profile=work")


@pytest.mark.parametrize("headers", [(), ((b"mcpvisor-max-message-bytes", b"many"),)])
async def test_a_daemon_that_does_not_say_takes_a_mebibyte(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    async def talk(peer: Peer) -> None:
        await peer.accept(*headers)

    async with daemon(talk) as address, open_connection(address) as connection:
        assert connection.max_message_bytes == 1024 * 1024


async def test_messages_of_any_length_go_both_ways_and_what_was_said_before_the_end_is_heard() -> None:
    texts = ['{"a":"é"}', "x" * 300_000, ""]

    async def talk(peer: Peer) -> None:
        await peer.accept()
        got = ""
        while got != texts[0] + texts[1]:
            event = await peer.next()
            assert isinstance(event, TextMessage)
            got += event.data
        await peer.send(*(TextMessage(data=text) for text in texts))
        await peer.send(TextMessage(data="par", message_finished=False), Ping(), TextMessage(data="ted"))
        await peer.send(CloseConnection(code=1001, reason="it shuts down"))
        assert isinstance(await peer.next(), Pong)
        assert isinstance(await peer.next(), CloseConnection)

    async with daemon(talk) as address, open_connection(address) as connection:
        assert connection.is_alive()
        await connection.send(texts[0].encode())
        await connection.send(texts[1].encode())
        heard = [await connection.receive() for _ in range(4)]
        assert heard == [*(text.encode() for text in texts), b"parted"]
        assert await connection.receive() is None
        assert connection.why == "the daemon closed it: it shuts down"
        assert await connection.receive() is None
        assert not connection.is_alive()
        await connection.send(b"nobody hears it")


async def test_a_daemon_that_dies_is_known_to_be_dead_before_that_is_read() -> None:
    died = trio.Event()

    async def talk(peer: Peer) -> None:
        await peer.accept()
        await peer.stream.aclose()
        died.set()

    async with daemon(talk) as address, open_connection(address) as connection:
        await died.wait()
        assert not connection.is_alive()
        assert await connection.receive() is None
        assert connection.why == "the daemon is gone"


async def test_a_connection_that_is_reset_is_over() -> None:
    async def talk(peer: Peer) -> None:
        await peer.accept()
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    async with daemon(talk) as address, open_connection(address) as connection:
        assert await connection.receive() is None
        assert connection.why == "the daemon is gone"
        await connection.send(b"nobody hears it")


@pytest.mark.parametrize("said", [b"\xff" * 20, BytesMessage(data=b"x")])
async def test_what_is_no_message_ends_it(said: bytes | Event) -> None:
    async def talk(peer: Peer) -> None:
        await peer.accept()
        await (peer.stream.send_all(said) if isinstance(said, bytes) else peer.send(said))
        await peer.next()

    async with daemon(talk) as address, open_connection(address) as connection:
        assert await connection.receive() is None
        assert connection.why in ("the daemon closed it: Invalid opcode 0xf", "what it sent is no text")


async def test_a_message_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_MESSAGE_BYTES", 10)

    async def talk(peer: Peer) -> None:
        await peer.accept()
        await peer.send(TextMessage(data="x" * 11, message_finished=False))
        await peer.next()

    async with daemon(talk) as address, open_connection(address) as connection:
        assert await connection.receive() is None
        assert connection.why == "it sent a message of over 10 bytes"


async def test_the_daemon_is_told_of_the_end() -> None:
    told: list[Event | None] = []

    async def talk(peer: Peer) -> None:
        await peer.accept()
        told.append(await peer.next())

    async with daemon(talk) as address:
        with trio.CancelScope() as scope:
            async with open_connection(address):
                scope.cancel()
                await trio.sleep_forever()
        await wait_all_tasks_blocked(0.05)
    assert isinstance(told[0], CloseConnection)


async def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(NotReached, match="nobody listens there; start one with: mcpvisor run") as raised:
                async with open_connection(read_address(f"{host}:{probe.getsockname()[1]}")):
                    pass
            assert raised.value.kind == "refused"


async def test_a_name_that_nobody_has() -> None:
    with pytest.raises(NotReached) as raised:
        async with open_connection(read_address("no-such-host.invalid:1")):
            pass
    assert raised.value.kind == "away"


async def test_nobody_speaks_tls_there() -> None:
    async def talk(peer: Peer) -> None:
        await peer.stream.receive_some(1000)
        await peer.stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with daemon(talk) as plain:
        with pytest.raises(NotReached, match="something else listens there"):
            async with open_connection(read_address(f"https://{plain.authority}")):
                pass


NO_DOOR = (
    b'{"error": {"message": "there is no door \'x\'", "data": '
    b'{"type": "not_found", "outcome": "not_sent", "retryable": false, "servers": ["git"]}}}'
)


@pytest.mark.parametrize(
    ("status", "body", "reason", "kind"),
    [
        (404, NO_DOOR, "404: there is no door 'x'", "rejected"),
        (421, b"", "421", "rejected"),
        (503, b"too many connections\n", "503", "away"),
    ],
)
async def test_a_refusal_is_told_in_its_words(status: int, body: bytes, reason: str, kind: str) -> None:
    async def talk(peer: Peer) -> None:
        await peer.next()
        headers = [(b"content-length", b"%d" % len(body))]
        await peer.send(RejectConnection(status_code=status, headers=headers, has_body=True), RejectData(data=body))

    found = await refusal(talk)
    assert (found.reason, found.kind) == (f"it refuses with status {reason}", kind)
    if status == 404:
        assert found.error is not None
        assert found.error.data() == json.loads(NO_DOOR)["error"]["data"]
    else:
        assert found.error is None


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"220 ftp.example.com\r\n", b"\0"])
async def test_something_else_listens(said: bytes) -> None:
    async def talk(peer: Peer) -> None:
        await peer.next()
        await peer.stream.send_all(said)

    found = await refusal(talk)
    assert found.kind in ("rejected", "away")


async def test_it_closes_at_once() -> None:
    async def talk(peer: Peer) -> None:
        await peer.next()

    assert (await refusal(talk)).reason == "it closed the connection at once"


async def test_no_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CONNECT_S", 0.05)

    async def talk(peer: Peer) -> None:
        await trio.sleep_forever()

    found = await refusal(talk)
    assert (found.reason, found.kind) == ("no answer within 0.05 s", "away")


async def test_a_daemon_that_says_nothing_is_asked_and_given_up(autojump_clock: MockClock) -> None:
    ours, theirs = trio.socket.socketpair()
    frames = WSConnection(ConnectionType.CLIENT)
    server = WSConnection(ConnectionType.SERVER)
    server.receive_data(frames.send(Request(host="here", target="/mcp")))
    assert list(server.events())
    frames.receive_data(server.send(AcceptConnection()))
    assert list(frames.events())
    connection = DaemonConnection(trio.SocketStream(ours), frames, 1000)
    stream = trio.SocketStream(theirs)
    heard: list[Event] = []
    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery, stream:

            async def answer_once() -> None:
                while data := await stream.receive_some(1000):
                    server.receive_data(bytes(data))
                    for event in server.events():
                        heard.append(event)
                        if isinstance(event, Ping) and len(heard) == 1:
                            await stream.send_all(server.send(event.response()))

            nursery.start_soon(answer_once)
            assert await connection.receive() is None
            nursery.cancel_scope.cancel()
    assert connection.why == f"the daemon said nothing for {2 * PING_S:g} s"
    assert len(heard) == 2
    assert trio.current_time() >= 3 * PING_S
    ours.close()
