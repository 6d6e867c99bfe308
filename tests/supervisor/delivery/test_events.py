"""What the parts of a daemon note becomes events, and what is odd about it harms nobody."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from actors.facts import Available, FactLog, ListsRead, Unavailable
from actors.kit import Conditions
from actors.principal import LOCAL, Principal
from supervisor.config import Settings
from supervisor.delivery.events import DaemonEvents
from supervisor.events.kinds import TYPES
from supervisor.events.translation import Base
from supervisor.identity.audit import AuditRecord
from supervisor.identity.people import principal_of
from supervisor.usage.records import CallRecord
from tests.fakes.told_events import KeepingSink, SmallWorld, events_of


def told(events: DaemonEvents) -> list[tuple[str, dict[str, Any]]]:
    return [(TYPES[type(event.data)], msgspec.to_builtins(event.data)) for event in events.log.after(0, 1000)]


@pytest.mark.parametrize(
    ("principal", "whose"),
    [
        (LOCAL, {}),
        (principal_of("ana"), {"user_id": "ana"}),
        (principal_of("ana", "x"), {"user_id": "ana", "team_id": "x"}),
    ],
)
def test_a_call_is_told_with_who_made_it(principal: Principal, whose: dict[str, str]) -> None:
    events = events_of()
    record = CallRecord(
        time=7.0,
        principal=principal,
        client="c",
        server="s",
        tool="t" * 1000,
        definition=b"\x07\xff",
        took_ms=1.23456,
        bytes_in=3,
    )
    events.take([record])
    ((name, data),) = told(events)
    assert name == "mcp.tool.executed"
    assert data == {
        "server_slug": "s",
        "tool_name": "t" * 200,
        "definition_digest": "07ff",
        "client_name": "c",
        "success": True,
        "outcome": "ok",
        "response_time_ms": 1.235,
        "request_bytes": 3,
        **whose,
    }
    (event,) = events.log.after(0, 1)
    assert event.principal == principal


def test_a_meta_tool_has_no_server_and_a_failure_its_type() -> None:
    events = events_of()
    events.take([CallRecord(tool="discover_mcp_tools", outcome="timeout", error="timeout")])
    ((_, data),) = told(events)
    assert "server_slug" not in data
    assert (data["success"], data["outcome"], data["error_type"]) == (False, "timeout", "timeout")


def test_a_call_of_what_was_never_started_is_told_all_the_same() -> None:
    def launch_of(server: str, principal: Principal) -> str:
        raise KeyError(server)

    events = events_of()
    events._launch_of = launch_of
    events.take([CallRecord(server="s", tool="t", outcome="rejected")])
    assert len(told(events)) == 1


def test_who_could_not_come_in_is_told() -> None:
    events = events_of()
    events.note(AuditRecord(time=1.0, action="credential.check", address="10.0.0.1", door="/mcp", count=3))
    events.note(AuditRecord(time=1.0, action="page.ask", user="ben", target="GET /api/status"))
    events.note(AuditRecord(time=1.0, action="token.create", user="ana"))
    assert told(events) == [
        ("security.auth.failed", {"reason": "credential", "target": "/mcp", "ip_address": "10.0.0.1", "count": 3}),
        ("security.auth.failed", {"reason": "role", "target": "GET /api/status", "user_id": "ben", "count": 1}),
    ]


def test_want_is_told_when_it_begins() -> None:
    events, conditions = events_of(), Conditions(lambda: 1.0, lambda: 1.0)
    conditions.tell = events.lack
    for _ in range(3):
        conditions.begin("store", "No space left on device")
    assert told(events) == [("resource.limit.exceeded", {"resource": "store", "reason": "No space left on device"})]


class OddWorld(SmallWorld):
    """Cannot say whose server `odd` is."""

    def base_of(self, launch: str) -> Base:
        if launch == "odd":
            raise LookupError("a bug")
        return super().base_of(launch)


async def test_the_feed_is_told_in_its_order_and_a_bug_with_one_entry_is_counted(
    caplog: pytest.LogCaptureFixture, autojump_clock: object
) -> None:
    events = DaemonEvents(Settings(), OddWorld(), lambda config: KeepingSink(), lambda: 1000.0)
    facts = FactLog(lambda: 3.0, 5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(events.follow, facts)
        facts.note(ListsRead(launch="a", tools=1), revision=4)
        facts.note(Unavailable(launch="odd", tools=1))
        facts.note(Unavailable(launch="a", tools=1))
        await events.catch_up(facts)
        assert [name for name, _ in told(events)] == ["mcp.discovery.completed", "mcp.server.away"]
        first = events.log.after(0, 1)[0]
        assert (first.time, first.revision) == (3.0, 4)
        assert events.status() == {"newest": 2, "lost": 1, "sinks": []}
        for number in range(9):
            facts.note(Available(launch="a", tools=number))
        await events.catch_up(facts)
        assert (events.log.newest.value, events.lost) == (7, 5), "four were pushed out before anybody looked"
        nursery.cancel_scope.cancel()
    assert "a bug while telling of Unavailable" in caplog.text
