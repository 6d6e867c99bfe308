"""The page for finding out why: what it has, that it can be switched off, and that others have their turns."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.kit import Latest
from actors.protocol.listing import Readings
from supervisor.config import Settings
from supervisor.front.pages.status import _debug
from supervisor.servers.deployment import Deployment
from tests.fakes.tool_view import view_of
from tests.supervisor.front.pages.test_api import NOW, page, pages, status, view


async def debug(*statuses: Any, **more: Any) -> Any:
    async with pages(view(*statuses, **more)) as server:
        return await page(server, "/api/status/debug")


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
