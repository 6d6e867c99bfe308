"""What remote servers write: heads, bodies and event streams over HTTP, frames over a WebSocket, to clients of ours.

Each runs a loop of its own in virtual time: some hundred inputs a second. What a grammar can say of this is in
tests/fuzz/grammars.py; here are the bytes in which that has not thought of something.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Awaitable, Callable
from random import Random

import trio
from trio.testing import MockClock

from actors.transport.http.remote import Remote
from actors.transport.http.transport import HttpTransport
from actors.transport.websocket import WebSocketTransport
from supervisor.bridge.relay import OtherDaemon, Relay
from tests.fuzz import cases
from tests.fuzz.cases import DEADLINE_S, HOST, LEGACY, LIMITS, MODERN
from tests.fuzz.network import Network, Serve, connected
from tests.fuzz.remote import Logged
from tests.fuzz.target import holds, parts_of


def _tried(serve: Serve, client: Callable[[], Awaitable[str]]) -> None:
    """Run a client before a server: it gets an answer or a typed failure in its time, and nothing is logged."""

    async def case() -> str:
        outcome = "late"
        async with trio.open_nursery() as nursery:
            with connected(Network(serve, Random(0), nursery)), trio.move_on_after(DEADLINE_S):
                outcome = await client()
            nursery.cancel_scope.cancel()
        return outcome

    logged, root = Logged(), logging.getLogger("actors")
    root.addHandler(logged)
    try:
        outcome = trio.run(case, clock=MockClock(autojump_threshold=0))
    finally:
        root.removeHandler(logged)
    assert outcome != "late"
    assert "silence" not in outcome
    assert logged.lines == []


def http(data: bytes) -> None:
    """Answer the requests of a client, one after the other: the first letter says which transport and revision."""
    kind, *said = parts_of(data, 5)
    answers = iter(said)
    sse, version = kind[:1] == b"s", MODERN if kind[:1] == b"m" else LEGACY

    async def client() -> str:
        transport = HttpTransport(Remote(url=f"{HOST}/mcp"), LIMITS, "sse" if sse else "http")
        return await cases.conversation(transport, version)

    _tried(lambda _: next(answers, b""), client)


def websocket(data: bytes) -> None:
    """Write frames behind a handshake, or all of it where there is a part that says so."""
    frames, handshake = parts_of(data, 2)

    def serve(request: bytes) -> bytes:
        key = cases.KEY.search(request)
        digest = base64.b64encode(hashlib.sha1((key[1] if key else b"") + cases.GUID).digest())
        head = handshake or (
            b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n"
            b"Sec-WebSocket-Protocol: mcp\r\n\r\n"
        )
        return head.replace(b"ACCEPT", digest) + frames

    async def client() -> str:
        remote = Remote(url=f"{HOST.replace('http', 'ws')}/mcp")
        return await cases.conversation(WebSocketTransport(remote, LIMITS), LEGACY)

    _tried(serve, client)


def bridge(data: bytes) -> None:
    """Pass lines between a client (`c`) and a daemon (`d`); `x` ends the connection: nothing but a typed error."""
    relay = Relay("here")
    relay.connect()
    now = 0.0
    for line in data.split(b"\n")[:60]:
        who, text = line[:1], line[1:]
        now += 1.0
        if who == b"x":
            relay.lose("it fell", now)
            relay.connect()
            continue
        try:
            relay.from_daemon(text, now) if who == b"d" else relay.from_client(text, now)
        except OtherDaemon as error:
            holds(len(str(error)) < 400)
            return
        while relay.take() is not None:
            pass
    for answer in [*relay.lose("the end", now), *relay.expire(now + 1000)]:
        assert answer[:1] in (b"{", b"[")


TARGETS = {
    "http": http,
    "websocket": websocket,
    "bridge": bridge,
}
