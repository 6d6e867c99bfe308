"""How many tokens the tools of a server are: counted by somebody else, told to the registry by a message."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import trio

from actors.catalogue.offer import Offer
from actors.catalogue.snapshot import Entry
from actors.kit import Conditions, is_want, persist

log = logging.getLogger(__name__)

Counter = Callable[[Offer], Awaitable[tuple[dict[str, int], bool]]]
"""Counts the tokens of each tool of an offer; the flag says whether the counts are exact."""

UNCOUNTED = "its tokens are not counted: a bug of this daemon, whose log says more"


class Uncountable(msgspec.Struct, frozen=True):
    """A bug of ours keeps the tokens of one server's tools from being counted."""

    server: str


class Counted(msgspec.Struct, frozen=True):
    """The tokens of one server's tools are counted, for exactly this offer."""

    server: str
    offer: Offer
    counts: dict[str, int]
    exact: bool


def is_counted(offer: Offer) -> bool:
    return offer.tokens_exact and offer.token_counts.keys() >= {tool.name for tool in offer.tools}


def has_same_tools(before: Offer, after: Offer) -> bool:
    return before.tools == after.tools  # quick: a tool that did not change is the same object


async def count(counter: Counter, server: str, offer: Offer) -> Counted | Uncountable:
    """Count now. Raises only what `is_want` tells."""
    try:
        return Counted(server, offer, *await counter(offer))
    except Exception as error:
        if is_want(error):
            raise
        log.exception("a bug while counting the tokens of %s", server)
        return Uncountable(server)


class Counting:
    """Counts the tokens of one server after the other, and tells of each."""

    def __init__(self, counter: Counter, conditions: Conditions) -> None:
        self._counter = counter
        self._conditions = conditions
        self._uncounted: dict[str, Offer] = {}
        self._wanted = trio.Event()

    def want(self, entries: Mapping[str, Entry]) -> None:
        """Have those entries counted that are not."""
        self._uncounted.update({name: entry.offer for name, entry in entries.items() if not is_counted(entry.offer)})
        self._wanted.set()

    async def run(self, tell: Callable[[Counted | Uncountable], Awaitable[None]]) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            while self._uncounted:
                server, offer = self._uncounted.popitem()
                await tell(await persist(self._conditions, "token counts", count, self._counter, server, offer))
