"""A server actor before a server that listens: with this the tests of HTTP, HTTP+SSE and WebSockets begin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from actors.protocol.agreement.versions import Era
from actors.transport.base import Transport
from actors.transport.http.remote import HttpKind, HttpLimits, Remote
from actors.transport.http.transport import HttpTransport
from actors.transport.websocket import WebSocketTransport
from tests.actors.server.rig import Rig, running_server
from tests.fakes.remote_server import RemoteServer
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer

LIMITS = HttpLimits(max_line_bytes=100_000, max_event_bytes=100_000, connect_timeout_s=2, stop_s=0.5)
CREDENTIAL = {"authorization": "Bearer t"}


@asynccontextmanager
async def before(
    transport: Transport, *, within_s: float = 30, era: Era | None = None, **how: Any
) -> AsyncIterator[Rig]:
    """An actor whose server is behind this transport, stopped at the end; `how` is for `running_server`."""
    with trio.fail_after(within_s):
        async with running_server(transport=transport, era=era, **how) as rig:
            yield rig
            await rig.stop()


@asynccontextmanager
async def behind(
    server: RemoteServer | SseServer | SocketServer,
    kind: HttpKind = "http",
    *,
    limits: HttpLimits = LIMITS,
    headers: dict[str, str] | None = None,
    **how: Any,
) -> AsyncIterator[Rig]:
    """An actor before this server, which listens for the block. `kind` is what the server is said to speak."""
    async with server.running():
        remote = Remote(url=server.url, headers=CREDENTIAL if headers is None else headers)
        transport: Transport = (
            WebSocketTransport(remote, limits)
            if isinstance(server, SocketServer)
            else HttpTransport(remote, limits, kind)
        )
        async with before(transport, **how) as rig:
            yield rig
