"""Ids lead back to their events, and those of a member tell nothing of how many there were."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.principal import Principal
from supervisor.events.event import MAX_NUMBER, Places

PLACES = Places("1000", b"k" * 32)
ANA, BEN = Principal("user:ana"), Principal("user:ben:team")
NUMBERS = st.integers(0, MAX_NUMBER)


@given(NUMBERS, st.sampled_from([None, ANA, BEN]))
def test_an_id_leads_back(number: int, member: Principal | None) -> None:
    assert PLACES.read(PLACES.show(number, member), member) == number


@given(NUMBERS, NUMBERS)
def test_two_events_have_two_ids(one: int, other: int) -> None:
    assert (PLACES.show(one, ANA) == PLACES.show(other, ANA)) == (one == other)


def test_neighbours_are_far_apart_for_a_member() -> None:
    numbers = [int(PLACES.show(number, ANA).partition("-")[2]) for number in range(200)]
    assert sum(abs(one - other) > MAX_NUMBER // 1000 for one, other in pairwise(numbers)) > 190
    assert numbers != [int(PLACES.show(number, BEN).partition("-")[2]) for number in range(200)]


@pytest.mark.parametrize(
    "text", ["", "1000", "1000-", "1000--1", "1000-1x", "1001-5", f"1000-{MAX_NUMBER + 1}", "1000-²"]
)
def test_what_is_no_id_of_this_run_is_none(text: str) -> None:
    assert PLACES.read(text) is None
    assert PLACES.read(text, ANA) is None


@given(st.text(max_size=100))
def test_any_text_may_be_asked_for(text: str) -> None:
    number = PLACES.read(text)
    assert number is None or 0 <= number <= MAX_NUMBER
