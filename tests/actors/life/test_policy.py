"""How often a server may come back, and how long it waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.life.policy import RestartLog, RestartPolicy


def log(jitter: float = 1.0, **policy: object) -> RestartLog:
    return RestartLog(RestartPolicy(**policy), lambda: jitter)  # type: ignore[arg-type]  # any field of the policy


@pytest.mark.case("P07")
def test_delays_double_up_to_the_maximum() -> None:
    restarts = log(max_restarts=10)
    assert [restarts.admit(0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


@given(jitter=st.floats(0, 1), level=st.integers(0, 9))
def test_jitter_takes_at_most_half_of_the_delay(jitter: float, level: int) -> None:
    restarts = log(jitter, max_restarts=100)
    delays = [restarts.admit(0.0) for _ in range(level + 1)]
    full = min(60.0, 2.0**level)
    delay = delays[-1]
    assert delay is not None
    assert full / 2 <= delay <= full


def test_the_budget_gives_up_and_time_forgives() -> None:
    restarts = log()
    assert [restarts.admit(now) is None for now in range(5)] == [False] * 4 + [True]
    assert log().admit(0.0) is not None
    restarts = log()
    assert all(restarts.admit(now * 200.0) is not None for now in range(50))


def test_success_alone_forgives_nothing() -> None:
    restarts = log()
    for now in range(4):
        restarts.ready(now)
        assert restarts.admit(now + 0.5) is not None
    assert restarts.admit(5.0) is None


def test_a_process_that_the_probe_of_the_era_ruined_counts_if_the_next_fails_too() -> None:
    restarts = log()
    restarts.ruin()
    assert [restarts.admit(0.0) for _ in range(4)] == [2, 4, 8, None]
    restarts = log()
    restarts.ruin()
    restarts.ready(0.0)
    assert [restarts.admit(1.0) for _ in range(5)] == [1, 2, 4, 8, None]


@pytest.mark.case("P08")
def test_each_stable_minute_lowers_the_delay_by_one_step() -> None:
    restarts = log(max_restarts=100)
    for _ in range(4):
        restarts.admit(0.0)
    restarts.ready(0.0)
    assert restarts.admit(130.0) == 4


def test_the_first_restart_after_a_stable_run_is_immediate() -> None:
    restarts = log()
    restarts.ready(0.0)
    assert restarts.admit(61.0) == 0.0
    assert restarts.admit(62.0) == 2.0


def test_a_long_ready_time_forgives_everything() -> None:
    restarts = log()
    for _ in range(4):
        restarts.admit(0.0)
    restarts.ready(0.0)
    assert restarts.admit(600.0) == 0.0
    assert all(restarts.admit(601.0) is not None for _ in range(3))


def test_a_failure_alone_in_its_period_starts_from_the_beginning() -> None:
    restarts = log()
    for _ in range(4):
        restarts.admit(0.0)
    assert restarts.admit(601.0) == 1.0


def test_a_temporary_server_is_never_restarted() -> None:
    restarts = log(restart="temporary")
    assert restarts.admit(0.0) is None


@pytest.mark.parametrize("pause", [300.0, 599.0, 100_000.0])
def test_a_failed_probe_gives_up_again_at_once(pause: float) -> None:
    restarts = log()
    for _ in range(6):
        restarts.admit(0.0)
    assert restarts.probe(1.0) == 299.0
    assert restarts.probe(pause) == 0.0
    assert restarts.admit(pause + 1) is None
    assert restarts.probe(pause + 2) == 299.0


def test_only_one_probe_is_granted_per_interval() -> None:
    restarts = log()
    for _ in range(6):
        restarts.admit(0.0)
    assert restarts.probe(300.0) == 0.0
    assert restarts.probe(300.0) == 300.0


def test_after_a_probe_that_succeeded_there_is_room_for_another_failure() -> None:
    restarts = log()
    for _ in range(6):
        restarts.admit(100.0)
    restarts.probe(400.0)
    restarts.ready(401.0)
    assert restarts.admit(402.0) is not None
    assert restarts.admit(403.0) is None


def test_an_operator_makes_everything_forgotten() -> None:
    restarts = log()
    for _ in range(6):
        restarts.admit(0.0)
    restarts.forget()
    assert restarts.probe(0.0) == 0.0
    restarts.forget()
    assert restarts.admit(0.0) == 1.0
    assert restarts.total == 7


def test_want_of_resources_backs_off_by_a_level_of_its_own_and_counts_nothing() -> None:
    restarts = log()
    assert [restarts.postpone() for _ in range(3)] == [1, 2, 2]
    assert all(restarts.postpone() == 2 for _ in range(100))
    assert restarts.total == 0
    assert restarts.admit(0.0) == 1
    assert restarts.postpone() == 1


def test_retries_of_a_server_never_listed_become_rare_up_to_a_bound() -> None:
    restarts = log(jitter=1.0, retry_max_s=1000.0)
    assert [restarts.retry() for _ in range(4)] == [300, 600, 1000, 1000]
    assert log(jitter=0.0).retry() == 150
    restarts.ready(0.0)
    assert restarts.retry() == 300
    restarts.forget()
    assert restarts.retry() == 300
    assert log(restart="temporary").retry() is None


def test_a_retry_that_fails_gives_up_again_and_a_probe_on_demand_waits_for_its_interval() -> None:
    restarts = log()
    for _ in range(6):
        restarts.admit(0.0)
    restarts.begin_probe(200.0)
    assert restarts.admit(201.0) is None
    assert restarts.probe_due(301.0) == 200.0


def test_a_failure_that_only_a_change_heals_has_its_probe_interval_too() -> None:
    restarts = log()
    restarts.give_up(100.0)
    assert restarts.probe(200.0) == 200.0
    assert restarts.probe(400.0) == 0.0


@given(st.lists(st.tuples(st.sampled_from(["admit", "ready", "probe", "forget"]), st.floats(0, 2000)), max_size=60))
def test_whatever_happens_delays_are_bounded_and_the_budget_holds(steps: list[tuple[str, float]]) -> None:
    restarts = log(0.5)
    now, admitted = 0.0, []
    for what, later in steps:
        now += later
        if what == "admit":
            delay = restarts.admit(now)
            assert delay is None or 0 <= delay <= 60
            admitted += [now] if delay is not None else []
        elif what == "forget":
            restarts.forget()
            admitted = []
        elif what == "ready":
            restarts.ready(now)
            admitted = []  # a long ready time may forgive
        else:
            assert 0 <= restarts.probe(now) <= 300
            admitted = []
        assert sum(moment > now - 600 for moment in admitted) <= 5
