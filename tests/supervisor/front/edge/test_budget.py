"""The bytes of requests that the daemon holds, and how often a client may do something."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import MailboxFull
from supervisor.front.edge.budget import FREE_BYTES, Budget, Share
from supervisor.front.edge.wire import Allowance


def test_a_small_request_always_has_room() -> None:
    budget = Budget(0)
    for _ in range(1000):
        budget.share().grow(FREE_BYTES)
    assert budget.used == 0


def test_a_body_that_is_alone_may_take_all_there_is() -> None:
    budget = Budget(1000)
    with budget.share() as share:
        share.grow(FREE_BYTES + 1000)
        assert budget.used == 1000
        with pytest.raises(MailboxFull) as caught:
            share.grow(1)
        assert caught.value.data() == {
            "type": "overloaded",
            "outcome": "not_sent",
            "retryable": True,
            "retry_after_ms": 1000,
        }
    assert budget.used == 0


def test_whoever_has_been_sending_for_the_longest_gives_way() -> None:
    budget = Budget(1000)
    gone: list[str] = []
    shares = {name: budget.share(partial(gone.append, name)) for name in ("done", "oldest", "older", "new")}
    for name in ("done", "oldest", "older"):
        shares[name].grow(FREE_BYTES + 300)
    shares["done"].complete()
    shares["new"].grow(FREE_BYTES + 300)
    assert (gone, budget.used, budget.refused) == (["oldest"], 900, 1)
    assert shares["oldest"].taken_away
    with pytest.raises(MailboxFull):
        shares["oldest"].grow(1)


def test_what_is_complete_is_not_taken_away() -> None:
    budget = Budget(1000)
    held = budget.share(lambda: pytest.fail("it was complete"))
    held.grow(FREE_BYTES + 1000)
    held.complete()
    with pytest.raises(MailboxFull):
        budget.share().grow(FREE_BYTES + 1)
    held.close()
    budget.share().grow(FREE_BYTES + 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400_000), st.booleans(), st.booleans())))
def test_what_is_held_is_never_more_than_the_limit_and_never_less_than_nothing(
    steps: list[tuple[int, int, bool, bool]],
) -> None:
    budget = Budget(500_000)
    shares: dict[int, Share] = {}
    for place, size, completes, closes in steps:
        share = shares.setdefault(place, budget.share())
        try:
            share.grow(size)
        except MailboxFull:
            closes = True
        if completes:
            share.complete()
        if closes:
            share.close()
            del shares[place]
        assert 0 <= budget.used <= 500_000
    for share in shares.values():
        share.close()
    assert budget.used == 0


def test_an_allowance_is_so_many_a_second_and_a_seconds_worth_at_once() -> None:
    allowed = Allowance(10, now=0.0)
    assert [allowed.spend(0.0) for _ in range(11)] == [True] * 10 + [False]
    assert [allowed.spend(0.25) for _ in range(3)] == [True, True, False]
    assert [allowed.spend(100.0) for _ in range(11)] == [True] * 10 + [False]


def test_a_request_that_has_arrived_is_held_until_it_is_answered() -> None:
    budget = Budget(1000)
    assert budget.hold(FREE_BYTES) is None
    share = budget.hold(FREE_BYTES + 1000)
    assert share is not None
    with share:
        with pytest.raises(MailboxFull):
            budget.hold(FREE_BYTES + 1)
        assert (budget.used, budget.refused, share.taken_away) == (1000, 1, False)
    assert budget.used == 0
