"""The operators' pages over the real application and real sockets: what they say, and what they never do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.facts import FactLog
from actors.kit import Latest
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus
from actors.search.index import Index
from actors.transport.stdio.resources.allotment import ProcessFigures
from supervisor.front.pages.app import add_welcome
from supervisor.front.pages.logs import PageSockets
from supervisor.front.pages.performing import SharedPage, add_operations
from supervisor.front.pages.status import _status
from supervisor.front.pages.view import View
from supervisor.identity.tokens import TokenTable
from supervisor.servers.instances import Read, Statuses
from supervisor.servers.journals.journals import Journals
from supervisor.servers.journals.keeper import LogReader
from supervisor.service.asking.elicitations import Elicitations
from supervisor.store.records import TOKENS
from tests.fakes.call_memory import no_history
from tests.fakes.control import Configured, NoLaunches, Obeys
from tests.fakes.front_server import Running, dispatch, running
from tests.fakes.no_values import no_values
from tests.fakes.rows import MemoryRows
from tests.fakes.told_events import events_of
from tests.fakes.tool_view import everybody_sees, nobody_serves

NOW, STARTED = 1000.0, 900.0


def status(server: str, state: State = State.READY, **more: Any) -> ServerStatus:
    return ServerStatus(server=server, state=state, wanted="up", since=NOW - 40, **more)


def entry(server: str, *tools: str, tokens: int = 1000, transport: str = "stdio") -> Entry:
    offer = Offer(
        tools=tuple(Tool(name=tool) for tool in tools),
        token_counts=dict.fromkeys(tools, tokens),
        tokens_exact=True,
        problems=("tool 3 left out: no name",),
    )
    return Entry.make(server, transport, offer)


def view(*statuses: ServerStatus, entries: tuple[Entry, ...] = (), indexed: bool = True, **more: Any) -> View:
    by_server = {item.server: item for item in entries}
    fields: dict[str, Any] = {
        "version": "1.2",
        "started": STARTED,
        "clock": lambda: NOW,
        "elapsed": lambda: NOW,
        "catalogue": Latest(Catalogue(revision=3, entries=by_server, index=Index.empty(), indexed=indexed)),
        "statuses": Latest({item.server: item for item in statuses}),
        "facts": FactLog(lambda: 1.0, 3),
        "events": events_of(),
        "closing": trio.Event(),
        "control": Obeys(),
        "launches": NoLaunches(),
        "configurator": Configured(),
        "editor": Configured(),
        "elicitations": Elicitations(FactLog(lambda: NOW)),
        "tokens": TokenTable(MemoryRows(TOKENS)),
        "values": no_values(),
        "history": no_history(),
        "service_for": nobody_serves,
        "logs": LogReader(Journals(lambda: NOW)),
        **more,
    }
    return View(**{"seen_by": everybody_sees(fields["catalogue"], fields["statuses"]), **fields})


@asynccontextmanager
async def pages(shown: View) -> AsyncIterator[Running]:
    async with running(
        dispatch(partial(add_operations, shown), page_sockets=PageSockets(shown)), shown.closing
    ) as server:
        yield server


async def ask(server: Running, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    raw = await server.exchange(f"{method} {path} HTTP/1.1\r\n".encode() + server.host + b"Connection: close\r\n\r\n")
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


async def page(server: Running, path: str, expected: int = 200) -> Any:
    code, headers, body = await ask(server, path)
    assert (code, headers["content-type"]) == (expected, "application/json")
    return json.loads(body)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (view(indexed=False), "being read"),
        (view(status("a", State.DISCOVERING)), "1 server is being discovered"),
        (view(status("a", State.DORMANT)), "1 server is being discovered"),
    ],
)
async def test_readiness_waits_for_the_index_and_the_first_discovery(shown: View, reason: str) -> None:
    async with pages(shown) as server:
        found = await page(server, "/readyz", 503)
        assert found["ready"] is False
        assert reason in found["reason"]


@pytest.mark.case("D25")
async def test_readiness_names_the_failing_and_does_not_wait_for_them() -> None:
    statuses = (
        status("a", State.FAILED, down="permanently_failed"),
        status("b", State.RESPAWNING, down="error"),
        status("c", State.SPAWNING),
        status("d", State.RESPAWNING, last_error="a failure that is mended at once"),
        status("e", State.FAILED, requires_reauth=True),
    )
    async with pages(view(*statuses, entries=(entry("c", "x"),))) as server:
        found = await page(server, "/readyz")
        assert found == {"ready": True, "servers": 5, "discovering": [], "failed": ["a", "b"]}


@pytest.mark.parametrize("state", [State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.DRAINING])
async def test_a_bad_server_that_is_tried_again_and_again_does_not_hold_up_readiness(state: State) -> None:
    bad = status("bad", state, restarts=2, last_error="it died", down="error")
    async with pages(view(bad, status("good"), entries=(entry("good", "x"),))) as server:
        found = await page(server, "/readyz")
        assert found == {"ready": True, "servers": 2, "discovering": [], "failed": ["bad"]}


async def test_the_first_page_leads_a_browser_to_the_dashboard() -> None:
    answered = (await first_page("text/html,application/xhtml+xml,*/*;q=0.8")).lower()
    assert answered.startswith("http/1.1 303")
    assert "location: /ui\r\n" in answered


@pytest.mark.parametrize("path", ["/dashboard", "/ui/nothing", "/api/<b>"])
async def test_a_browser_on_a_wrong_address_gets_words_and_a_way_to_the_dashboard(path: str) -> None:
    head, _, body = (await first_page("text/html,application/xhtml+xml,*/*;q=0.8", path)).partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 404")
    assert "content-type: text/html; charset=utf-8" in head.lower()
    assert "there is no such page" in body
    assert '<a href="/ui">' in body
    for program in ("*/*", "application/json"):
        head, _, body = (await first_page(program, path)).partition("\r\n\r\n")
        assert "content-type: application/json" in head.lower()
        assert json.loads(body)["error"]["code"] == 404


async def first_page(accept: str, path: str = "/") -> str:
    async with running(dispatch(partial(add_welcome, "1.2"))) as server:
        head = (
            b"GET "
            + path.encode()
            + b" HTTP/1.1\r\n"
            + server.host
            + b"Accept: "
            + accept.encode()
            + b"\r\nConnection: close\r\n\r\n"
        )
        return (await server.exchange(head)).decode()


async def test_a_status_is_what_servers_know_now_and_asks_none_of_them() -> None:
    live = Statuses()
    reported = view(status("quick"), status("gone", calls=1), live=live)

    def reading(server: str, calls: int) -> Read:
        return lambda stderr: status(server, calls=calls)

    with live.register("quick", reading("quick", 9)), live.register("new", reading("new", 2)):
        async with pages(reported) as server:
            found = await page(server, "/api/status")
            assert {row["server"]: row["calls"] for row in found["servers"]} == {"gone": 1, "new": 2, "quick": 9}
            assert (found["totals"]["calls"], found["totals"]["servers"]) == (12, 3)


async def test_a_row_has_the_figures_of_its_process_and_none_without_one() -> None:
    async def figures() -> Mapping[int, ProcessFigures]:
        await trio.lowlevel.checkpoint()
        return {7: ProcessFigures(1024, 2.5, 12.0)}

    rows = status("here", pid=7), status("remote", transport="http"), status("gone", pid=8)
    async with pages(view(*rows, figures=figures)) as server:
        shown = {row["server"]: row for row in (await page(server, "/api/status"))["servers"]}
    names = ("memory_bytes", "cpu_s", "cpu_percent")
    assert [shown["here"][name] for name in names] == [1024, 2.5, 12.0]
    assert [shown["remote"][name] for name in names] == [shown["gone"][name] for name in names] == [None] * 3


async def test_a_status_of_very_many_servers_gives_everybody_else_their_turns() -> None:
    shown, turns = view(*(status(f"s{number}") for number in range(640))), 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await _status(shown)
        nursery.cancel_scope.cancel()
    assert turns >= 640 // 32


async def test_those_who_poll_the_status_share_a_page_that_was_begun_after_they_asked() -> None:
    begun, go_on = 0, trio.Event()

    async def make() -> bytes:
        nonlocal begun
        begun += 1
        number = begun
        await go_on.wait()
        return b"%d" % number

    shared = SharedPage(make)
    got: list[bytes] = []

    async def poll() -> None:
        got.append(await shared.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await wait_all_tasks_blocked()
        for _ in range(20):
            nursery.start_soon(poll)
        await wait_all_tasks_blocked()
        go_on.set()
    assert (begun, sorted(got)) == (2, [b"1"] + [b"2"] * 20)
    assert await shared.get() == b"3"


@pytest.mark.parametrize("set_s", [-7200.0, 0.0, 7200.0])
async def test_the_age_of_a_state_is_right_wherever_the_clock_was_set_to(set_s: float) -> None:
    moments = {
        "last_error_at": NOW - 30,
        "next_start": NOW + 10,
        "retry_at": NOW + 5,
        "asked_since": NOW - 5,
        "last_sign_at": NOW - 2,
    }
    left_alone = OpenBreaker(breaker="server", until=NOW + 20, seconds=30, failures=5, reason="it is silent")
    failed = status("s", State.RESPAWNING, last_error="exit code 1", breakers=(left_alone,), **moments)
    async with pages(view(failed, clock=lambda: NOW + set_s)) as front:
        found = await page(front, "/api/status")
        (row,) = found["servers"]
        assert row["since_s"] == 40.0
        assert found["uptime_s"] == NOW - STARTED
        unix_now = NOW + set_s
        ages = [unix_now - row[name] for name in ("since", *moments)]
        assert ages == [40.0, 30.0, -10.0, -5.0, 5.0, 2.0]
        assert [(each["breaker"], each["until"] - unix_now) for each in row["breakers"]] == [("server", 20.0)]
