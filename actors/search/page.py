"""From scores to one page of hits: exact names first, not too many of one server, ties in an order of their own. Pure.

What a server writes about itself earns it no more than half a page, and one place among the exact names: however many
spellings of a name it offers, those of the others stay in sight.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
import numpy.typing as npt

from actors.search import tuning
from actors.search.document import Document, Found, Hit
from actors.search.index import Index
from actors.search.postings import Bools, Floats, Ints
from actors.search.scoring import Scores
from actors.search.segment import NAME, TEXT
from actors.search.text import squash, stem, words

# Copies of one tool change places, so that the likely original comes first.


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


# Documents of equal score in the order that somebody prefers.
#
# Equal is the same score to the last bit: the ranking computes alike what is alike, so there is no error to allow for.
# A difference, however small, says something about which document is meant (see `docs/background/search-ties.md`).

Prefer = Callable[[Document], int]
"""How much a document is preferred to its equals: those with more come first."""
DEPTH: Final = 256
"""So many places, from the first, can change: more than a page shows, and few enough to look at each."""


def order_ties(documents: Sequence[Document], ordered: Ints, values: Floats, ranks: Floats, prefer: Prefer) -> Ints:
    """Return documents in the same order, but for those side by side that have the same value and rank.

    `ordered` are numbers of `documents`; `values` and `ranks` have an element for each document. Of those equally
    preferred, too, the order stays.
    """
    top, rest = ordered[:DEPTH], ordered[DEPTH:]
    own, exact = values[top], ranks[top]
    same = (own[1:] == own[:-1]) & (exact[1:] == exact[:-1])
    if not same.any():
        return ordered
    tied = np.zeros(len(top), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    merits = np.zeros(len(top), np.int64)
    merits[tied] = [prefer(documents[number]) for number in top[tied].tolist()]
    groups = np.concatenate(([0], np.cumsum(~same)))
    return np.concatenate((top[np.lexsort((-merits, groups))], rest))


_OF_MANY_WORDS = 0.4  # the share of `min_matched` that is enough then
_FAMILIAR = 3
_FITS = 0.35  # another server's document fits a page if it scores this share of the one it displaces
_OF_A_SERVER = 20  # documents of one server that are put in order, at least
_MAX_EXACT_CHARS = 300
_MCP_PREFIX = "mcp"
_RUN_TOGETHER, _BY_NAME, _BY_PATH, _AS_WRITTEN = 0.5, 1, 2, 3
_WORD_END = re.compile(r"[\W_]|(?<=[a-z0-9])(?=[A-Z])")

Exact = Mapping[int, float]
"""Number of a document whose name or path is the query to how exactly it is: by name 1, by path 2, as written 3;
by path 0.5 if the query is a single word: where would its server end?"""


def exact_matches(index: Index, query: str, mask: Bools | None) -> Exact:
    """Return the documents whose name or path is the query, punctuation and case aside; by name one of each server.

    A path is server and name with anything between them, with or without the prefix `mcp` of some clients.
    """
    text = squash(query) if len(query) <= _MAX_EXACT_CHARS else ""
    out: dict[int, float] = {}
    for path in (text, text.removeprefix(_MCP_PREFIX)) if text else ():
        for server in index.named.get(path, ()):
            place = index.place(server)
            first, segment = index.firsts[place], index.segments[place]
            named = [first + number for number in segment.by_name.get(text, ())]
            whole = [first + number for number in segment.by_path.get(path, ())]
            by_path = _path_level(query, server)
            for level, numbers in ((_BY_NAME, named), (by_path, whole if by_path else [])):
                visible = [number for number in numbers if mask is None or mask[number]]
                if visible:
                    number = max(visible, key=lambda n: _level(index.documents[n], query, level))
                    out[number] = max(out.get(number, 0), _level(index.documents[number], query, level))
    return out


def _path_level(query: str, server: str) -> float:
    """Return how exactly a query that is a path without its punctuation says it; 0 if the server ends within a word.

    Else a server `cre` with the tool `ate_issue` would be what `create_issue` says.
    """
    ends = {len(squash(query[: end.end()])) for end in _WORD_END.finditer(query.strip())}
    if not ends:
        return _RUN_TOGETHER
    own = len(squash(server))
    return _BY_PATH if own in ends or own + len(_MCP_PREFIX) in ends else 0


def _level(document: Document, query: str, level: float) -> float:
    """Return how exact a match is; half a step more for a name written as the document writes it."""
    asked = query.strip().casefold()
    if level == _BY_PATH:
        written = {document.key.casefold(), f"mcp__{document.server}__{document.name}".casefold()}
        return _AS_WRITTEN if asked in written else _BY_PATH
    return level + 0.5 if level == _BY_NAME and query.strip() == document.name else level


def page(
    index: Index, query: str, scores: Scores | None, exact: Exact, limit: int, prefer: Prefer | None = None
) -> Found:
    """Return the best hits and how many documents match: exactly, or with enough of the query's weight."""
    if scores is None:
        nothing = np.zeros(len(index.documents), np.float32)
        scores = Scores(nothing, nothing, 1.0, nothing)
    enough = scores.matches_enough(tuning.MIN_MATCHED)
    if not enough.any() and _is_long_and_familiar(index, query):
        # So many words describe the world around what is wanted that no tool can explain a seventh of them.
        enough = scores.matches_enough(tuning.MIN_MATCHED * _OF_MANY_WORDS)
    enough[list(exact)] = True
    matching: Ints = np.flatnonzero(enough).astype(np.int32)
    if not len(matching):
        return Found()
    if limit < 1:
        return Found(total=len(matching))
    # Words alone decide who fits, as nearness in meaning is never far from the next.
    values = scores.values if scores.words is None else scores.words
    ordered = _order(index, scores, values, matching, exact, limit, prefer)
    asked = {stem(word) for word in words(query[:_MAX_EXACT_CHARS])}
    ordered = _in_turns(originals_first(index, asked, ordered, exact), exact)
    chosen = _choose(index, asked, ordered, values, exact, limit)
    return Found(hits=_hits(index, chosen, scores, exact), total=len(matching))


