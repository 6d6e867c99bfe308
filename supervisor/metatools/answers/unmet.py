"""Which of several needs in one query nothing answers, where something answers the others. Pure.

The page of such a query is led by what fits the other need, so that a model does not see that this one was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from actors.search.document import Found
from actors.search.query import clauses
from supervisor.metatools.servers.unavailable import FITS, NOTHING
from supervisor.metatools.texts import shorten_to_tokens

MAX_CHARS = 160
"""A longer query tells of circumstances, too: a sentence of it need not be a need."""
MAX_NEEDS = 3
"""Each is searched for by itself."""
_SHOWN = (60, 30)


def needs(query: str) -> tuple[str, ...]:
    """Return the needs of a query that has two or three, as they are written; nothing for any other."""
    if len(query) > MAX_CHARS:
        return ()
    parts = clauses(query)
    return tuple(clause.text for clause in parts) if 0 < len(parts) <= MAX_NEEDS else ()


def unmet(query: str, ranking: Found, search: Callable[[str], Found]) -> tuple[str, ...]:
    """Return the needs, as they were written, for which `search` finds nothing at all; `ranking` is for all of them."""
    if not ranking.hits or ranking.hits[0].distance >= FITS or ranking.hits[0].exact:
        return ()
    return tuple(need for need in needs(query) if _best(search(need)) >= NOTHING)


def unmet_sentence(missing: tuple[str, ...]) -> str:
    """Return that nothing seems to answer these needs, in words; empty for none."""
    if not missing:
        return ""
    return f"No description matches {quoted(missing)} well."


def quoted(needs: Iterable[str]) -> str:
    return " and ".join(repr(shorten_to_tokens(" ".join(need.split()), *_SHOWN)) for need in needs)


def _best(ranking: Found) -> float:
    return min((hit.distance for hit in ranking.hits), default=1.0)
