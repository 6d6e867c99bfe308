"""Event types of servers: read with their other lists, known while they sleep, and read again when they say so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.lists import event_type
from actors.life.states import State
from actors.messages import SleepServer
from actors.protocol.agreement.versions import Era
from supervisor.service.events.limits import MAX_LISTED
from supervisor.service.events.sources import EventType, list_result
from tests.fakes.exchanges import MODERN
from tests.fakes.mcp_server import FakeServer
from tests.fakes.published import Served, served

EVENTS = "io.modelcontextprotocol/events"
OBJECT = {"type": "object"}
DECLARED: tuple[dict[str, Any], ...] = (
    {"extensions": {EVENTS: {"listChanged": True}}, "tools": {}},
    {"events": {}, "tools": {}},
)
each_era = pytest.mark.parametrize("era", ["legacy", "modern"])


def typed(name: str, *delivery: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "delivery": delivery, "inputSchema": OBJECT, "payloadSchema": OBJECT, **more}


@dataclass
class EventServer(FakeServer):
    """Lists event types, one on a page."""

    types: list[Any] = field(default_factory=lambda: [typed("tick", "push"), typed("mail", "poll", "webhook")])
    capabilities: Any = field(default_factory=lambda: DECLARED[0])

    def _answer(self, method: str, message: dict[str, Any]) -> dict[str, Any] | None:
        if method != "events/list":
            return super()._answer(method, message)
        at = int(message.get("params", {}).get("cursor", 0))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(self.types) else {}
        return {"result": {"resultType": "complete", "events": self.types[at : at + 1], **more}}


@asynccontextmanager
async def before(server: FakeServer, era: Era) -> AsyncIterator[Served]:
    server.probe = "modern" if era == "modern" else "error"
    server.honours = {"toolsListChanged": True, "eventsListChanged": True}
    async with served({"s": server}, era=era) as running:
        yield running


async def listed(running: Served) -> list[Any]:
    events: list[Any] = (await running.result("events/list", MODERN, "all"))["events"]
    return events


@each_era
@pytest.mark.parametrize("capabilities", DECLARED)
async def test_types_are_read_page_by_page_and_known_while_their_server_sleeps(capabilities: Any, era: Era) -> None:
    server = EventServer(capabilities=capabilities)
    server.types += [typed("hook", "webhook"), typed("new", "carrier pigeon"), {"name": "odd"}, 7]
    async with before(server, era) as running:
        expected = [typed("s:mail", "poll", "push"), typed("s:tick", "poll", "push")]
        assert await listed(running) == json.loads(json.dumps(expected))
        problems = running.registry.catalogue.value.entries["s"].offer.problems
        assert len(problems) == 2
        assert all(problem.startswith("event type ") for problem in problems)
        await running.actors["s"].address.ask(SleepServer(server="s"))
        assert running.actors["s"].status().state is State.DORMANT
        assert len(await listed(running)) == 2


async def test_a_server_that_does_not_say_that_it_has_events_is_not_asked() -> None:
    async with before(server := EventServer(capabilities={"tools": {}}), "legacy") as running:
        assert await listed(running) == []
        assert "events/list" not in [message["method"] for message in server.messages]


@each_era
async def test_a_list_of_types_that_fails_costs_no_tools(era: Era) -> None:
    server = EventServer(errors_at={"events/list": {"code": -32601, "message": "no"}})
    async with before(server, era) as running:
        assert await listed(running) == []
        offer = running.registry.catalogue.value.entries["s"].offer
        assert ([tool.name for tool in offer.tools], offer.problems) == (["echo"], ("events/list: -32601 no",))


@each_era
async def test_types_are_read_again_when_their_server_says_that_they_changed(era: Era, mock_clock: MockClock) -> None:
    async with before(server := EventServer(), era) as running:
        if era == "modern":
            (wanted,) = [m["params"]["notifications"] for m in server.messages if "listen" in m["method"]]
            assert wanted["eventsListChanged"] is True
        server.types = [typed("tock", "push")]
        await server.notify("notifications/events/list_changed")
        for _ in range(5):
            await wait_all_tasks_blocked()
            mock_clock.jump(1)
        catalogue = running.registry.catalogue
        while [each["name"] for each in await listed(running)] != ["s:tock"]:
            await catalogue.wait_newer(catalogue.version)  # it is made in a thread


@given(st.sets(st.text(min_size=1, max_size=4), max_size=30), st.integers(0, 3))
def test_pages_have_every_type_once_in_the_order_of_names(names: set[str], large: int) -> None:
    body = b'{"description":"%b"}' % (b"x" * (large * 200_000))
    types = [EventType(name, msgspec.Raw(body)) for name in names]
    cursor, seen = None, list[str]()
    for _ in range(len(names) + 1):
        page = json.loads(list_result(types, ("poll",), cursor))
        seen += [each["name"] for each in page["events"]]
        assert len(page["events"]) <= MAX_LISTED
        if (cursor := page.get("nextCursor")) is None:
            break
    assert seen == sorted(names)


def test_a_type_is_shown_as_the_extension_has_it() -> None:
    written = {**typed("tick", "webhook"), "inputSchema": {}, "description": None, "_meta": {"a": 1}}
    kept = event_type(msgspec.Raw(json.dumps(written).encode()))
    page = json.loads(list_result([EventType("desk:tick", kept.definition)], ("poll", "push"), None))
    assert page["events"] == [{**typed("desk:tick"), "delivery": ["poll", "push"], "_meta": {"a": 1}}]
