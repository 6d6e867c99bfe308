"""Reads what happens in a daemon, as an event stream or over a WebSocket, by a socket of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio
from trio_websocket import WebSocketConnection

from tests.fakes.websocket_client import open_websocket

PATIENCE_S = 60.0
"""What is quiet for so long is a failure."""


class EventReader:
    """Events as (id, type, data); `seen` are those of which these are parts, and `last` is the id of the last one."""

    def __init__(self) -> None:
        self.last = ""
        self.seen: list[dict[str, Any]] = []

    async def next(self) -> tuple[str, str, Any]:
        raise NotImplementedError

    async def where(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next event that is wanted, whole."""
        while True:
            _, _, told = await self.next()
            if wanted(told):
                return dict(told)

    async def state(self, server: str, state: str) -> dict[str, Any]:
        """Wait until a server enters a state, and return the data of that."""
        return await self.until("mcp.server.status_changed", server_slug=server, state=state)

    async def until(self, event: str, **data: Any) -> dict[str, Any]:
        """Return the data of the next event of a kind that has these."""
        while True:
            _, name, told = await self.next()
            members: dict[str, Any] = told.get("data", told)
            if name == event and all(members.get(key) == value for key, value in data.items()):
                return members


class SocketReader(EventReader):
    """One WebSocket."""

    def __init__(self, socket: WebSocketConnection) -> None:
        super().__init__()
        self._socket = socket

    async def next(self) -> tuple[str, str, Any]:
        with trio.fail_after(PATIENCE_S):
            told = json.loads(await self._socket.get_message())
        self.seen.append(told)
        self.last = told["id"]
        return told["id"], told["type"], told


class StreamReader(EventReader):
    """One stream: `status` and `headers` of its answer, then its frames."""

    def __init__(self, stream: trio.SocketStream) -> None:
        super().__init__()
        self._stream = stream
        self._buffer = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.retry = ""

    async def start(self) -> None:
        first, *lines = (await self._part(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}

    async def rest(self) -> bytes:
        """Read until the other side ends it."""
        with trio.fail_after(PATIENCE_S):
            while data := await self._stream.receive_some(65536):
                self._buffer += data
        return self._buffer

    async def until_bytes(self, wanted: bytes) -> None:
        """Wait for these bytes, and go on behind them."""
        await self._part(wanted)

    async def comment(self) -> None:
        """Wait for a part that is only a comment."""
        while not (await self._part(b"\n\n")).startswith(b":"):
            pass

    async def next(self) -> tuple[str, str, Any]:
        while True:
            fields: dict[str, str] = {}
            for line in (await self._part(b"\n\n")).decode().split("\n"):
                name, _, value = line.partition(": ")
                self.retry = value if name == "retry" else self.retry
                fields[name] = value
            if "event" in fields:
                told = json.loads(fields["data"])
                self.seen.append(told)
                self.last = fields["id"]
                return fields["id"], fields["event"], told

    async def _part(self, end: bytes) -> bytes:
        with trio.fail_after(PATIENCE_S):
            while end not in self._buffer:
                data = await self._stream.receive_some(65536)
                if not data:
                    raise EOFError(self._buffer)
                self._buffer += data
        part, _, self._buffer = self._buffer.partition(end)
        return part


@asynccontextmanager
async def reading(
    url: str, path: str = "/api/events", headers: Mapping[str, str] | None = None, accept: str = "text/event-stream"
) -> AsyncIterator[StreamReader]:
    """Ask for a stream; it may be refused. HTTP/1.0 has no chunks."""
    parts = urlsplit(url)
    lines = {"host": parts.netloc, "accept": accept, **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    async with await trio.open_tcp_stream(str(parts.hostname), int(parts.port or 0)) as stream:
        await stream.send_all(f"GET {path} HTTP/1.0\r\n{head}\r\n".encode())
        reader = StreamReader(stream)
        await reader.start()
        yield reader


@asynccontextmanager
async def listening(
    url: str, path: str = "/api/events", headers: Mapping[str, str] | None = None
) -> AsyncIterator[SocketReader]:
    """Open a WebSocket; raises what it is refused with."""
    async with open_websocket(int(urlsplit(url).port or 0), path, [*(headers or {}).items()]) as socket:
        yield SocketReader(socket)
