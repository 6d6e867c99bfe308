"""What the registry has kept of servers beyond the life of the daemon."""

from __future__ import annotations

from typing import Protocol

from actors.catalogue.offer import Offer
from actors.messages import EraLearned


class Memory(Protocol):
    """What outlives the daemon. Saving never waits and never fails."""

    def save_offer(self, server: str, offer: Offer) -> None:
        """Keep what a server offers."""

    def forget(self, server: str) -> None:
        """Drop what is kept of a server."""

    def save_era(self, server: str, fact: EraLearned) -> None:
        """Keep which era a server speaks."""
