"""What follows from what is seen of a server that says nothing, and when it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.server.parts.liveness import LOOKS, SLOT_S, Inquiry, Seen, Verdict, next_multiple, next_turn
from actors.transport.base import Work

IDLE, FROZEN, ACTIVE = Work(cpu_s=1.0), Work(cpu_s=1.0, frozen=True), Work(cpu_s=1.0, active=True)
QUIET = Seen(said=0, read=0, received=0, work=IDLE)
MANY = 4 * LOOKS

works = st.sampled_from([IDLE, FROZEN, ACTIVE, Work(cpu_s=1.5), Work(cpu_s=1.0, moved_bytes=7), None])
seen = st.builds(
    Seen,
    said=st.just(0),
    read=st.integers(0, 3),
    received=st.integers(0, 3),
    busy=st.booleans(),
    work=works,
)


@dataclass
class Begun:
    """How an inquiry begins."""

    asked: bool = True
    proven: bool = True
    local: bool = True
    suspected: bool = False

    def inquiry(self) -> Inquiry:
        return Inquiry(
            0, 0, asked=self.asked, proven=self.proven and self.asked, local=self.local, suspected=self.suspected
        )


begun = st.builds(Begun, asked=st.booleans(), proven=st.booleans(), local=st.booleans(), suspected=st.just(False))


def end(inquiry: Inquiry, looks: list[Seen]) -> tuple[Verdict | None, int]:
    """Return what follows at last, and after how many looks."""
    for number, each in enumerate(looks, 1):
        if (verdict := inquiry.look(each)) is not None:
            return verdict, number
    return None, len(looks)


def seen_with(work: Work | None = IDLE, **more: int) -> Seen:
    return Seen(said=more.get("said", 0), read=0, received=0, busy=bool(more.get("busy")), work=work)


@given(begun, st.lists(seen, max_size=MANY), st.integers(1, 5))
def test_whatever_was_seen_before_a_server_that_says_something_is_alive(
    how: Begun, looks: list[Seen], said: int
) -> None:
    inquiry = how.inquiry()
    if end(inquiry, looks)[0] is None:
        assert inquiry.look(seen_with(said=said)) == "alive"


@given(begun, st.lists(seen, min_size=MANY, max_size=MANY))
def test_a_server_that_does_anything_or_was_never_heard_to_answer_is_not_deaf(how: Begun, looks: list[Seen]) -> None:
    verdict, number = end(how.inquiry(), looks)
    if verdict == "deaf":
        looked = looks[:number]
        assert how.asked
        assert how.proven
        assert not any(each.busy for each in looked)
        if how.local:
            works = [each.work for each in looked]
            assert all(after and before and after.still_since(before) for before, after in pairwise(works))


@given(begun, st.lists(seen, min_size=MANY, max_size=MANY))
def test_frozen_is_what_was_stopped_twice_in_a_row_and_did_nothing_in_between(how: Begun, looks: list[Seen]) -> None:
    verdict, number = end(how.inquiry(), looks)
    if verdict == "frozen":
        assert number >= 2
        assert [each.work for each in looks[number - 2 : number]] == [FROZEN, FROZEN]


@given(begun, st.lists(works, min_size=MANY, max_size=MANY))
def test_an_inquiry_ends_where_all_that_arrived_is_read(how: Begun, looks: list[Work | None]) -> None:
    verdict, number = end(how.inquiry(), [seen_with(work) for work in looks])
    assert verdict is not None
    assert number <= LOOKS + 2


@given(begun, st.integers(LOOKS, MANY))
def test_while_something_lies_unread_nothing_follows(how: Begun, looks: int) -> None:
    how.asked = True
    behind = [Seen(said=0, read=0, received=1, work=FROZEN)] * looks
    assert end(how.inquiry(), behind)[0] in (None, "alive")


@pytest.mark.parametrize(
    ("how", "looks", "verdict", "number"),
    [
        (Begun(), [QUIET] * MANY, "deaf", LOOKS + 2),
        (Begun(proven=False), [QUIET] * MANY, "unknown", LOOKS + 2),
        (Begun(local=False), [seen_with(None)] * MANY, "deaf", LOOKS + 2),
        (Begun(local=False), [seen_with(None, busy=1)] + [seen_with(None)] * MANY, "unknown", LOOKS + 2),
        (Begun(), [seen_with(None)] * MANY, "unknown", LOOKS + 2),
        (Begun(), [seen_with(ACTIVE)] * MANY, "unknown", LOOKS + 2),
        (Begun(), [QUIET, seen_with(busy=1)] + [QUIET] * MANY, "unknown", LOOKS + 2),
        (Begun(), [QUIET] * LOOKS + [seen_with(Work(cpu_s=1.01))] * MANY, "unknown", LOOKS + 2),
        (Begun(suspected=True, proven=False), [seen_with(ACTIVE, busy=1)] * MANY, "deaf", LOOKS + 2),
        (Begun(), [seen_with(FROZEN)] * 2, "frozen", 2),
        (Begun(asked=False), [seen_with(FROZEN)] * 2, "frozen", 2),
        (Begun(asked=False), [QUIET], "unknown", 1),
        (Begun(asked=False), [seen_with(FROZEN), QUIET], "unknown", 2),
        (Begun(), [seen_with(FROZEN), QUIET, seen_with(FROZEN), QUIET], None, 4),
    ],
)
def test_verdicts(how: Begun, looks: list[Seen], verdict: Verdict | None, number: int) -> None:
    assert end(how.inquiry(), looks) == (verdict, number)


def test_one_that_comes_under_suspicion_has_its_whole_time_from_then_on() -> None:
    inquiry = Begun(proven=False).inquiry()
    assert end(inquiry, [QUIET] * LOOKS) == (None, LOOKS)
    inquiry.suspect()
    assert end(inquiry, [QUIET] * MANY) == ("deaf", LOOKS + 2)


moments = st.floats(0, 1e6)
intervals = st.floats(0.5, 7200)
shares = st.floats(0, 1, exclude_max=True)


@given(moments, intervals, shares)
def test_a_quiet_server_is_asked_within_its_interval_and_not_before_half_of_it(
    after: float, interval_s: float, share: float
) -> None:
    turn = next_turn(after, interval_s, share)
    assert after + interval_s / 2 - 1e-6 <= turn <= after + interval_s + 1e-6


@given(st.lists(st.tuples(moments, shares), min_size=2, max_size=50))
def test_servers_are_asked_at_moments_that_they_share(servers: list[tuple[float, float]]) -> None:
    turns = [next_turn(after, 60.0, share) for after, share in servers]
    assert all(turn % SLOT_S == pytest.approx(0, abs=1e-6) for turn in turns)


def test_servers_are_spread_evenly_over_these_moments() -> None:
    turns = [next_turn(1000.0, 60.0, number / 120) for number in range(120)]
    assert {turns.count(turn) for turn in turns} == {20}
    assert len(set(turns)) == 6


@given(moments, st.floats(0.1, 100))
def test_the_next_multiple_is_later_by_one_step_at_most(after: float, step_s: float) -> None:
    moment = next_multiple(after, step_s)
    assert after < moment + 1e-6
    assert moment <= after + step_s + 1e-6
