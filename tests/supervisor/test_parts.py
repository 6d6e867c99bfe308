"""The parts of the daemon that begin again: a bug costs a moment of one, and the daemon only where it stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from actors.kit import Conditions
from supervisor.audit_trail import AuditTrail
from supervisor.delivery.delivery import Delivery
from supervisor.delivery.events import DaemonEvents
from supervisor.host.datadir import DataDir
from supervisor.host.program import Systemd
from supervisor.host.turns import LoopLag
from supervisor.parts import POLICY, DaemonParts, PartLost
from supervisor.servers.capacity import Capacity
from supervisor.servers.journals.keeper import LogKeeper
from supervisor.usage.totals import Usage
from tests.scenario.daemon import A, world

pytestmark = pytest.mark.case("D26")
Run = Callable[..., Awaitable[None]]


async def test_a_part_that_crashes_begins_again_and_goes_on(autojump_clock: MockClock) -> None:
    told: list[tuple[str, str]] = []
    conditions = Conditions()
    conditions.tell = lambda what, why: told.append((what, why))
    begun = 0

    async def run() -> None:
        nonlocal begun
        begun += 1
        await trio.sleep(1)
        if begun <= 2:
            raise LookupError(begun)

    async with trio.open_nursery() as nursery:
        parts = DaemonParts(nursery, conditions)
        parts.start("usage", run)
    assert begun == 3
    assert parts.restarts == {"usage": 2}
    assert [what for what, _ in told] == ["usage", "usage"]


async def test_one_that_crashes_too_often_is_lost(autojump_clock: MockClock) -> None:
    restarts: dict[str, int] = {}

    async def run() -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError

    with pytest.RaisesGroup(PartLost):
        async with trio.open_nursery() as nursery:
            parts = DaemonParts(nursery, Conditions())
            parts.start("usage", run)
            parts.start("other", trio.sleep_forever)
            restarts = parts.restarts
    assert restarts == {"usage": POLICY.max_restarts}


def crashing_once(run: Run) -> Run:
    crashed = False

    async def crash_or_run(*given: Any, **more: Any) -> None:
        nonlocal crashed
        if not crashed:
            crashed = True
            await trio.lowlevel.checkpoint()
            raise LookupError("a bug")
        await run(*given, **more)

    return crash_or_run


@pytest.mark.parametrize(
    ("part", "name", "shown"),
    [
        (Capacity, "run", "capacity"),
        (LogKeeper, "run", "logs of servers"),
        (AuditTrail, "run", "audit"),
        (Usage, "run", "usage"),
        (DaemonEvents, "follow", "events"),
        (Delivery, "run", "events"),
        (Systemd, "give_signs_of_life", "signs of life"),
        (LoopLag, "run", "lag of the loop"),
    ],
)
async def test_a_crash_of_one_part_is_counted_and_ends_nothing(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch, part: type, name: str, shown: str
) -> None:
    monkeypatch.setattr(part, name, crashing_once(getattr(part, name)))
    async with world(tmp_path, data, {"good": A}) as at:
        counted = f'mcpvisor_part_restarts_total{{part="{shown}"}} 1.0'
        while counted not in (await at.ask("GET", "/metrics")).text:  # noqa: ASYNC110 - nobody tells of it
            await trio.sleep(0.02)
        await at.reload()


async def test_sinks_get_events_again_after_what_serves_them_has_crashed(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DaemonEvents, "follow", crashing_once(DaemonEvents.follow))
    sinks = [{"name": "lines", "type": "file", "path": str(tmp_path / "events.jsonl")}]
    async with world(tmp_path, data, {"good": A}, event_sinks=sinks):
        pass
    assert "mcp.discovery.completed" in (tmp_path / "events.jsonl").read_text()
