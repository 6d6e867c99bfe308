"""A client over WebSocket that leaves nothing open, whoever closes first."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio
from trio_websocket import WebSocketConnection, wrap_client_stream


@asynccontextmanager
async def open_websocket(
    port: int,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    tls: ssl.SSLContext | None = None,
    subprotocols: Sequence[str] = (),
) -> AsyncIterator[WebSocketConnection]:
    """Connect to a port of this machine, by `tls` if that is given. The stream is ours, and closed at the end of the
    block: trio-websocket (0.12.2, `WebSocketConnection._aclose`) leaves it to the garbage collector when the server has
    closed first.
    """
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as nursery:
        secured = trio.SSLStream(stream, tls, server_hostname="127.0.0.1", https_compatible=True) if tls else stream
        more = [(name.encode(), value.encode()) for name, value in headers]
        host = f"127.0.0.1:{port}"
        socket = await wrap_client_stream(
            nursery, secured, host, path, subprotocols=subprotocols or None, extra_headers=more
        )
        yield socket
        await socket.aclose()
