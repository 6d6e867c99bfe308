"""An ASGI server in memory: one request at a time, its answer as it comes, and a client that can leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import trio

from supervisor.front.edge.asgi import Application
from supervisor.front.http.endpoint import McpHttp
from tests.fakes.front_server import running

JSON_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"


class Exchange:
    """One request and its answer."""

    def __init__(self, body: bytes | list[bytes], *, hold_body: bool = False) -> None:
        self._parts = [body] if isinstance(body, bytes) else list(body)
        self._hold_body = hold_body
        self._moved = trio.lowlevel.ParkingLot()
        self._gone = trio.Event()
        self._unread = b""
        self._started = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        self.comments = 0
        self.ids: list[str] = []
        self.writes = 0
        self.bodies_read = 0

    async def receive(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if self._parts:
            self.bodies_read += 1
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts) or self._hold_body}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        start = message["type"] == "http.response.start"
        assert start != self._started, "an answer has one start, and that comes first"  # heard or not
        self._started = True
        if self._gone.is_set():
            return
        if start:
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert not self.ended, "nothing comes after the end"
            self.writes += 1
            self.body += message["body"]
            self._unread += message["body"]
            self.ended = not message["more_body"]
        self._moved.unpark_all()

    def leave(self) -> None:
        """The client closes its connection."""
        self._gone.set()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    async def end(self) -> None:
        """Wait for the end of the answer."""
        with trio.fail_after(3600):
            while not self.ended:
                await self._moved.park()

    async def event(self) -> Any:
        """Wait for the next event of a stream and return its message."""
        with trio.fail_after(3600):
            while True:
                frame, separator, rest = self._unread.partition(b"\n\n")
                if not separator:
                    assert not self.ended, "the stream ended without the event"
                    await self._moved.park()
                    continue
                self._unread = rest
                if frame == b": ping":
                    self.comments += 1
                    continue
                fields = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
                if b"id" in fields:
                    self.ids.append(fields[b"id"].decode())
                if not fields[b"data"]:
                    assert int(fields[b"retry"]) > 0
                    continue
                assert fields[b"event"] == b"message"
                return msgspec.json.decode(fields[b"data"])


def scope_of(method: str, headers: Mapping[str, str] | list[tuple[str, str]], path: str = "/mcp") -> dict[str, Any]:
    lines = headers if isinstance(headers, list) else list(headers.items())
    return {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in lines],
    }


@asynccontextmanager
async def opened(
    app: Application,
    method: str,
    headers: Mapping[str, str] | list[tuple[str, str]],
    body: bytes | list[bytes] = b"",
    *,
    hold_body: bool = False,
    path: str = "/mcp",
) -> AsyncIterator[Exchange]:
    """Run one request beside the block; leaving it takes the client away and waits for the application."""
    exchange = Exchange(body, hold_body=hold_body)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app, scope_of(method, headers, path), exchange.receive, exchange.send)
        yield exchange
        exchange.leave()


async def fetch(
    app: Application,
    method: str,
    headers: Mapping[str, str] | list[tuple[str, str]],
    body: bytes | list[bytes] = b"",
    *,
    hold_body: bool = False,
    path: str = "/mcp",
) -> Exchange:
    """Run one request to the end of its answer."""
    async with opened(app, method, headers, body, hold_body=hold_body, path=path) as exchange:
        await exchange.end()
    return exchange


def legacy(method: str, params: Any = None, *, id_: Any = 1) -> bytes:
    """A request of the legacy era; `id_` None makes it a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id_ is not None:
        message["id"] = id_
    if params is not None:
        message["params"] = params
    return msgspec.json.encode(message)


def modern(method: str, params: dict[str, Any] | None = None, *, id_: Any = 1, **meta: Any) -> bytes:
    """A request of the modern era; `meta` replaces keys of `_meta`."""
    members = {"protocolVersion": MODERN, "clientCapabilities": {}, **meta}
    named = {META + name: value for name, value in members.items() if value is not None}
    return legacy(method, {**(params or {}), "_meta": named}, id_=id_)


def modern_headers(method: str, name: str | None = None, **more: str) -> dict[str, str]:
    """The headers that go with it."""
    named = {} if name is None else {"mcp-name": name}
    return {**JSON_HEADERS, "mcp-protocol-version": MODERN, "mcp-method": method, **named, **more}


@asynccontextmanager
async def serving(app: McpHttp) -> AsyncIterator[httpx2.AsyncClient]:
    """Our own server on a free port of this machine, and a client for it."""
    async with running(app) as server, trio.open_nursery() as nursery:
        nursery.start_soon(app.run)
        url = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            yield client
        nursery.cancel_scope.cancel()
