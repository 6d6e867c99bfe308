"""Clients of a daemon in chaos: each is one user, calls side by side, records what it was told, and comes back.

All of them use the same JSON-RPC ids, and what they send says whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from time import monotonic
from typing import Any

import trio

from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN
from benchmarks.client import ACCEPT, call, said_each_time
from tests.chaos.answers import REFUSING, Json, refuse, settle
from tests.chaos.history import Request, foreign_in
from tests.chaos.wires import BROKEN, HttpWire

ABLE: Json = {"elicitation": {"form": {}}}
PAUSE_S = 0.1
"""Before it connects again."""
MAX_ROUNDS = 4
PATIENCE_S = 90.0
"""A client that hears nothing for so long says so, and goes on: the answer is lost."""

Tool = tuple[str, Json]


class Gone(Exception):
    """The connection, or the session, is no more."""


class Client:
    """One client. `heard` gets what it was told besides answers and must not have been."""

    kind = ""

    def __init__(self, user: str, number: int, token: str, port: int, marks: Sequence[str], heard: list[str]) -> None:
        self.user = user
        self.name = f"{self.kind}{number}"
        self.token = token
        self.port = port
        self.marks = marks
        self.heard = heard
        self.over = False
        self._torn = False
        self._ids = count()
        self._numbers = count()

    def key(self) -> str:
        return f"{self.user}/{self.name}/{next(self._numbers)}"

    @property
    def shown(self) -> dict[str, str]:
        return {**ACCEPT, "authorization": f"Bearer {self.token}"}

    async def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        """Connect, have `work` make calls until the connection ends, and begin again, until it is `over`."""
        raise NotImplementedError

    async def ask(self, request: Request, tool: Tool) -> None:
        """Make one call and note how it ended. Raises `Gone`."""
        raise NotImplementedError

    def tear(self) -> None:
        """Go away in the middle of everything."""
        raise NotImplementedError

    def end(self, request: Request, why: object) -> None:
        """Note that the connection of a request is no more."""
        if not request.answers:
            request.how = "left" if self._torn else "gone"
            request.ended_s = monotonic()
            request.text = repr(why)[:200]

    def overhear(self, message: Json) -> None:
        """Look at what is told besides answers."""
        if found := foreign_in(json.dumps(message), "", (*self.marks,)):
            others = [each for each in found if not each.startswith(f"{self.user}/")]
            if others:
                self.heard.append(f"{self.user}/{self.name} heard of {', '.join(others)}: {str(message)[:200]}")

    def reply(self, question: Json) -> Json:
        """Answer what a server asks during a call."""
        self.overhear(question)
        return {"action": "accept", "content": {"who": self.user}}


class HttpClient(Client):
    """Over HTTP, in the legacy era with a session."""

    kind = "legacy"
    era: Any = "legacy"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._session = ""
        self._wires: set[HttpWire] = set()
        self._free: list[HttpWire] = []

    @property
    def headers(self) -> dict[str, str]:
        session = {"mcp-session-id": self._session} if self._session else {}
        return {**self.shown, "mcp-protocol-version": LATEST_LEGACY, **session}

    async def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        while not self.over:
            self._torn = False
            try:
                await self._greet()
                await work(self)
            except* (*BROKEN, Gone):
                pass
            self._drop()
            await trio.sleep(PAUSE_S)

    async def _greet(self) -> None:
        self._session = ""
        params = {
            "protocolVersion": LATEST_LEGACY,
            "capabilities": ABLE,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        wire = await self._wire()
        await wire.post(
            "/mcp", self.headers, {"jsonrpc": "2.0", "id": next(self._ids), "method": "initialize", "params": params}
        )
        await wire.read()
        self._session = wire.headers.get("mcp-session-id", "")
        await self._release(wire)
        if not self._session:
            raise Gone

    def tear(self) -> None:
        self._torn = True
        self._drop()

    def _drop(self) -> None:
        for wire in self._wires:
            wire.tear()
        self._wires.clear()
        self._free.clear()

    async def _wire(self) -> HttpWire:
        while self._free:
            if (wire := self._free.pop()).reusable:
                return wire
            self._wires.discard(wire)
            await wire.aclose()
        wire = await HttpWire.opened(self.port)
        self._wires.add(wire)
        return wire

    async def _release(self, wire: HttpWire) -> None:
        if wire.reusable and wire in self._wires:
            self._free.append(wire)
        else:
            self._wires.discard(wire)
            await wire.aclose()

    def said(self, tool: Tool, more: Json) -> tuple[Json, dict[str, str]]:
        """Return the message of a call, and its headers."""
        return call(tool, next(self._ids), self.era), self.headers

    async def ask(self, request: Request, tool: Tool) -> None:
        more: Json = {}
        for _ in range(MAX_ROUNDS):
            message, headers = self.said(tool, more)
            try:
                wire = await self._wire()
                with trio.move_on_after(PATIENCE_S):
                    await wire.post("/mcp", headers, message)
                    answer = await self._heard(wire, request, message["id"])
                await self._release(wire)
            except BROKEN as error:
                self.end(request, error)
                raise Gone from None
            result = answer.get("result") if isinstance(answer, dict) else None
            if not (isinstance(result, dict) and "inputRequests" in result):
                return
            replies = {name: self.reply(each["params"]) for name, each in result["inputRequests"].items()}
            more = {"inputResponses": replies, "requestState": result.get("requestState")}

    async def _heard(self, wire: HttpWire, request: Request, id_: Any) -> Any:
        if wire.status != 200 and not wire.headers.get("content-type", "").startswith("application/json"):
            refuse(request, wire.status, await wire.read(), monotonic())
            return None
        found: Any = None
        async for message in wire.messages():
            if "method" in message and "id" in message:
                await self._tell({"jsonrpc": "2.0", "id": message["id"], "result": self.reply(message["params"])})
            elif "method" in message:
                self.overhear(message)
            elif wire.status in REFUSING:
                refuse(request, wire.status, str(message), monotonic())
            elif "inputRequests" in message.get("result", {}):
                found = message
            elif message.get("id") == id_ or wire.status != 200:
                found = message
                settle(request, message, monotonic(), self.marks)
            else:
                self.heard.append(f"{request.key}: the answer to {message.get('id')!r}, asked was {id_!r}")
        if not request.answers and found is None:
            request.text = f"HTTP {wire.status}, {wire.headers}: nothing in it"
        if wire.status == 404:
            raise trio.BrokenResourceError("the session is over")
        return found

    async def _tell(self, message: Json) -> None:
        wire = await self._wire()
        await wire.post("/mcp", self.headers, message)
        await wire.read()
        await self._release(wire)


class ModernClient(HttpClient):
    """Over HTTP, in the modern era: without a session, it is asked by results."""

    kind = "modern"
    era = "modern"

    @property
    def headers(self) -> dict[str, str]:
        return {**self.shown, "mcp-protocol-version": LATEST_MODERN}

    async def _greet(self) -> None:
        await trio.lowlevel.checkpoint()

    def said(self, tool: Tool, more: Json) -> tuple[Json, dict[str, str]]:
        params = {"name": tool[0], "arguments": tool[1], "_meta": said_each_time(ABLE), **more}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        return message, {**self.headers, "mcp-method": "tools/call", "mcp-name": tool[0]}
