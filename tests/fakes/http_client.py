"""A client of HTTP in memory: one request at a time, its answer as it comes, and it can leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import h11
import httpx2
import msgspec
import trio

from actors.principal import LOCAL, Principal
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.fields import fields_of
from supervisor.front.edge.parser import IncomingRequest
from supervisor.front.edge.request import ClientGone, HttpRequest
from supervisor.front.edge.wire import Leaving, Wire
from supervisor.front.http.endpoint import McpHttp
from supervisor.service.doors.addresses import door_of
from tests.fakes.front_server import running

JSON_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"


class Exchange:
    """One request, its answer, and the connection between them."""

    def __init__(
        self, incoming: IncomingRequest, body: bytes | list[bytes], budget: Budget, *, hold_body: bool
    ) -> None:
        self._incoming = incoming
        self._parts = [body] if isinstance(body, bytes) else list(body)
        self._hold_body = hold_body
        incoming.complete = not any(self._parts) and not hold_body
        self._moved = trio.lowlevel.ParkingLot()
        self._unread = b""
        self._reader = h11.Connection(h11.CLIENT)
        self._reader.send(h11.Request(method=incoming.method, target="/", headers=[("host", "here")]))
        self._reader.send(h11.EndOfMessage())
        self.leaving = Leaving()
        self.context = SimpleNamespace(budget=budget, closing=trio.Event())
        self.behind = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        self.comments = 0
        self.ids: list[str] = []
        self.writes = 0
        self.bodies_read = 0

    def take(self) -> bool:
        return False

    async def more(self) -> None:
        await trio.lowlevel.checkpoint()
        if not self._parts:
            await self.leaving.wait()
            raise ClientGone
        self.bodies_read += 1
        self._incoming.parts.append(self._parts.pop(0))
        self._incoming.complete = not self._parts and not self._hold_body

    async def write(self, *parts: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self.leaving.is_set:
            return
        assert not self.ended, "nothing comes after the end"
        self._reader.receive_data(b"".join(parts))
        had = len(self.body)
        while (event := self._reader.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                self.status = event.status_code
                self.headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                self.body += event.data
                self._unread += event.data
            elif isinstance(event, h11.EndOfMessage):
                self.ended = True
                break
        self.writes += len(self.body) > had
        self._moved.unpark_all()

    def leave(self) -> None:
        """The client closes its connection."""
        self.leaving.set()

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


def _incoming(method: str, headers: Mapping[str, str] | list[tuple[str, str]], path: str) -> IncomingRequest:
    pairs = headers if isinstance(headers, list) else list(headers.items())
    lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    fields = fields_of(lines)
    length = int(fields.lines.get(b"content-length") or b"0")
    target = quote(path).encode("ascii")
    return IncomingRequest(method, target, "1.1", lines, fields, keep_alive=True, length=length, parts=[])


@asynccontextmanager
async def opened(
    app: McpHttp,
    method: str,
    headers: Mapping[str, str] | list[tuple[str, str]],
    body: bytes | list[bytes] = b"",
    *,
    hold_body: bool = False,
    path: str = "/mcp",
    budget: Budget | None = None,
    principal: Principal = LOCAL,
) -> AsyncIterator[Exchange]:
    """Run one request beside the block; leaving it takes the client away and waits for the end of the request."""
    incoming = _incoming(method, headers, path)
    exchange = Exchange(incoming, body, budget or Budget(), hold_body=hold_body)
    async with trio.open_nursery() as nursery:
        request = HttpRequest(cast("Wire", exchange), incoming)
        request.principal = principal
        nursery.start_soon(_run, app, request)
        yield exchange
        exchange.leave()


async def _run(app: McpHttp, request: HttpRequest) -> None:
    door = door_of(request.path)
    assert door is not None, request.path
    with suppress(ClientGone):
        await app.serve(door, request)
    request.release()


async def fetch(
    app: McpHttp,
    method: str,
    headers: Mapping[str, str] | list[tuple[str, str]],
    body: bytes | list[bytes] = b"",
    *,
    hold_body: bool = False,
    path: str = "/mcp",
    budget: Budget | None = None,
    principal: Principal = LOCAL,
) -> Exchange:
    """Run one request to the end of its answer."""
    more: Any = {"hold_body": hold_body, "path": path, "budget": budget, "principal": principal}
    async with opened(app, method, headers, body, **more) as exchange:
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
    async with running(partial(app.serve, "")) as server, trio.open_nursery() as nursery:
        nursery.start_soon(app.run)
        url = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            yield client
        nursery.cancel_scope.cancel()
