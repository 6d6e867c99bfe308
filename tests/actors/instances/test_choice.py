"""Which instance a call goes to: properties over all states of a few instances."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.instances.choice import Candidate, InstanceChoice, choose


@st.composite
def instances(draw: st.DrawFn) -> list[Candidate]:
    made = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        state = draw(st.sampled_from(["up", "coming", "startable", "out"]))
        fields: dict[str, Any] = {state: True} if state != "out" else {}
        made.append(Candidate(number=number, fit=draw(st.booleans()), open=draw(st.integers(0, 3)), **fields))
    return made


@given(instances(), st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_a_call_goes_to_the_least_busy_that_is_up_and_waits_only_for_who_comes(
    candidates: list[Candidate], leader: int, waiting: int, patient: bool
) -> None:
    leader = min(leader, len(candidates))
    choice = choose(candidates, leader, waiting, patient=patient)
    by_number = {each.number: each for each in candidates}
    up = [each for each in candidates if each.up]
    coming = [each for each in candidates if each.coming]
    if choice.to is not None:
        assert choice.start is None
        assert by_number[choice.to].up or (not up and choice.to == leader)  # never to one that is out while one is in
        if up:
            assert by_number[choice.to].open == min(each.open for each in up)
        else:
            assert not coming  # it would be waited for
    elif choice.start is not None:
        assert by_number[choice.start].startable
        assert all(each.open for each in up)  # further ones only when those that run are busy
        assert len(coming) < waiting
        assert up or by_number[choice.start].fit or choice.start == leader
        assert patient or not up
    else:
        assert coming  # a call never waits for nothing
        assert patient or not up


@given(instances(), st.integers(1, 8))
def test_starting_as_long_as_it_is_said_comes_to_an_end(candidates: list[Candidate], waiting: int) -> None:
    for _ in range(len(candidates) + 1):
        choice = choose(candidates, 1, waiting)
        if choice.start is None:
            break
        candidates = [
            Candidate(number=each.number, coming=True, open=each.open) if each.number == choice.start else each
            for each in candidates
        ]
    assert choice.start is None
    assert sum(each.coming for each in candidates) <= max(waiting, sum(each.coming for each in candidates))


def test_of_equal_ones_the_first_is_chosen_and_the_leader_is_started_first() -> None:
    assert choose([Candidate(1, up=True, open=1), *(Candidate(each, up=True) for each in (2, 3))], 1).to == 2
    resting = [Candidate(each, startable=True, fit=True) for each in (1, 2, 3)]
    assert choose(resting, 2) == InstanceChoice(start=2)
    assert choose([], 1) == InstanceChoice(to=1)
