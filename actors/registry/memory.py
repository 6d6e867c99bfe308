"""What the registry has kept of servers beyond the life of the daemon, and when what they offer is saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from actors.catalogue.offer import Offer
from actors.messages import EraLearned

SAVE_AGAIN_S: Final = 3600.0
"""By how much the time of the last reading may be wrong in the store."""


class Memory(Protocol):
    """What outlives the daemon. Saving never waits and never fails."""

    def save_offer(self, server: str, offer: Offer) -> None:
        """Keep what a server offers."""

    def forget(self, server: str) -> None:
        """Drop what is kept of a server."""

    def save_era(self, server: str, fact: EraLearned) -> None:
        """Keep which era a server speaks."""


class OfferSaver:
    """Saves offers in the `memory`, by launch. `clock` gives unix time."""

    def __init__(self, memory: Memory, clock: Callable[[], float]) -> None:
        self._memory = memory
        self._clock = clock
        self._saved_at: dict[str, float] = {}

    def save(self, server: str, offer: Offer) -> None:
        if offer.tools or not offer.partial:
            self._saved_at[server] = self._clock()
            self._memory.save_offer(server, offer)

    def save_again(self, server: str, offer: Offer) -> None:
        """Save what is saved already, as only the time of its reading is new, now and then."""
        if not 0 <= self._clock() - self._saved_at.get(server, 0.0) < SAVE_AGAIN_S:  # or the clock was set back
            self.save(server, offer)

    def forget(self, server: str) -> None:
        self._saved_at.pop(server, None)
        self._memory.forget(server)
