"""A fleet in virtual time keeps its promises; and breaks them, as seen here, where one of its rules is left out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from supervisor.fleet.engine import Lease
from tests.fleet.forgetful import KEYS
from tests.fleet.memory_engine import MemoryEngine
from tests.fleet.simulation import Report, Scale, events_of
from tests.fleet.virtual_time import simulate
from tests.fleet.world import Odds

SCALE = Scale(seconds=120.0, faults_per_s=1.0)


def rough(seeds: range, scale: Scale = SCALE) -> list[str]:
    """Return what was violated in some runs, until something was."""
    for seed in seeds:
        if (report := simulate(scale, seed)).violations:
            return report.violations
    return []


def test_nothing_runs_twice_and_everything_is_answered() -> None:
    report = simulate(SCALE, 1)
    assert report.violations == []
    assert report.unanswered == 0
    assert report.unreachable == 0
    assert report.how["answered"] > report.calls / 4
    assert sum(report.faults.values()) > 50


def test_a_larger_one() -> None:
    report = simulate(Scale(nodes=40, launches=500, seconds=20.0, calls_per_s=40.0, faults_per_s=2.0), 11)
    assert (report.violations, report.unanswered, report.unreachable) == ([], 0, 0)
    assert events_of(report) > 8_000


def test_the_same_seed_does_the_same() -> None:
    one, other = (simulate(replace(SCALE, seconds=5.0, launches=30), 5) for _ in range(2))
    assert one == other
    assert one != simulate(replace(SCALE, seconds=5.0, launches=30), 6)


def test_a_calm_fleet_answers_every_call() -> None:
    calm = replace(SCALE, seconds=30.0, faults_per_s=0.0001, odds=Odds(lost=0, unanswered=0))
    report: Report = simulate(calm, 1)
    assert set(report.how) == {"answered"}


# What the rules are for ---------------------------------------------------------------------------------------------


def test_without_an_end_by_its_own_clock_a_launch_runs_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "serves_until", property(lambda self: self.sent + 3 * self.times.lease_s))
    monkeypatch.setattr(Lease, "ends", property(lambda self: self.sent + 3 * self.times.lease_s))
    assert any("while it runs at" in each for each in rough(range(2, 9)))


def test_without_time_to_settle_a_launch_runs_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    def see(self: MemoryEngine) -> None:
        grants_from = self._grants_from
        seen(self)
        self._grants_from = grants_from

    seen = MemoryEngine._see
    monkeypatch.setattr(MemoryEngine, "_see", see)
    assert any("while it runs at" in each for each in rough(range(1, 30)))


def test_where_a_lost_part_is_not_seen_a_launch_runs_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fleet.forgetful.UNSEEN", frozenset(KEYS))
    assert any("while it runs at" in each for each in rough(range(1, 30)))
