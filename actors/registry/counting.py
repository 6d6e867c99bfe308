"""How many tokens the tools of a server are: counted by somebody else, told to the registry by a message."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from actors.catalogue.offer import Offer
from actors.kit import is_want

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
