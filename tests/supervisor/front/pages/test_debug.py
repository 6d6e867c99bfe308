"""The page for finding out why: what it has, that it can be switched off, and that others have their turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from actors.kit import Latest
from actors.life.states import State
from actors.protocol.listing import Readings
from supervisor.config import Settings
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.status import _debug
from supervisor.front.pages.view import View
from supervisor.servers.deployment import Deployment
from supervisor.servers.instances import Statuses
from tests.fakes.front_server import Running, dispatch, running
from tests.fakes.tool_view import view_of
from tests.supervisor.front.pages.test_api import NOW, entry, page, status, view


@asynccontextmanager
async def pages(shown: View) -> AsyncIterator[Running]:
    async with running(dispatch(partial(add_operations, shown)), shown.closing) as server:
        yield server


async def debug(*statuses: Any, **more: Any) -> Any:
    async with pages(view(*statuses, **more)) as server:
        return await page(server, "/api/status/debug")


async def test_it_shows_tools_by_transport_and_by_server_and_processes() -> None:
    shown = await debug(
        status("a", stderr="last words", pid=5),
        status("b", State.FAILED, transport="http"),
        entries=(entry("a", "x"), entry("b", "y", "z", transport="http")),
    )
    assert shown["tools_by_transport"] == {"stdio": 1, "http": 2}
    assert shown["tools_by_server"]["a"] == [{"name": "x", "tokens": 1000}]
    assert (shown["processes"]["a"]["stderr"], shown["processes"]["a"]["pid"]) == ("last words", 5)
    assert shown["states"] == {"ready": 1, "failed": 1}
    assert shown["index"] == {"documents": 0, "complete": True}
    assert shown["degraded"] == []


async def test_it_shows_how_lists_were_read_by_server_and_by_transport() -> None:
    shown = await debug(
        status("a", discovery=Readings(count=3, failures=1, last_at=NOW - 5, last_s=0.5)),
        status("b", discovery=Readings(count=1, last_at=NOW - 2, last_s=0.1)),
        status("c", discovery=Readings(failures=2)),
        status("d", transport="http"),
    )
    by_transport = shown["discovery"]["by_transport"]
    assert by_transport["stdio"] == {"servers": 3, "count": 4, "failures": 3, "last_at": NOW - 2, "last_s": 0.1}
    assert by_transport["http"] == {"servers": 1, "count": 0, "failures": 0, "last_at": None, "last_s": None}
    assert shown["discovery"]["by_server"]["a"] == {
        "count": 3,
        "failures": 1,
        "last_at": NOW - 5,
        "last_s": 0.5,
    }


@pytest.mark.case("I05")
async def test_switched_off_it_is_not_there() -> None:
    hidden = Latest(Deployment(settings=Settings(show_debug=False)))
    async with pages(view(status("a"), deployment=hidden)) as server:
        nothing = await page(server, "/api/status/nothing", 404)
        assert await page(server, "/api/status/debug", 404) == nothing


async def test_it_is_what_servers_know_now() -> None:
    live = Statuses()
    with live.register("new", lambda stderr: status("new", stderr="words" if stderr else "")):
        assert (await debug(live=live))["processes"]["new"]["stderr"] == "words"


@pytest.mark.parametrize("path", ["/api/status/debug"])
async def test_it_is_read_only(path: str) -> None:
    async with pages(view()) as server:
        for method in (b"POST", b"DELETE"):
            head = method + f" {path} HTTP/1.1\r\n".encode() + server.host + b"Connection: close\r\n\r\n"
            assert (await server.exchange(head)).startswith(b"HTTP/1.1 405")


async def test_others_have_a_turn_with_each_server() -> None:
    shown, turns = view(*(status(f"s{number}") for number in range(200))), 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await _debug(shown)
        nursery.cancel_scope.cancel()
    assert turns >= 200


async def test_it_lists_the_findings() -> None:
    async with pages(view_of()) as server:
        shown = await page(server, "/api/status/debug")
    assert shown["findings"] == {
        "shop": [
            {
                "tool": "ship",
                "code": "schema-type",
                "severity": "warning",
                "message": 'the input schema does not say "type": "object"',
            }
        ]
    }
