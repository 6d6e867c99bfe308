"""The pages of logs over the real application: of one server and of all, filtered, followed; and who sees which."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio_websocket

from actors.life.states import State
from actors.server.operators.journal import Journal
from actors.transport.redaction import Mask
from supervisor.servers.journals.journals import Journals
from supervisor.servers.journals.keeper import LogReader
from tests.fakes.clock import Clock
from tests.fakes.control import Obeys
from tests.fakes.front_server import Running, read_all
from tests.supervisor.front.pages.test_api import page, pages, status, view

SECRET = "correct-horse-battery-77"


class Kept:
    """Logs of servers in memory, and the pages of them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.journals = Journals(self.clock, now=self.clock)
        self.shown = view(status("a", State.READY), control=Obeys(), logs=LogReader(self.journals), clock=self.clock)

    def journal(self, server: str = "a", mask: Mask | None = None) -> Journal:
        return self.journals.make(server, mask or Mask({}))

    def fill(self, count: int, server: str = "a") -> Journal:
        journal = self.journal(server)
        for number in range(count):
            journal.note(f"line {number}")
        return journal


def texts(body: Any) -> list[str]:
    return [line["text"] for line in body["lines"]]


async def test_the_log_has_the_newest_lines_and_where_to_go_on() -> None:
    kept = Kept()
    kept.fill(5)
    async with pages(kept.shown) as server:
        body = await page(server, "/api/servers/a/logs?lines=2")
        assert body["lines"][-1] == {"number": 5, "time": 0.0, "source": "supervisor", "text": "line 4"}
        assert (body["newest"], texts(body), body["before"], body["complete"]) == (5, ["line 3", "line 4"], 4, True)


async def test_older_pages_lead_to_the_first_line() -> None:
    kept, seen, query = Kept(), list[str](), ""
    kept.fill(7)
    async with pages(kept.shown) as server:
        while True:
            body = await page(server, f"/api/servers/a/logs?lines=3{query}")
            seen = texts(body) + seen
            if body["before"] is None:
                break
            query = f"&before={body['before']}"
    assert seen == [f"line {number}" for number in range(7)]


async def test_a_page_has_lines_of_a_time_and_with_a_text() -> None:
    kept = Kept()
    journal = kept.journal()
    for kept.clock.now, said in ((1.0, "Error one"), (2.0, "fine"), (3.0, "an ERROR (.*)+$ two")):
        journal.overhear("stderr", said.encode() + b"\n")
    async with pages(kept.shown) as server:
        assert texts(await page(server, "/api/servers/a/logs?grep=error")) == ["Error one", "an ERROR (.*)+$ two"]
        assert texts(await page(server, "/api/servers/a/logs?since=2")) == ["fine", "an ERROR (.*)+$ two"]
        assert texts(await page(server, "/api/servers/a/logs?grep=(.*)%2B%24&since=1")) == ["an ERROR (.*)+$ two"]
        assert texts(await page(server, "/api/logs?grep=ERROR&since=2")) == ["an ERROR (.*)+$ two"]


async def test_nobody_finds_a_secret_by_guessing_it() -> None:
    kept = Kept()
    kept.journal(mask=Mask({"KEY": SECRET})).overhear("stderr", f"my key is {SECRET}\n".encode())
    async with pages(kept.shown) as server:
        for place in ("/api/servers/a/logs", "/api/logs"):
            assert texts(await page(server, f"{place}?grep={SECRET[:6]}")) == []
            assert texts(await page(server, f"{place}?grep=my+key")) == ["my key is ***"]


async def test_a_server_that_was_never_tried_has_an_empty_log() -> None:
    kept = Kept()
    async with pages(kept.shown) as server:
        body = await page(server, "/api/servers/a/logs")
        assert body == {"server": "a", "newest": 0, "lines": [], "before": None, "complete": True}
        assert texts(await page(server, "/api/logs")) == []


