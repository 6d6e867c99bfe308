"""Bodies and messages that arrive slowly, never, or all at once: what they may cost, and who gives way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from supervisor.config import Settings
from supervisor.front.edge.budget import Budget
from supervisor.front.edge.request import HttpRequest
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer
from supervisor.front.websocket import McpWebSocket, WebSocketSettings
from supervisor.service.drain import RequestDrain
from tests.fakes.front_server import Running, frame, read_all, running, until
from tests.fakes.http_client import JSON_HEADERS, legacy, modern, modern_headers
from tests.fakes.service import FakeService, OneDoor, returning

MIB = 1024 * 1024
CLOSE = {"connection": "close"}


class Front:
    """A server, its service and its budget."""

    def __init__(self, server: Running, service: FakeService, budget: Budget) -> None:
        self.server = server
        self.service = service
        self.budget = budget

    def post(self, body: bytes, *, length: int | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{self.server.port}"]
        lines += [f"{name}: {value}" for name, value in {**JSON_HEADERS, **(headers or {})}.items()]
        lines += [f"Content-Length: {len(body) if length is None else length}", "", ""]
        return "\r\n".join(lines).encode() + body

    async def begun(self, size: int) -> trio.SocketStream:
        """A connection with so much of a body of 4 MiB."""
        stream = await self.server.connect()
        await stream.send_all(self.post(b"a" * size, length=4 * MIB))
        return stream

    async def until_used(self, used: int) -> None:
        await until(lambda: self.budget.used == used)


@asynccontextmanager
async def front(
    budget: Budget | None = None, service: FakeService | None = None, **settings: Any
) -> AsyncIterator[Front]:
    service = service or FakeService(echo=returning(b"{}"))
    budget = budget or Budget()
    drain = RequestDrain(service, trio.Event())
    http = McpHttp(drain, sealer=Sealer(bytes(32)), settings=Settings(**settings), doors=OneDoor(service))
    websocket = McpWebSocket(drain, WebSocketSettings(), OneDoor(service))

    async def handler(request: HttpRequest) -> None:
        await (websocket if request.is_websocket else http).serve("", request)

    async with running(handler, drain.closing, budget=budget, **settings) as server:
        yield Front(server, service, budget)


def request(size: int) -> bytes:
    return legacy("echo", {"x": "a" * size})


@pytest.mark.case("C02")
async def test_unfinished_bodies_have_a_common_limit_and_a_client_that_sends_its_body_is_served() -> None:
    async with front(Budget(16 * MIB)) as here:
        hogs = [await here.begun(2 * MIB) for _ in range(20)]
        await until(lambda: here.budget.refused == 12)
        assert here.budget.used <= 16 * MIB
        for size in (10, 100_000, 3 * MIB):
            found = await here.server.exchange(here.post(request(size), headers=CLOSE))
            assert found.startswith(b"HTTP/1.1 200")
        told = await read_all(hogs[0])
        assert told.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in told
        assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["data"]["type"] == "overloaded"
        for hog in hogs:
            await hog.aclose()
        await here.until_used(0)


async def test_a_body_counts_until_its_request_is_answered() -> None:
    release = trio.Event()

    async def hold(client: Any, params: Any) -> bytes:
        await release.wait()
        return b"{}"

    async with front(service=FakeService(hold=hold)) as here, await here.server.connect() as stream:
        await stream.send_all(here.post(legacy("hold", {"x": "a" * MIB}), headers=CLOSE))
        await until(lambda: here.service.asked)
        assert MIB * 0.9 < here.budget.used < MIB
        release.set()
        assert (await read_all(stream)).startswith(b"HTTP/1.1 200")
        await here.until_used(0)


async def test_a_refusal_in_the_middle_of_a_body_reaches_the_client() -> None:
    async with front(max_body_bytes=100_000) as here, await here.server.connect() as stream:
        await stream.send_all(here.post(b"", length=200_000))
        with trio.move_on_after(0.2):
            await stream.send_all(b"a" * 200_000)
        assert b"too_large" in await read_all(stream)


async def upgraded(here: Front) -> trio.SocketStream:
    stream = await here.server.connect()
    await stream.send_all(here.server.upgrade())
    assert b" 101 " in await stream.receive_some(4096)
    return stream


async def test_unfinished_websocket_messages_count_in_the_same_limit() -> None:
    async with front(Budget(2 * MIB)) as here:
        part = frame(b"a" * 900_000, opcode=0x01)
        first = await upgraded(here)
        await first.send_all(part)
        await here.until_used(900_000 - 65536)
        others = [await upgraded(here) for _ in range(2)]
        for other in others:
            await other.send_all(part)
        assert b"\x03\xf5the daemon is busy" in await read_all(first)
        await here.until_used(2 * (900_000 - 65536))
        for stream in (first, *others):
            await stream.aclose()
        await here.until_used(0)


async def test_a_websocket_message_that_stops_half_way_is_given_up() -> None:
    async with front(body_timeout_s=0.1) as here, await upgraded(here) as stream:
        await stream.send_all(frame(b"a", opcode=0x01))
        assert b"\x03\xf0a message did not arrive within 0.1 s" in await read_all(stream)


async def test_a_client_that_left_is_noticed_whatever_it_sent_behind_its_request() -> None:
    for behind in (b"x", b"\r\n", b"a" * 10_000, b"GET / HTTP/1.1\r\n" * 4000):
        gone = trio.Event()

        async def hold(client: Any, params: Any, gone: trio.Event = gone) -> bytes:
            try:
                await trio.sleep_forever()
            finally:
                gone.set()

        async with front(service=FakeService(hold=hold)) as here:
            headers = modern_headers("hold")
            async with await here.server.connect() as stream:
                await stream.send_all(here.post(modern("hold"), headers=headers) + behind)
                await until(lambda: here.service.asked)
            with trio.fail_after(30):
                await gone.wait()
            await wait_all_tasks_blocked(0.01)
            assert here.server.counters.open == 0