def _is_long_and_familiar(index: Index, query: str) -> bool:
    """Say whether a query has as many words as a story, and a third of them occur in the catalogue: it is no noise."""
    asked = words(query)
    known = sum(word in index.vocabulary for word in asked)
    return tuning.SENTENCES_FROM <= len(asked) <= _FAMILIAR * known


def _order(
    index: Index,
    scores: Scores,
    values: Floats,
    matching: Ints,
    exact: Exact,
    limit: int,
    prefer: Prefer | None,
) -> Sequence[int]:
    """Return matching documents in order, as far down as one of another server could fit the page by its `values`."""
    matching_values = values[matching]
    ranks = np.zeros(len(scores.values), np.float32)
    ranks[list(exact)] = np.negative(list(exact.values()))
    if len(matching) > limit:
        least = np.partition(matching_values, len(matching_values) - limit)[len(matching_values) - limit] * _FITS
        kept = (matching_values >= least) | (ranks[matching] < 0)
        matching = matching[kept if scores.near is None else kept | scores.near[matching]]
    ordered = matching[np.lexsort((matching, -scores.values[matching], ranks[matching]))]
    if prefer is not None:
        ordered = order_ties(index.documents, ordered, scores.values, ranks, prefer)
    most = max(limit, _OF_A_SERVER)
    if len(ordered) > most:  # a page takes fewer of one server: of a thousand that tie, the rest is only work
        ordered = ordered[_places_in(index.segment_of[ordered]) < most]
    numbers: list[int] = ordered.tolist()
    return numbers


def _places_in(groups: Ints) -> Ints:
    """Return of each element how many of its group come before it."""
    order = np.argsort(groups, kind="stable")
    sorted_ = groups[order]
    numbers = np.arange(len(groups), dtype=np.int32)
    begins = np.flatnonzero(np.concatenate(([True], sorted_[1:] != sorted_[:-1]))).astype(np.int32)
    sizes = np.diff(np.append(begins, len(groups)))
    places = np.empty(len(groups), np.int32)
    places[order] = numbers - np.repeat(begins, sizes)
    return places


def _in_turns(ordered: Sequence[int], exact: Exact) -> Sequence[int]:
    """Let exact hits by path and by name take turns: with a name a server must not crowd out paths, nor vice versa."""
    if len(exact) < 2:
        return ordered
    written = [number for number in ordered if exact.get(number, 0) >= _AS_WRITTEN]
    by_path = [number for number in ordered if _BY_PATH <= exact.get(number, 0) < _AS_WRITTEN]
    by_name = [number for number in ordered if _BY_NAME <= exact.get(number, 0) < _BY_PATH]
    turns = (by_name, by_path) if by_name and exact[by_name[0]] > _BY_NAME else (by_path, by_name)
    mixed = [number for pair in zip_longest(*turns) for number in pair if number is not None]
    return written + mixed + [number for number in ordered if exact.get(number, 0) < _BY_NAME]


def _choose(
    index: Index, asked: set[str], ordered: Sequence[int], values: Floats, exact: Exact, limit: int
) -> Sequence[int]:
    """Return one page: of each server at most half, unless the query names it or nothing else fits."""
    most = (limit + 1) // 2
    taken: Counter[int] = Counter()
    placed: list[int] = []
    held: list[int] = []
    for rank, number in enumerate(ordered):
        if len(placed) == limit:
            break
        server = int(index.segment_of[number])
        if number not in exact and taken[server] >= most and not _is_named(index, server, asked):
            held.append(rank)
        elif not held or number in exact or values[number] >= _FITS * values[ordered[held[0]]]:
            taken[server] += 1
            placed.append(rank)
    return [ordered[rank] for rank in sorted(placed + held[: limit - len(placed)])]


def _is_named(index: Index, server: int, asked: set[str]) -> bool:
    own = index.segments[server].server_words
    return bool(own) and own <= asked


def _hits(index: Index, chosen: Sequence[int], scores: Scores, exact: Exact) -> tuple[Hit, ...]:
    hits: list[Hit] = []
    distance = 0.0
    for number in chosen:
        value = float(scores.values[number])
        if number not in exact:
            distance = max(distance, 1 - float(scores.chances[number]))
        document = index.documents[number]
        hits.append(Hit(document=document, score=value, distance=distance, exact=number in exact))
    return tuple(hits)
