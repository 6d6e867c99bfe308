"""Calls that go on beside what a goal does, of clients of both eras and over a WebSocket, and what became of each."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio

from benchmarks.table import percentile
from tests.chaos.clients import Client, Gone, HttpClient, ModernClient, Tool
from tests.chaos.history import USERS, Request
from tests.chaos.socket_client import SocketClient

LIMIT_S: Final = 60.0
END_S: Final = 90.0
ANY: Final = "any"
"""A token where the daemon asks for none."""
KINDS: Final[tuple[type[Client], ...]] = (HttpClient, ModernClient, SocketClient)


class Calls:
    """Calls of `echo`, `per_s` a second together, at these servers. Each says whose it is, and so must its answer."""

    def __init__(self, port: int, servers: Sequence[str], per_s: float, side_by_side: int = 3) -> None:
        self.requests: list[Request] = []
        self.heard: list[str] = []
        self._port = port
        self._servers = servers
        self._luck = random.Random(1)
        self._side_by_side = side_by_side
        self._pause_s = len(KINDS) * side_by_side / per_s
        self._over = False
        self._clients: list[Client] = []
        self._scope = trio.CancelScope()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Call during the block; at its end what is asked is waited for."""
        clients: list[Client] = [
            kind(user, number, ANY, self._port, (), self.heard)
            for number, (user, kind) in enumerate(zip(USERS, KINDS, strict=False))
        ]
        try:
            async with trio.open_nursery() as nursery:
                for client in clients:
                    nursery.start_soon(client.run, self._work)
                self._clients, self._scope = clients, nursery.cancel_scope
                yield
                self.end(END_S)
        finally:
            for client in clients:  # whoever was given up has its connections still
                client.tear()

    def end(self, within_s: float = 0.0) -> None:
        """Call no more, and wait no longer than this for what is asked."""
        self._over = True
        for client in self._clients:
            client.over = True
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + within_s)

    async def _work(self, client: Client) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(self._side_by_side):
                nursery.start_soon(self._call_for_ever, client)

    async def _call_for_ever(self, client: Client) -> None:
        while not self._over:
            await trio.sleep(self._luck.expovariate(1 / self._pause_s))
            request = self._request(client, self._luck.choice(self._servers))
            await client.ask(request, _call(request, "echo", {}))

    def _request(self, client: Client, server: str) -> Request:
        request = Request(key=client.key(), server=server, asked_s=monotonic(), limit_s=LIMIT_S)
        self.requests.append(request)
        return request

    async def one(self, server: str, tool: str = "echo", **arguments: Any) -> Request:
        """Make one call beside the others, as a client of its own."""
        client = self._stranger()
        request = self._request(client, server)
        await _once(client, request, tool, arguments)
        return request

    def begin(self, nursery: trio.Nursery, server: str, tool: str = "echo", **arguments: Any) -> Request:
        """Begin one; it is over when the nursery is left."""
        client = self._stranger()
        request = self._request(client, server)
        nursery.start_soon(_once, client, request, tool, arguments)
        return request

    def _stranger(self) -> ModernClient:
        return ModernClient(USERS[-1], len(self.requests), ANY, self._port, (), self.heard)

    # What became of them ----------------------------------------------------------------------------------------------

    def lost(self) -> int:
        """Return how many have no answer, though their client waited for it."""
        return sum(each.answers == 0 for each in self.requests)

    def misdelivered(self) -> int:
        """Return how many were told what is somebody else's, or got a result that is not theirs."""
        return len(self.heard) + sum(
            bool(each.foreign) or (each.how == "result" and not each.own) for each in self.requests
        )

    def failed(self, server: str) -> list[Request]:
        """Return the calls of a server that have no result."""
        return [each for each in self.requests if each.server == server and each.how != "result"]

    def p99_ms(self, server: str) -> float:
        """Return the 99th percentile of the calls of a server; 0 without any."""
        took = [each.ended_s - each.asked_s for each in self.requests if each.server == server and each.ended_s]
        return 1000 * percentile(took, 0.99) if took else 0.0


def _call(request: Request, tool: str, arguments: dict[str, Any]) -> Tool:
    given = {"text": request.key, **arguments}
    return "execute_mcp_tool", {"tool_path": f"{request.server}:{tool}", "arguments": given}


async def _once(client: Client, request: Request, tool: str, arguments: dict[str, Any]) -> None:
    try:
        with suppress(Gone):
            await client.ask(request, _call(request, tool, arguments))
    finally:
        client.tear()


class Ran:
    """What the ledger of the servers says: how often each request ran, and how often each server was started."""

    def __init__(self, ledger: Path) -> None:
        self.times: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()
        self.processes: dict[str, int] = {}
        for text in ledger.read_text().splitlines() if ledger.exists() else ():
            entry = json.loads(text)
            if entry["what"] == "run":
                self.times[entry["key"]] += 1
            else:
                self.starts[entry["server"]] += 1
                self.processes[entry["server"]] = entry["pid"]

    def twice(self) -> int:
        """Return how many requests ran more than once."""
        return sum(times > 1 for times in self.times.values())
