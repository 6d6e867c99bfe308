"""The load of a chaos run: clients of several users that call without end, and single calls of the faults."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from time import monotonic
from typing import Any

import trio
from trio_websocket import ConnectionClosed, HandshakeError

from tests.chaos.clients import PAUSE_S, Client, Gone, HttpClient, ModernClient, Tool
from tests.chaos.history import USERS, History, Request, foreign_in
from tests.chaos.sdk_client import SdkClient
from tests.chaos.socket_client import SocketClient
from tests.chaos.wires import BROKEN
from tests.chaos.world import ANNEX, CALL_S, CANARIES, HEALTHY, QUESTION_S, World
from tests.e2e.test_login import Guarded
from tests.fakes.websocket_client import open_websocket

SIDE_BY_SIDE = 3
"""Calls of one client at the same time."""
END_S = 30.0
WEIGHTS = {
    HEALTHY: 30,
    "mortal": 16,
    "sleepy": 4,
    "stormy": 3,
    "asking": 3,
    "looping": 1,
    "edited": 6,
    "own": 8,
    "wild": 5,
    ANNEX: 2,
    "web": 6,
    "modern": 5,
    "sse": 5,
    "socket": 5,
    "guarded": 3,
    "time": 2,
    "extra": 2,
}
"""How often which server is called beside others."""


class Load:
    """`clients` call about `per_s` times a second together; everything that is asked is in `history`."""

    def __init__(self, world: World, history: History, seed: int, per_s: float, at: Sequence[str] = ()) -> None:
        self.world = world
        self.history = history
        self.over = False
        self.guarded: Guarded | None = None
        self.clients: list[Client] = []
        self._luck = random.Random(seed)
        self._pause_s = 0.0
        self._weights = {name: weight for name, weight in WEIGHTS.items() if name in at or not at}
        self._per_s = per_s
        self._probes = count()
        self.outcomes: Counter[str] = Counter()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Call during the block; at its end what is asked is waited for."""
        kinds: tuple[type[Client], ...] = (HttpClient, ModernClient, SocketClient)
        for user in USERS:
            for number, kind in enumerate((*kinds, SdkClient) if user == USERS[0] else kinds):
                given = (user, number, self.world.tokens[user], self.world.daemon.port)
                self.clients.append(kind(*given, self.world.marks(user), self.history.heard))
        self._pause_s = len(self.clients) * SIDE_BY_SIDE / self._per_s
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as working:
                for client in self.clients:
                    working.start_soon(client.run, self._work)
                for user in USERS:
                    nursery.start_soon(self._watch, user)
                yield
                self.over = True
                for client in self.clients:
                    client.over = True
                working.cancel_scope.deadline = trio.current_time() + END_S
            nursery.cancel_scope.cancel()

    async def _work(self, client: Client) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(1 if isinstance(client, SdkClient) else SIDE_BY_SIDE):
                nursery.start_soon(self._call_for_ever, client)

    async def _call_for_ever(self, client: Client) -> None:
        while not self.over:
            await trio.sleep(self._luck.expovariate(1 / self._pause_s))
            request, tool = self._next(client)
            await self._ask(client, request, tool)

    async def _ask(self, client: Client, request: Request, tool: Tool) -> None:
        self.history.requests.append(request)
        try:
            await client.ask(request, tool)
        except trio.Cancelled:
            if not self.over and not request.answers:  # another call of this client found that its session is over
                request.how, request.ended_s = "left", monotonic()
            raise
        finally:
            self.outcomes[f"{request.how or 'nothing'} {request.type}".strip()] += 1

    def _next(self, client: Client) -> tuple[Request, Tool]:
        if self._luck.random() < 0.08:
            return self._search(client)
        (server,) = self._luck.choices(list(self._weights), list(self._weights.values()))
        if server == ANNEX and client.user != USERS[0]:
            return self._search(client)  # who names it is told what they have said
        name = (
            "ask" if server == "asking" and self._luck.random() < 0.7 and not isinstance(client, SdkClient) else "echo"
        )
        return self.call(client, server, name)

    def _search(self, client: Client) -> tuple[Request, Tool]:
        request = Request(key=client.key(), server="", asked_s=monotonic(), limit_s=CALL_S)
        query = self._luck.choice(("echo a text", "*", ANNEX, "only one", f"what {client.user} wants"))
        return request, ("discover_mcp_tools", {"query": query})

    def call(self, client: Client, server: str, name: str, **arguments: str) -> tuple[Request, Tool]:
        """Return a call of a tool of a server, and what is noted of it."""
        key = client.key()
        text = f"{key} {'x' * self._luck.choice((0, 10, 100, 5000))}"
        limit_s = CALL_S + (2 * QUESTION_S if name == "ask" else 0.0)
        request = Request(key=key, server=server, asked_s=monotonic(), limit_s=limit_s)
        given: dict[str, Any] = {"text": text, "secret": CANARIES["argument"], **arguments}
        if server == "time":
            name, given = "get_current_time", {"timezone": "UTC"}
        return request, ("execute_mcp_tool", {"tool_path": f"{server}:{name}", "arguments": given})

    async def probe(self, server: str, name: str, **arguments: str) -> None:
        """Make one call, as a client of its own."""
        user = self._luck.choice(USERS[:-1])
        client = ModernClient(
            user,
            1000 + next(self._probes),
            self.world.tokens[user],
            self.world.daemon.port,
            self.world.marks(user),
            self.history.heard,
        )
        try:
            await self._ask(client, *self.call(client, server, name, **arguments))
        except Gone:
            pass
        finally:
            client.tear()

    async def forget(self) -> None:
        """Have the server with logins forget all access tokens."""
        if self.guarded is not None:
            await self.guarded.order("forget")

    async def _watch(self, user: str) -> None:
        """Look at everything that a user hears of what happens, for ever."""
        shown = [("authorization", f"Bearer {self.world.tokens[user]}")]
        marks = self.world.marks(user)
        while True:
            try:
                async with open_websocket(self.world.daemon.port, "/api/events", shown) as socket:
                    while True:
                        self._look(user, await socket.get_message(), marks)
            except* (*BROKEN, ConnectionClosed, HandshakeError):
                pass
            await trio.sleep(PAUSE_S)

    def _look(self, user: str, event: str | bytes, marks: tuple[str, ...]) -> None:
        text = event if isinstance(event, str) else event.decode(errors="replace")
        foreign = [each for each in foreign_in(text, "", marks) if not each.startswith(f"{user}/")]
        named = user != USERS[0] and json.loads(text).get("data", {}).get("server_slug") == ANNEX
        if foreign or named:
            self.history.heard.append(f"{user} heard of {', '.join(foreign) or ANNEX}: {text[:300]}")
