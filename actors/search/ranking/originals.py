"""Copies of one tool change places, so that the likely original comes first; see `documents.copies`. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from actors.search.documents.copies import NAME, TEXT
from actors.search.documents.index import Index
from actors.search.language.text import stem, words

_CLEARLY = 0.2  # so much more than another must a server copy, or nothing is concluded from it
_CROWD = 4
"""So many copies push an original out of the first three. From here on the size of their servers counts, too: nobody
offers twenty tools to pass one off."""
_MAX_DESCRIPTION_CHARS = 300


def originals_first(index: Index, asked: set[str], ordered: Sequence[int], exact: Mapping[int, float]) -> Sequence[int]:
    """Let copies change places: exact hits with one name, and of the others those with one text, if they are many.

    `asked` are the stems of the query.
    """

    def by_name(number: int) -> tuple[int, int] | None:
        return (int(exact[number]), int(index.prints[number, NAME])) if number in exact else None

    def by_text(number: int) -> int | None:
        return None if number in exact else int(index.prints[number, TEXT]) or None

    if len(exact) > 1:
        ordered = _sort_groups(index, asked, ordered, by_name, 2)
    return _sort_groups(index, asked, ordered, by_text, _CROWD) if _is_crowded(index.prints[ordered, TEXT]) else ordered


def _is_crowded(prints: npt.NDArray[np.int64]) -> bool:
    """Say whether so many have the same text that copies change places; hardly ever, and it is soon seen."""
    ordered = np.sort(prints)
    last = ordered[_CROWD - 1 :]
    return bool(((last == ordered[: len(last)]) & (last != 0)).any())


def _sort_groups(
    index: Index, asked: set[str], ordered: Sequence[int], group: Callable[[int], Hashable | None], least: int
) -> list[int]:
    """Return the documents with those of each group in places changed among themselves.

    `group` is None for a document that is no copy. Of each server the first of a group takes part: a server does not
    copy from itself. Groups of fewer than `least` documents stay as they are. Those whose server is asked for by name
    come first; then those whose server copies clearly less than the others', or, of a crowd, does not have clearly
    fewer documents.
    """
    places: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for place, number in enumerate(ordered):
        if (key := group(number)) is not None:
            places[key].setdefault(int(index.segment_of[number]), place)
    out = list(ordered)
    for by_server in places.values():
        if len(by_server) < least:
            continue
        servers = list(by_server)
        fewest = index.copied[servers].min() + _CLEARLY
        most = index.sizes[servers].max() if len(servers) >= _CROWD else 0
        keys = {
            ordered[place]: (
                -_words_asked_for(index, asked, ordered[place]),
                bool(index.copied[own] >= fewest),
                bool(2 * index.sizes[own] < most),
            )
            for own, place in by_server.items()
        }
        for place, number in zip(by_server.values(), sorted(keys, key=keys.__getitem__), strict=True):
            out[place] = number
    return out


def _words_asked_for(index: Index, asked: set[str], number: int) -> int:
    """Return how many words of its server's name ask for that server; what the tool says of itself does not."""
    own = index.segments[index.segment_of[number]].server_words
    if not own <= asked:
        return 0
    document = index.documents[number]
    return len(own - {stem(word) for word in words(f"{document.name} {document.description[:_MAX_DESCRIPTION_CHARS]}")})
