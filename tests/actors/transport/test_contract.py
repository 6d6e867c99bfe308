"""One contract for every transport (`actors/transport/base.py`): the same server behind each of them.

The server is written twice, as an async function and as a script. What holds only where messages share one pipe is in
`test_connection.py`, what a transport does about faults in its own tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
import trio

from actors.errors import ServerExited
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Connection, Exit, Incoming, Transport
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from actors.transport.stdio.command import Launch, ProcessLimits
from actors.transport.stdio.process import ProcessTransport
from actors.transport.websocket import WebSocketTransport
from tests.fakes.lines import Lines, line
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.fakes.remote_server import RemoteServer
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer

PATIENCE_S = 60.0
LIMITS = HttpLimits(connect_timeout_s=5.0, stop_s=1.0)
MODERN, LEGACY = "2026-07-28", "2025-11-25"
SCRIPT = """
import json, os
rest = b""
while data := os.read(0, 65536):
    *lines, rest = (rest + data).split(b"\\n")
    for line in lines:
        message = json.loads(line)
        if "id" in message and message["method"] != "hang":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"of": message["method"]}}
            os.write(1, json.dumps(answer).encode() + b"\\n")
"""


async def serve(peer: MemoryPeer) -> int:
    """Answer every request but `hang`."""
    lines = Lines(peer)
    with suppress(trio.BrokenResourceError):
        while (arrived := await lines.read()) is not None:
            for message in map(json.loads, arrived):
                if "id" in message and message["method"] != "hang":
                    await peer.write(line(id=message["id"], result={"of": message["method"]}))
    return 0


def in_memory() -> Transport:
    return MemoryTransport(serve, stop_s=0.2)


def as_process() -> Transport:
    launch = Launch(command=sys.executable, args=("-I", "-S", "-c", SCRIPT))
    return ProcessTransport(launch, ProcessLimits(stop_eof_s=5.0, stop_term_s=0.1))


@dataclass
class Behind:
    """A transport whose server listens for as long as a connection is open."""

    server: RemoteServer | SseServer | SocketServer
    transport: Callable[[Remote], Transport]
    kind: str

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with self.server.running() as server:
            transport = self.transport(Remote(url=server.url))
            async with transport.connect() as connection:
                yield connection


def over_http(*, modern: bool = False, plain: bool = False) -> Transport:
    return Behind(RemoteServer(serve, modern=modern, plain=plain), lambda at: HttpTransport(at, LIMITS), "http")


def over_sse() -> Transport:
    return Behind(SseServer(serve), lambda at: HttpTransport(at, LIMITS, "sse"), "sse")


def over_websocket() -> Transport:
    return Behind(SocketServer(serve), lambda at: WebSocketTransport(at, LIMITS), "websocket")


@dataclass
class Row:
    """One transport. `shared`: all messages share one stream. `ordered`: they arrive in the order they were sent."""

    make: Callable[[], Transport]
    version: str = LEGACY
    shared: bool = True
    ordered: bool = True

    def request(self, id_: str, method: str = "m") -> Outgoing:
        text = line(id=id_, method=method, params={})
        version = "" if method == "initialize" else self.version
        return Outgoing(parts=(text[:9], text[9:-1]), id=json.dumps(id_).encode(), method=method, version=version)

    def notification(self, method: str, cancels: str = "") -> Outgoing:
        id_ = json.dumps(cancels).encode() if cancels else b""
        text = line(method=method, params={"requestId": cancels} if cancels else {})
        return Outgoing(parts=(text[:-1],), method=method, version=self.version, cancels=id_)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """A connection whose greeting is done."""
        opened: AbstractAsyncContextManager[Connection] = self.make().connect()
        with trio.fail_after(PATIENCE_S):
            async with opened as connection:
                modern = self.version == MODERN
                await say(connection, self.request("greeting", "server/discover" if modern else "initialize"))
                assert await answers(connection, 1) == ["greeting"]
                if not modern:
                    await say(connection, self.notification("notifications/initialized"))
                yield connection


every_transport = pytest.mark.parametrize(
    "row",
    [
        pytest.param(Row(in_memory), id="memory"),
        pytest.param(Row(as_process), id="process", marks=pytest.mark.process),
        pytest.param(Row(over_http, shared=False, ordered=False), id="http-legacy"),
        pytest.param(Row(lambda: over_http(plain=True), shared=False, ordered=False), id="http-json"),
        pytest.param(Row(lambda: over_http(modern=True), MODERN, shared=False, ordered=False), id="http-modern"),
        pytest.param(Row(over_sse, ordered=False), id="sse"),
        pytest.param(Row(over_websocket), id="websocket"),
        pytest.param(Row(over_websocket, MODERN), id="websocket-modern"),
    ],
)


async def say(connection: Connection, *messages: Outgoing) -> int:
    """Send messages; return of how many it was told that they may have left."""
    left: list[int] = []
    assert await connection.send(messages, left.append)
    return sum(left)


async def arrivals(connection: Connection, count: int) -> list[Incoming]:
    """Return so many things that bring an answer."""
    arrived: list[Incoming] = []
    while sum(len(each.lines) for each in arrived) < count:
        incoming = await connection.receive()
        assert incoming.lines or incoming.failure is not None, "it has ended"
        if incoming.lines:
            arrived.append(incoming)
    return arrived


async def answers(connection: Connection, count: int) -> list[str]:
    """Return the ids of the next answers."""
    lines = [each for incoming in await arrivals(connection, count) for each in incoming.lines]
    return [json.loads(each)["id"] for each in lines if isinstance(each, bytes)]


@every_transport
async def test_every_request_is_answered_once_and_all_is_counted(row: Row) -> None:
    async with row.connected() as connection:
        ids = [f"n{number}" for number in range(20)]
        assert await say(connection, *(row.request(id_) for id_ in ids)) == 20
        answered = await answers(connection, 20)
        assert (answered if row.ordered else sorted(answered)) == (ids if row.ordered else sorted(ids))
        assert connection.counters.messages_received == 21


@every_transport
async def test_an_answer_says_on_whose_stream_it_came_where_requests_have_their_own(row: Row) -> None:
    async with row.connected() as connection:
        await say(connection, row.request("a"))
        (arrival,) = await arrivals(connection, 1)
        assert arrival.stream == (b"" if row.shared else b'"a"')


@every_transport
async def test_a_request_that_is_not_answered_holds_up_no_other(row: Row) -> None:
    async with row.connected() as connection:
        await say(connection, row.request("h", "hang"), row.request("a"))
        assert await answers(connection, 1) == ["a"]


@every_transport
async def test_what_takes_a_request_back_leaves_the_connection_as_it_is(row: Row) -> None:
    async with row.connected() as connection:
        await say(connection, row.request("h", "hang"))
        assert await say(connection, row.notification("notifications/cancelled", "h"), row.request("a")) == 2
        assert await answers(connection, 1) == ["a"]


@every_transport
async def test_a_stop_is_polite_and_told_to_everyone_who_waits(row: Row) -> None:
    async with row.connected() as connection, trio.open_nursery() as nursery:
        exits: list[Exit] = []

        async def watch(closed: bool) -> None:
            if closed:
                await connection.wait_input_closed()
            exits.append(await connection.wait())

        nursery.start_soon(watch, True)
        nursery.start_soon(watch, False)
        await connection.stop()
        await connection.stop()
        exits.append(await connection.wait())
    assert len(exits) == 3
    assert all(exit_.asked and exit_ == exits[0] and not exit_.renewable for exit_ in exits)


@every_transport
async def test_nothing_comes_from_and_nothing_goes_to_what_has_ended(row: Row) -> None:
    async with row.connected() as connection:
        await connection.stop()
        await connection.wait()
        for _ in range(2):
            while (incoming := await connection.receive()) != Incoming():
                assert incoming.failure is not None
        with pytest.raises(ServerExited):
            await say(connection, row.request("a"))


@every_transport
async def test_a_kill_does_not_wait_and_ends_everything(row: Row) -> None:
    async with row.connected() as connection:
        await say(connection, row.request("h", "hang"))
        connection.kill()
        connection.kill()
        assert (await connection.wait()).asked
        while (await connection.receive()) != Incoming():
            pass


@every_transport
async def test_leaving_the_block_ends_it_also_by_an_error_which_stays_as_it_is(row: Row) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with row.connected() as connection:
            raise KeyError("mine")
    with trio.fail_after(PATIENCE_S):
        await connection.wait()


@every_transport
async def test_leaving_the_block_by_cancellation_ends_it(row: Row) -> None:
    with trio.CancelScope() as scope:
        async with row.connected() as connection:
            await say(connection, row.request("h", "hang"))
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    with trio.fail_after(PATIENCE_S):
        await connection.wait()


@every_transport
async def test_each_connection_is_a_new_incarnation(row: Row) -> None:
    async with row.connected() as first, row.connected() as second:
        await say(first, row.request("a"))
        await say(second, row.request("b"))
        assert await answers(first, 1) == ["a"]
        assert await answers(second, 1) == ["b"]
        first.kill()
        await say(second, row.request("c"))
        assert await answers(second, 1) == ["c"]
        assert first.pid != second.pid or first.pid is None


@every_transport
async def test_a_message_may_be_any_json_on_any_number_of_lines(row: Row) -> None:
    async with row.connected() as connection:
        text = b'{\r\n"jsonrpc" : "2.0",\n"id":"a",\n"method":"m","params":{"a":"\xc3\xa9\\u0000","b":1e400}}'
        await say(connection, Outgoing(parts=(text,), id=b'"a"', method="m", version=row.version))
        assert await answers(connection, 1) == ["a"]


@every_transport
async def test_what_it_is_doing_may_be_asked_at_any_time(row: Row) -> None:
    async with row.connected() as connection:
        await connection.work()
        assert connection.asides.last_stderr(20) == ""
        await connection.stop()
        await connection.work()