async def test_an_unknown_server_is_404_with_the_nearest_names() -> None:
    kept = Kept()
    async with pages(kept.shown) as server:
        found = await page(server, "/api/servers/A/logs", 404)
        assert found["error"]["data"]["nearest"] == ["a"]
        refused = await server.exchange(server.upgrade().replace(b"/ws", b"/api/servers/A/logs", 1))
        assert refused.startswith(b"HTTP/1.1 404")


async def test_all_logs_are_one_by_time() -> None:
    kept = Kept()
    first, second = kept.journal("a"), kept.journal("b")
    for kept.clock.now, journal, said in ((1.0, first, "1"), (2.0, second, "2"), (3.0, first, "3")):
        journal.note(said)
    async with pages(kept.shown) as server:
        body = await page(server, "/api/logs?lines=2")
    assert [(line["server"], line["text"]) for line in body["lines"]] == [("b", "2"), ("a", "3")]
    assert body["until"] == 3.0


# Following ------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def follower(server: Running, path: str) -> AsyncIterator[Callable[[], Any]]:
    with trio.fail_after(30):
        async with trio_websocket.open_websocket_url(f"ws://127.0.0.1:{server.port}{path}") as socket:

            async def receive() -> Any:
                return json.loads(await socket.get_message())

            yield receive


async def test_a_follower_gets_what_it_has_not_seen_and_then_each_line() -> None:
    kept = Kept()
    journal = kept.fill(3)
    async with pages(kept.shown) as server, follower(server, "/api/servers/a/logs?after=1") as receive:
        first = await receive()
        assert (first["missed"], texts(first)) == (0, ["line 1", "line 2"])
        journal.overhear("stderr", b"hello\n")
        second = await receive()
        assert [(line["source"], line["text"]) for line in second["lines"]] == [("stderr", "hello")]


async def test_a_follower_gets_the_lines_alone_that_it_wants() -> None:
    kept = Kept()
    journal = kept.fill(3)
    async with pages(kept.shown) as server, follower(server, "/api/servers/a/logs?after=0&grep=LINE+2") as receive:
        assert texts(await receive()) == ["line 2"]
        journal.note("no")
        journal.note("line 22")
        assert texts(await receive()) == ["line 22"]


async def test_all_logs_are_followed_from_a_moment_on() -> None:
    kept = Kept()
    kept.clock.now = 1.0
    first = kept.fill(2)
    kept.clock.now = 2.0
    first.note("later")
    async with pages(kept.shown) as server, follower(server, "/api/logs?after=1") as receive:
        told = await receive()
        assert (told["server"], told["missed"], texts(told)) == ("a", 0, ["later"])
        kept.clock.now = 3.0
        kept.journal("b").note("new")  # a server that comes meanwhile
        told = await receive()
        assert (told["server"], texts(told)) == ("b", ["new"])


async def test_following_ends_with_the_daemon() -> None:
    kept = Kept()
    kept.fill(1)
    async with pages(kept.shown) as server, await server.connect() as stream:
        await stream.send_all(server.upgrade().replace(b"/ws", b"/api/servers/a/logs?after=0", 1))
        data = b""
        with trio.fail_after(30):
            while b"line 0" not in data:
                data += await stream.receive_some()
            kept.shown.closing.set()
            assert b"\x03\xe9the daemon is shutting down" in await read_all(stream)


@pytest.mark.parametrize("path", [b"/api/servers/a/logs", b"/api/logs"])
async def test_a_follower_that_leaves_is_forgotten(path: bytes) -> None:
    kept = Kept()
    journal = kept.fill(1)
    async with pages(kept.shown) as server:
        async with await server.connect() as stream:
            await stream.send_all(server.upgrade().replace(b"/ws", path, 1))
            assert b"101" in await stream.receive_some()
        journal.note("nobody hears this")
        assert texts(await page(server, "/api/servers/a/logs"))[-1] == "nobody hears this"
