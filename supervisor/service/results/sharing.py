"""The budget of tokens that the results of several calls of one request have together.

Each result waits until all others are there, or will not come: then it is known how much each may have. The budget is
the largest that any of the calls has alone; none has more than its own, and what one does not need goes to the others
(`actors.kit.fairness.division`).
"""

from __future__ import annotations

import trio

from actors.kit.fairness.division import divide


class SharedBudget:
    """The budget of so many calls, by their places."""

    def __init__(self, calls: int) -> None:
        self._awaited = {*range(calls)}
        self._wanted: dict[int, tuple[int, int]] = {}
        self._shares: dict[int, int] = {}
        self._known = trio.Event()

    async def share(self, place: int, tokens: int, budget: int) -> int:
        """Return how many tokens the result of a call may have, which has so many, and alone so large a budget."""
        self._wanted[place] = tokens, budget
        self.leave(place)
        await self._known.wait()
        return self._shares[place]

    def leave(self, place: int) -> None:
        """A call has no result to be shortened any more, or said how large it is."""
        self._awaited.discard(place)
        if self._awaited or self._known.is_set():
            return
        whole = max((budget for _, budget in self._wanted.values()), default=0)
        parts = divide(whole, [min(tokens, budget) for tokens, budget in self._wanted.values()])
        self._shares = dict(zip(self._wanted, parts, strict=True))
        self._known.set()


class BudgetShare:
    """What one call has of it."""

    def __init__(self, whole: SharedBudget, place: int) -> None:
        self._whole = whole
        self._place = place

    async def take(self, tokens: int, budget: int) -> int:
        """See `SharedBudget.share`. A checkpoint."""
        return await self._whole.share(self._place, tokens, budget)

    def leave(self) -> None:
        self._whole.leave(self._place)
