"""A bound that people share first, and then the clients of each, who call themselves what they like."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.kit import ClientQuota, Quota
from actors.principal import LOCAL, Principal

BEN, ANA = Principal("ben"), Principal("ana")


@given(limit=st.integers(1, 5_000), names=st.integers(1, 200))
def test_however_many_names_somebody_makes_up_half_is_left(limit: int, names: int) -> None:
    quota = ClientQuota(limit)
    for number in range(limit + names):
        client = (BEN, number % names)
        if quota.has_room(client):
            quota.add(client)
    assert quota.used <= max(1, limit // 2)
    assert limit == 1 or quota.has_room((ANA, ""))


@given(
    limit=st.integers(1, 2_000),
    steps=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 50), st.integers(1, 90)), max_size=60),
)
def test_whoever_comes_has_a_place_and_nobody_more_than_was_left_for_others(
    limit: int, steps: list[tuple[str, int, int]]
) -> None:
    quota = ClientQuota(limit)
    own = dict.fromkeys("abcd", 0)
    for person, name, amount in steps:
        client = (Principal(person), name)
        if quota.has_room(client, amount):
            quota.add(client, amount)
            own[person] += amount
            assert own[person] <= limit - quota.used or own[person] == 1
        assert quota.has_room((Principal("new"), "")) == (quota.used < limit)
    assert quota.used == sum(own.values()) <= limit


@given(limit=st.integers(2, 2_000), taken=st.lists(st.sampled_from("abc"), max_size=50))
def test_the_clients_of_one_who_is_alone_share_as_all_would(limit: int, taken: list[str]) -> None:
    quota, flat = ClientQuota(limit), Quota(limit)
    for name in taken:
        if flat.amount_of(name):
            assert quota.has_room((LOCAL, name)) == flat.has_room(name)
        if flat.has_room(name):
            quota.add((LOCAL, name))
            flat.add(name)


def test_a_program_that_runs_wild_starves_no_other_one_of_the_same_person() -> None:
    quota = ClientQuota(1024)
    while quota.has_room((BEN, "wild")):
        quota.add((BEN, "wild"))
    assert quota.amount_of((BEN, "wild")) == 256
    assert quota.has_room((BEN, "calm"))
    quota.add((BEN, "calm"))
    assert quota.has_room((BEN, "calm"))
