"""Places that people share: however many one wants, others get some."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.kit import Shares
from actors.principal import LOCAL, Principal

PEOPLE = [Principal(f"user:{name}") for name in ("ana", "ben", "cem", "dia")]


def take(shares: Shares, principal: Principal, wanted: int) -> int:
    """Take what there is of so many places; return how many."""
    for taken in range(wanted):
        if not shares.has_place(principal):
            return taken
        shares.add(principal)
    return wanted


@given(st.integers(1, 200), st.lists(st.tuples(st.sampled_from(PEOPLE), st.integers(1, 300))))
def test_there_is_a_place_for_whoever_has_none_until_all_are_taken(
    limit: int, wants: list[tuple[Principal, int]]
) -> None:
    shares = Shares(limit)
    for principal, wanted in wants:
        take(shares, principal, wanted)
        assert shares.used <= limit
        assert shares.has_place(Principal("user:eve")) == (shares.used < limit)


def test_nobody_has_more_than_is_left_for_others() -> None:
    shares = Shares(64)
    assert [take(shares, principal, 1000) for principal in PEOPLE] == [32, 16, 8, 4]
    assert shares.why_not(PEOPLE[0], "calls") == (
        "32 calls of yours are open, and the rest of the room is for others: end one of them"
    )
    shares.remove(PEOPLE[1], 16)
    assert shares.has_place(PEOPLE[1])


def test_whoever_is_alone_or_the_operator_may_have_all() -> None:
    shares = Shares(8)
    assert take(shares, LOCAL, 100) == 8
    assert shares.why_not(LOCAL, "calls") == "the limit of 8 calls is reached"
    assert shares.why_not(PEOPLE[0], "calls") == "the limit of 8 calls is reached"
