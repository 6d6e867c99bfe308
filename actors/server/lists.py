"""What is known of a server's lists, and when they are read again. No I/O, no trio.

- A list that could not be read leaves what was known of it.
- One empty list of tools may be a hiccup: it counts only if the next reading finds it empty too.
- Changes are debounced, readings have a least interval; at most one is under way and one is owed.
"""

from __future__ import annotations

from actors.catalogue import validation
from actors.catalogue.entries import Offer
from actors.protocol.era import Agreement
from actors.protocol.listing import Listed
from actors.server.settings import ServerSettings


class Lists:
    """`known` is what the catalogue has of the server; `owed`: a reading must follow the one that is under way."""

    def __init__(self, settings: ServerSettings, known: Offer | None) -> None:
        self.known = known
        self.owed = False
        self._debounce_s = settings.relist_debounce_s
        self._interval_s = settings.relist_interval_s
        self._read_at: float | None = None
        self._seen_empty = False

    def begin(self, now: float) -> None:
        """Note that a reading begins; `now` in seconds of the trio clock."""
        self._read_at = now
        self.owed = False

    def next_reading(self, now: float) -> float:
        """Return the moment at which a change that was told of now is read."""
        earliest = self._read_at + self._interval_s if self._read_at is not None else now
        return max(now + self._debounce_s, earliest)

    def take(self, agreement: Agreement, listed: Listed) -> Offer | None:
        """Take what was read; return what to publish, None if it is to be read once more before it counts."""
        offer = validation.offer(agreement, listed)
        if self.known is not None:
            offer = validation.keeping(offer, self.known, listed.missing)
            if self.known.tools and not offer.tools and not self._seen_empty:
                self._seen_empty = self.owed = True
                return None
        self._seen_empty = False
        self.known = offer
        return offer
