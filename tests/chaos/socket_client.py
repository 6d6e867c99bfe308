"""A client over one WebSocket, among those over HTTP."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import trio
from trio_websocket import ConnectionClosed, ConnectionTimeout, HandshakeError, WebSocketConnection

from actors.protocol.agreement.versions import LATEST_LEGACY
from benchmarks.client import call
from tests.chaos.answers import Json, settle
from tests.chaos.clients import ABLE, PATIENCE_S, PAUSE_S, Client, Gone, Tool
from tests.chaos.history import Request
from tests.chaos.wires import BROKEN, tear_stream
from tests.fakes.websocket_client import open_websocket


class SocketClient(Client):
    """Over one WebSocket."""

    kind = "socket"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._socket: WebSocketConnection | None = None
        self._open: dict[int, tuple[Request, trio.Event]] = {}

    async def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        while not self.over:
            try:
                async with open_websocket(self.port, "/mcp", [("authorization", f"Bearer {self.token}")]) as socket:
                    await self._live(socket, work)
            except* (*BROKEN, Gone, ConnectionClosed, ConnectionTimeout, HandshakeError):
                pass
            self._fail()
            await trio.sleep(PAUSE_S)

    async def _live(self, socket: WebSocketConnection, work: Callable[[Client], Awaitable[None]]) -> None:
        self._socket, self._torn = socket, False
        params = {
            "protocolVersion": LATEST_LEGACY,
            "capabilities": ABLE,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": next(self._ids), "method": "initialize", "params": params}
        await socket.send_message(json.dumps(hello))
        await socket.get_message()
        await socket.send_message('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, socket, nursery.cancel_scope)
            await work(self)
            nursery.cancel_scope.cancel()

    async def _hear(self, socket: WebSocketConnection, scope: trio.CancelScope) -> None:
        with suppress(ConnectionClosed, *BROKEN):
            while True:
                await self._take(json.loads(await socket.get_message()))
        self._fail()
        scope.cancel()

    async def _take(self, message: Json) -> None:
        if "method" in message and "id" in message:
            result = {"jsonrpc": "2.0", "id": message["id"], "result": self.reply(message["params"])}
            assert self._socket is not None
            await self._socket.send_message(json.dumps(result))
        elif "method" in message:
            self.overhear(message)
        elif (found := self._open.get(message.get("id"), None)) is not None:  # type: ignore[arg-type]  # any JSON
            settle(found[0], message, monotonic(), self.marks)
            found[1].set()
        else:
            self.heard.append(f"{self.user}/{self.name}: an answer to nothing asked: {str(message)[:200]}")

    def tear(self) -> None:
        self._torn = True
        if self._socket is not None:
            tear_stream(self._socket._stream)

    def _fail(self) -> None:
        closed = None if self._socket is None else self._socket.closed
        for request, event in self._open.values():
            self.end(request, "no socket" if closed is None else f"closed with {closed.code}: {closed.reason}")
            event.set()

    async def ask(self, request: Request, tool: Tool) -> None:
        assert self._socket is not None
        id_, event = next(self._ids), trio.Event()
        self._open[id_] = request, event
        try:
            await self._socket.send_message(json.dumps(call(tool, id_, "legacy")))
            with trio.move_on_after(PATIENCE_S):
                await event.wait()
        except (*BROKEN, ConnectionClosed) as error:
            self.end(request, error)
            raise Gone from None
        finally:
            # What comes later for the same id is a second answer.
            if request.how in ("gone", "left", ""):
                self._open.pop(id_, None)
