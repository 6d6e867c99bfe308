"""Counts tokens off the loop: the tokenizer is loaded at first use, in a thread, and counts in a thread.

When every tool of the catalogue was counted before, it is never loaded at all: it costs tens of megabytes.
"""

from __future__ import annotations

from pathlib import Path

import trio

from actors.catalogue.offer import Offer
from supervisor.tokens.tokenizer import Tokenizer, count_tool, load_tokenizer

META_TOKENS = 350
"""What the four definitions cost (cl100k); a test counts them again."""


class TokenCounter:
    """Counts the tools of offers, one offer at a time."""

    def __init__(self, cache: Path, timeout_s: float) -> None:
        self._cache = cache
        self._timeout_s = timeout_s
        self._tokenizer: Tokenizer | None = None
        self._one = trio.CapacityLimiter(1)

    @property
    def name(self) -> str:
        """What counts: an encoding, or `estimate`; empty before the first use."""
        return self._tokenizer.name if self._tokenizer is not None else ""

    async def count(self, offer: Offer) -> tuple[dict[str, int], bool]:
        """Return the tokens of each tool by name, and whether they are exact. A checkpoint."""
        async with self._one:
            if self._tokenizer is None:
                self._tokenizer = await load_tokenizer(self._cache, self._timeout_s)
            counts = await trio.to_thread.run_sync(_count, self._tokenizer, offer)
            return counts, self._tokenizer.exact


def _count(tokenizer: Tokenizer, offer: Offer) -> dict[str, int]:
    return {
        tool.name: count_tool(tokenizer, tool.name, tool.description, bytes(tool.input_schema)) for tool in offer.tools
    }
