"""Results that share a budget: each waits for the others, none has more than its own, and nothing is left over."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from supervisor.service.results.keeper import BudgetShare, SharedBudget


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 500), st.integers(0, 5)), min_size=1, max_size=10))
def test_the_largest_budget_is_shared_and_never_exceeded(results: list[tuple[int, int, int]]) -> None:
    shares: dict[int, int] = {}

    async def take(budget: SharedBudget, place: int, tokens: int, most: int, after: int) -> None:
        share = BudgetShare(budget, place)
        await trio.sleep(after)
        shares[place] = await share.take(tokens, most)
        share.leave()

    async def main() -> None:
        budget = SharedBudget(len(results))
        async with trio.open_nursery() as nursery:
            for place, (tokens, most, after) in enumerate(results):
                nursery.start_soon(take, budget, place, tokens, most, after)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert all(shares[place] <= min(tokens, most) for place, (tokens, most, _) in enumerate(results))
    wanted = sum(min(tokens, most) for tokens, most, _ in results)
    assert sum(shares.values()) == min(wanted, max(most for _, most, _ in results))


async def test_a_call_without_a_result_is_not_waited_for(autojump_clock: MockClock) -> None:
    budget = SharedBudget(3)
    with trio.move_on_after(1) as waited:
        await BudgetShare(budget, 0).take(700, 500)
    assert waited.cancelled_caught
    budget.leave(1)
    budget.leave(1)
    with trio.fail_after(1):
        assert await budget.share(2, 100, 500) == 100
