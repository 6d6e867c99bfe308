"""The two doors of the front for clients, HTTP and WebSocket, in memory: the same message goes through both."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.front.edge.budget import Budget
from supervisor.front.edge.websocket import WebSocket
from supervisor.front.edge.wire import Leaving
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer
from supervisor.front.websocket import McpSocket, WebSocketSettings
from supervisor.service.asking.exchange import Exchange as ServiceExchange
from supervisor.service.drain import RequestDrain
from tests.fakes.http_client import JSON_HEADERS, Exchange, fetch, legacy
from tests.fakes.service import FakeService, OneDoor

CLIENT = {"name": "both", "version": "1"}


class Everything(FakeService):
    """Performs every method: the result names it."""

    async def perform(self, exchange: ServiceExchange) -> bytes:
        if exchange.method == "initialize":
            return self.initialize(exchange.client.version)
        client = msgspec.structs.replace(exchange.client, session=None)
        self.asked.append((client, exchange.method, bytes(exchange.params)))
        await trio.lowlevel.checkpoint()
        return msgspec.json.encode({"performed": exchange.method})


def initialize(version: str) -> bytes:
    """The request that opens a session."""
    return legacy("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}, id_="open")


class HttpDoor:
    """A client of the HTTP front, in a session."""

    def __init__(self) -> None:
        self.service = Everything()
        self._app = McpHttp(
            RequestDrain(self.service, trio.Event()), sealer=Sealer(b"k" * 32), doors=OneDoor(self.service)
        )
        self._token = ""

    async def open(self, version: str) -> None:
        answer = await self.post(initialize(version))
        self._token = answer.headers["mcp-session-id"]

    async def post(self, message: bytes, **headers: str) -> Exchange:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        session = {"mcp-session-id": self._token} if self._token else {}
        return await fetch(self._app, "POST", {**JSON_HEADERS, **session, **named}, message)


class WebSocketDoor:
    """A client of the WebSocket front: one connection, which has a session. It is its own end of the socket, too."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings) -> None:
        self._drain = drain
        self._settings = settings
        self._texts: deque[str] = deque()
        self._sent: list[Any] = []
        self._moved = trio.lowlevel.ParkingLot()
        self._marks = 0
        self.leaving = Leaving()
        self.budget = Budget()

    async def run(self) -> None:
        await McpSocket(self._drain, self._settings, cast("WebSocket", self)).run()

    async def receive(self) -> str:
        await trio.lowlevel.checkpoint()
        while not self._texts:
            await self._moved.park()
        return self._texts.popleft()

    async def send(self, text: str) -> None:
        await trio.lowlevel.checkpoint()
        self._sent.append(msgspec.json.decode(text))
        self._moved.unpark_all()

    async def pings(self) -> None:
        await trio.sleep_forever()

    async def close(self, code: int, reason: str = "") -> None:
        raise AssertionError(f"closed with {code}: {reason}")

    async def give(self, message: bytes) -> list[Any]:
        """Send a message; return what is answered to it."""
        self._marks += 1
        mark = {"jsonrpc": "2.0", "id": f"mark {self._marks}", "result": {}}
        for text in (message.decode(), legacy("ping", id_=mark["id"]).decode()):
            self._texts.append(text)
        self._moved.unpark_all()
        with trio.fail_after(30):
            while mark not in self._sent:
                await self._moved.park()
        await wait_all_tasks_blocked()  # what it has begun is performed
        answers, self._sent = [one for one in self._sent if one != mark], []
        return answers


@asynccontextmanager
async def websocket_door(service: FakeService, version: str | None) -> AsyncIterator[WebSocketDoor]:
    """A connection for the block, with a session of this version if there is one."""
    settings = WebSocketSettings()
    door = WebSocketDoor(RequestDrain(service, trio.Event()), settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.run)
        if version is not None:
            (opened,) = await door.give(initialize(version))
            assert opened["result"]["protocolVersion"] == version
        yield door
        nursery.cancel_scope.cancel()
