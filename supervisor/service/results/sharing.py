"""What the results of several calls of one request have together: a budget of tokens, and a number of bytes.

Each result waits until all others are there, or will not come: then it is known how much each may have. The budget is
the largest that any of the calls has alone; none has more than its own, and what one does not need goes to the others
(`actors.kit.fairness.quota`).

All results are held until the last is there, also where no budget is set, and joined as one: so their bytes are
bounded, too, first come, first served.
"""

from __future__ import annotations

from typing import Final

import trio

from actors.kit.fairness.quota import divide

MAX_BYTES: Final = 32 * 1024 * 1024
"""Of the results of one request together: two of the largest that a server may send."""


class SharedBudget:
    """The budget of so many calls, by their places."""

    def __init__(self, calls: int) -> None:
        self._awaited = {*range(calls)}
        self._wanted: dict[int, tuple[int, int]] = {}
        self._shares: dict[int, int] = {}
        self._known = trio.Event()
        self._held = 0

    def hold(self, size: int) -> bool:
        """Say whether a result of so many bytes has room beside those before it; then it takes that."""
        if self._held + size > MAX_BYTES:
            return False
        self._held += size
        return True

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

    def hold(self, size: int) -> bool:
        return self._whole.hold(size)

    def leave(self) -> None:
        self._whole.leave(self._place)
