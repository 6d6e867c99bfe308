"""A bound that several share: nobody takes it all, and nobody who comes later gets nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.kit import Quota


@given(limit=st.integers(1, 10_000))
def test_who_is_alone_has_half_at_the_most(limit: int) -> None:
    quota = Quota(limit)
    while quota.has_room("one"):
        quota.add("one")
    assert quota.amount_of("one") == limit // 2


@given(limit=st.integers(1, 10_000), steps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 500))))
def test_whoever_has_nothing_gets_something_while_anything_is_left(limit: int, steps: list[tuple[int, int]]) -> None:
    quota = Quota(limit)
    for holder, amount in steps:
        if quota.has_room(holder, amount):
            quota.add(holder, amount)
            assert quota.amount_of(holder) <= limit - quota.used
    assert quota.used <= limit
    assert quota.has_room("newcomer") == (limit - quota.used >= 2)


@given(amounts=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9))))
def test_what_was_added_can_be_removed(amounts: list[tuple[int, int]]) -> None:
    quota = Quota(10_000)
    for holder, amount in amounts:
        quota.add(holder, amount)
    for holder, amount in amounts:
        quota.remove(holder, amount)
    assert (quota.used, *(quota.amount_of(holder) for holder in range(4))) == (0, 0, 0, 0, 0)
    assert not quota._held


def test_what_has_no_size_is_held_and_given_back_like_anything_else() -> None:
    quota = Quota(10)
    for amount in (0, 0, 3):
        quota.add("a", amount)
    for amount in (0, 3, 0):
        quota.remove("a", amount)
    assert (quota.used, quota.amount_of("a")) == (0, 0)
