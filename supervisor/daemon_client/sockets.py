"""The WebSockets of a running daemon, as our own commands follow them: what happens, and what a server writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio
import trio_websocket

from actors.kit import first_of
from actors.kit.nursery import background
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.daemon_client.client import CONNECT_TIMEOUT_S, DaemonUnreachable, RequestRefused, base_url, decode
from supervisor.operator_pass import NoPass, Stream, authorization, challenge_in, end_of, pass_for

DISCONNECT_TIMEOUT_S = 1.0
PING_S = 20.0
"""A WebSocket that is quiet for this long is asked whether the other side still lives."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
MAX_QUEUED_MESSAGES = 256
MAX_WORDS = 300
"""Characters of a refusal that are shown."""


class Socket:
    """Messages of one WebSocket of the daemon, each a JSON object. Use `open_socket`."""

    def __init__(self, socket: trio_websocket.WebSocketConnection, url: str) -> None:
        self._socket = socket
        self._url = url

    async def send(self, message: dict[str, Any]) -> None:
        await self._socket.send_message(encode(message).decode())

    async def receive(self) -> dict[str, Any]:
        """Wait for one message, as long as the daemon answers pings. What ends it is raised by `open_socket`."""
        while True:
            with trio.move_on_after(PING_S):
                return decode(await self._socket.get_message(), dict[str, Any], self._url)
            with trio.fail_after(CONNECT_TIMEOUT_S):
                await self._socket.ping()


@asynccontextmanager
async def open_socket(url: str, path: str) -> AsyncIterator[Socket]:
    """Open a WebSocket of the daemon at `url`, in any form that `base_url` knows; as its operator if it asks for one.

    Raises `RequestRefused`; whatever else ends the connection, also inside the block, is a `DaemonUnreachable`.
    """
    url, shown = base_url(url), authorization()
    async with AsyncExitStack() as stack:
        try:
            socket = await stack.enter_async_context(_open(url, path, shown))
        except RequestRefused as refusal:
            if shown or refusal.data is None:
                raise
            try:
                shown = pass_for(refusal.data["challenge"], refusal.data["end"], "GET", refusal.data["path"])
            except NoPass as error:
                raise RequestRefused(refusal.code, str(error)) from None
            socket = await stack.enter_async_context(_open(url, path, shown))
        yield socket


@asynccontextmanager
async def _open(url: str, path: str, shown: Mapping[str, str]) -> AsyncIterator[Socket]:
    """The stream is ours because trio-websocket leaves it open when the other side refuses or closes."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise DaemonUnreachable(url, str(error)) from None
    end, whole = "", parts.path.rstrip("/") + path
    try:
        with trio.fail_after(CONNECT_TIMEOUT_S):
            stream = await _stream(parts.scheme, parts.hostname or "", port)
        try:
            end = end_of(stream)
            async with background() as nursery:
                with trio.fail_after(CONNECT_TIMEOUT_S):
                    socket = await trio_websocket.wrap_client_stream(
                        nursery,
                        stream,
                        parts.netloc,
                        whole,
                        extra_headers=[(name.encode(), value.encode()) for name, value in shown.items()],
                        message_queue_size=MAX_QUEUED_MESSAGES,
                        max_message_size=MAX_MESSAGE_BYTES,
                    )
                try:
                    yield Socket(socket, url)
                finally:
                    with trio.move_on_after(DISCONNECT_TIMEOUT_S):
                        await socket.aclose()
                    nursery.cancel_scope.cancel()
        finally:
            await trio.aclose_forcefully(stream)
    except Exception as error:  # noqa: BLE001 - what is no end of the connection is raised as it is
        raise _translate(first_of(error), url, end, whole.partition("?")[0]) from None


async def _stream(scheme: str, host: str, port: int) -> Stream:
    if scheme == "https":
        return await trio.open_ssl_over_tcp_stream(host, port, https_compatible=True)
    return await trio.open_tcp_stream(host, port)


def _translate(error: BaseException, url: str, end: str, path: str) -> BaseException:
    """Return the end of a connection as `DaemonUnreachable`, anything else as it is."""
    match error:
        case trio_websocket.ConnectionRejected():
            said = json.text_at(error.body or b"", "error", "message")[:MAX_WORDS]
            challenge = challenge_in(error.body or b"")
            if said:
                asked = None if challenge is None else {"challenge": challenge, "end": end, "path": path}
                return RequestRefused(error.status_code, said, asked)
            return DaemonUnreachable(url, f"the WebSocket was refused with status {error.status_code}")
        case trio_websocket.ConnectionClosed():
            code = getattr(error.reason, "code", None)
            return DaemonUnreachable(url, "the connection ended" + (f" with code {code}" if code else ""))
        case trio.TooSlowError():
            return DaemonUnreachable(url, f"no answer within {CONNECT_TIMEOUT_S:g} s")
        case OSError() | trio_websocket.HandshakeError():
            return DaemonUnreachable(url, str(error) or type(error).__name__)
    return error
