"""A server actor before a server behind a WebSocket."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from wsproto.events import Event, Pong

from actors.errors import ServerExited, SupervisorError
from actors.life.states import State
from actors.transport import session, websocket
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.websocket import Meter, WebSocketTransport
from tests.actors.transport.behind import LIMITS, before, behind
from tests.fakes.mcp_server import FakeServer, Probe, tool
from tests.fakes.socket_server import SocketServer


@pytest.mark.parametrize("subprotocol", ["mcp", None])
@pytest.mark.parametrize("probe", ["error", "modern"])
async def test_a_server_is_called_like_a_local_one(probe: Probe, subprotocol: str | None) -> None:
    fake = FakeServer(probe=probe)
    server = SocketServer(fake.serve, subprotocol=subprotocol)
    async with behind(server) as rig:
        assert await rig.call("echo", n=1, text="\u00e9\n\U0001f600") == {"n": 1, "text": "\u00e9\n\U0001f600"}
        assert rig.eras == (["modern"] if probe == "modern" else ["legacy"])
        assert (await rig.status()).transport == "websocket"
        assert (await rig.status()).pid is None
    (request,) = server.requests
    assert dict(request.headers)[b"authorization"] == b"Bearer t"
    assert (request.path, list(request.proposed_subprotocols)) == ("/mcp?a=1", ["mcp"])
    assert server.sockets[0].closed is not None
    assert server.sockets[0].closed.code == 1000
    assert fake.starts == fake.exits == 1


async def test_a_server_that_falls_silent_at_the_probe_gets_a_new_connection() -> None:
    fake = FakeServer(probe="exit")
    async with behind(SocketServer(fake.serve)) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        assert rig.eras == ["legacy"]
    assert fake.starts == 2


async def test_it_tells_of_changes() -> None:
    fake = FakeServer()
    async with behind(SocketServer(fake.serve)) as rig:
        await rig.wake()
        fake.tools.append(tool("grown"))
        await fake.notify("notifications/tools/list_changed")
        await rig.until_listed(2)
        assert rig.listed[-1] == ["echo", "grown"]


@pytest.mark.case("H23")
@pytest.mark.parametrize("code", [None, 1000, 1001, 1009, 1011, 4000])
async def test_what_was_asked_on_a_connection_that_is_closed_is_lost_and_the_next_call_has_a_new_one(
    code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is a connection that ends without a word."""
    monkeypatch.setattr(session, "LASTING_S", 0.0)
    fake = FakeServer(tools=[tool("echo"), tool("hang")])
    server = SocketServer(fake.serve)
    async with behind(server) as rig:
        await rig.wake()

        async def lose() -> None:
            with pytest.raises(ServerExited) as raised:
                await rig.call("hang")
            assert raised.value.outcome == "unknown"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            await fake.called.wait()
            if code is None:
                await trio.aclose_forcefully(server.sockets[0]._stream)
            else:
                await server.sockets[0].aclose(code)
        assert await rig.call("echo", n=2) == {"n": 2}
        assert (await rig.status()).last_error is None
    assert len(server.sockets) == 2


@pytest.mark.case("H23")
async def test_a_connection_that_does_not_last_is_a_failure() -> None:
    fake = FakeServer()
    server = SocketServer(fake.serve)
    async with behind(server) as rig:
        await rig.wake()
        await server.sockets[0].aclose(1001)
        await rig.reach(State.RESPAWNING)
        assert await rig.call("echo", n=2) == {"n": 2}
        assert (await rig.status()).restarts == 1
        assert "disconnected while ready: it is going away" in rig.story


@pytest.mark.case("H23")
async def test_a_message_over_the_limit_ends_the_connection_and_says_why() -> None:
    fake = FakeServer()
    async with behind(SocketServer(fake.serve)) as rig:
        with pytest.raises(SupervisorError, match=r"a message of it is over 100000 bytes \(max_line_bytes\)"):
            await rig.call("echo", pad="x" * 200_000)
        assert await rig.call("echo", n=1) == {"n": 1}


async def _never(event: object) -> None:
    await trio.sleep_forever()


@pytest.mark.case("H23")
async def test_a_server_that_answers_no_ping_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_S", 0.05)
    monkeypatch.setattr(websocket, "PONG_S", 0.05)
    fake = FakeServer(tools=[tool("hang")])
    server = SocketServer(fake.serve)
    async with behind(server) as rig:
        await rig.wake()
        monkeypatch.setattr(server.sockets[0], "_send", _never)
        with pytest.raises(ServerExited, match="does not answer a ping"):
            await rig.call("hang")


def stand_still(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251  (it is for blocking the loop)


async def test_a_server_that_answered_a_ping_while_the_daemon_stood_still_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "PING_S", 0.5)
    monkeypatch.setattr(websocket, "PONG_S", 1.5)
    server = SocketServer(FakeServer().serve)
    async with behind(server) as rig:
        await rig.wake()
        (socket,) = server.sockets
        send, answered = socket._send, trio.Event()

        async def answer_in_a_standstill(event: Event) -> None:
            if isinstance(event, Pong) and not answered.is_set():
                answered.set()
                stand_still(websocket.PONG_S + 0.5)
            await send(event)

        monkeypatch.setattr(socket, "_send", answer_in_a_standstill)
        await answered.wait()
        await wait_all_tasks_blocked(0.1)
        assert await rig.call("echo", n=1) == {"n": 1}
        assert rig.actor.life.incarnation == 1


@pytest.mark.parametrize(
    ("status", "words", "tries"),
    [(401, "wants a credential", 1), (404, "no MCP server at its address", 1), (503, "not available", 2)],
)
async def test_an_opening_that_is_refused_says_why(status: int, words: str, tries: int) -> None:
    server = SocketServer(FakeServer().serve, reject=status)
    async with behind(server) as rig:
        with pytest.raises(SupervisorError) as raised:
            await rig.call("echo", deadline_s=0.3 if tries == 1 else 1.5)
        error = (await rig.status()).last_error or ""
        assert words in error
        assert f"HTTP {status}" in error
        assert "sk-secret" not in error + raised.value.message
        assert raised.value.outcome == "not_sent"
    assert (len(server.requests) >= tries) if tries > 1 else (len(server.requests) == 1)


async def why_not(converse: Callable[[trio.SocketStream], Awaitable[None]]) -> str:
    """Return why a server that says this cannot be called."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, converse, 0)
        url = f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}/"
        async with before(WebSocketTransport(Remote(url=url), LIMITS)) as rig:
            with pytest.raises(SupervisorError):
                await rig.call("echo", deadline_s=1)
            error = (await rig.status()).last_error or ""
        nursery.cancel_scope.cancel()
    return error


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "does not answer as a WebSocket does"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", r"HTTP 200|does not answer as a WebSocket does"),
        (b"\x16\x03\x01nonsense\r\n\r\n", "WebSocket"),
        (b"HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n" + b"fff\r\n" + b"x" * 4095 + b"\r\n", "WebSocket"),
    ],
)
async def test_what_is_no_websocket_is_said_to_be_none(answer: bytes, words: str) -> None:
    async def converse(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(answer)
        await stream.send_eof()
        await trio.sleep(0.2)

    assert re.search(words, await why_not(converse))


@pytest.mark.case("H01")
@pytest.mark.parametrize(
    ("url", "words"), [("ws://127.0.0.1:9/", "Connection refused"), ("wss://nowhere.invalid/", "looked up")]
)
async def test_a_server_that_is_away_is_told_to_be(url: str, words: str) -> None:
    async with before(WebSocketTransport(Remote(url=url), LIMITS)) as rig:
        with pytest.raises(SupervisorError):
            await rig.call("echo", deadline_s=1)
        while not (error := (await rig.status()).last_error):
            await rig.told.wait()
        assert words in error


async def test_a_server_that_speaks_no_tls_is_told_to() -> None:
    server = SocketServer(FakeServer().serve)
    async with server.running():
        remote = Remote(url=server.url.replace("ws:", "wss:"))
        async with before(WebSocketTransport(remote, LIMITS)) as rig:
            with pytest.raises(SupervisorError):
                await rig.call("echo", deadline_s=1)
            assert "TLS" in ((await rig.status()).last_error or "")


async def test_bytes_that_never_become_a_message_end_the_connection() -> None:
    """Empty frames of a message that is never complete: each costs memory, and none counts for its size."""
    fake = FakeServer(tools=[tool("hang")])
    server = SocketServer(fake.serve)
    limits = HttpLimits(max_line_bytes=10_000, connect_timeout_s=2, stop_s=0.5)
    async with behind(server, limits=limits) as rig, trio.open_nursery() as nursery:
        await rig.wake()

        async def flood() -> None:
            await fake.called.wait()
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while True:
                    await server.sockets[0]._stream.send_all(b"\x00\x00" * 2000)

        await server.sockets[0]._stream.send_all(b"\x01\x00")
        nursery.start_soon(flood)
        with pytest.raises(ServerExited):
            await rig.call("hang")


async def test_a_large_message_arrives_whole() -> None:
    fake = FakeServer()
    text = "\u00e9" * (websocket.FRAME_CHARS + 7)
    async with behind(SocketServer(fake.serve, largest=20 * len(text)), limits=HttpLimits()) as rig:
        assert await rig.call("echo", pad=text) == {"pad": text}


async def test_a_handshake_with_what_is_not_ascii_is_a_reason_and_no_crash() -> None:
    head = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: é\r\nSec-WebSocket-Protocol: é\r\n\r\n"

    async def converse(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(head.encode())
            await stream.receive_some()

    assert "what it sends" in await why_not(converse)


@pytest.mark.parametrize("place", ["hand_on", "_cause"])
async def test_whatever_reading_raises_ends_its_connection_and_not_its_actor(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: object) -> None:
        raise ZeroDivisionError("sk-secret")

    fake = FakeServer(tools=[tool("echo"), tool("hang")])
    server = SocketServer(fake.serve)
    async with behind(server) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        with monkeypatch.context() as patch:
            patch.setattr(websocket.SocketConnection, place, raising)
            if place == "_cause":
                await server.sockets[0].aclose(1001)
            with suppress(SupervisorError):  # it may be gone already, and there again
                await rig.call("echo", n=1, deadline_s=5)
        assert await rig.call("echo", n=2) == {"n": 2}
        assert "what it sends cannot be read (ZeroDivisionError)" in " ".join(rig.story)


async def test_whatever_a_frame_raises_ends_its_connection_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def raising(*_: object) -> bytes:
        raise ZeroDivisionError("sk-secret")

    fake = FakeServer()
    async with behind(SocketServer(fake.serve)) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        with monkeypatch.context() as patch:
            patch.setattr(Meter, "receive_some", raising)  # of the next read
            with suppress(SupervisorError):
                await rig.call("echo", n=1, deadline_s=5)
            await rig.reach(State.RESPAWNING)
        assert await rig.call("echo", n=2) == {"n": 2}
        assert "what it sends cannot be read (ZeroDivisionError)" in " ".join(rig.story)


async def test_a_name_that_cannot_be_looked_up_is_a_reason_and_no_crash() -> None:
    remote = Remote(url="ws://\U0001f600.example/")
    async with before(WebSocketTransport(remote, LIMITS)) as rig:
        with pytest.raises(SupervisorError):
            await rig.call("echo", deadline_s=1)
        assert (await rig.status()).last_error == 'what is at "url" is no address'
