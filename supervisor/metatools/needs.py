"""What `discover_mcp_tools` answers to several needs: one page that they share, within one budget of tokens. Pure.

Rows are given out in rounds: the best of each need, then the second best of each. A need that has no more leaves its
turn to the others, and a tool that several need is there once. Where tokens are missing, the last round goes first; one
row of each need stays. A row that long names make longer than a need's equal part of the page is there only if the
others leave it room. Then the best of each need gets its schema, each from an equal part of what is left, and what one
does not need goes to the others. Of what fits a need hardly at all it has one row.

On the page the rows stand by needs. A row says which of the `queries` it is for, counted from 1, where that is not the
same as for the row above it.

Several needs in one query make a page that is led by what fits one of them. Which of the others nothing answers is
said: a model would not see that it was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from actors.catalogue.documents import document_of
from actors.catalogue.names import Resolved
from actors.search.document import Document, Found, Hit
from actors.search.query import clauses
from supervisor.metatools.inventory import Item, Listing, Position, encode_cursor
from supervisor.metatools.lists import MAX_WORDS_SHOWN, line_of
from supervisor.metatools.page import AIM, ASK, KEPT, LONG_TOKENS, Context, Row, row_of, sentences
from supervisor.metatools.servers import FITS, NOTHING
from supervisor.metatools.texts import estimate_tokens, shorten_to_tokens

_MAX_CHARS = 160
"""A longer query tells of circumstances, too: a sentence of it need not be a need."""
_MAX_NEEDS = 3
"""Each is searched for by itself."""
_SHOWN = (60, 30)


def needs(query: str) -> tuple[str, ...]:
    """Return the needs of a query that has two or three, as they are written; nothing for any other."""
    if len(query) > _MAX_CHARS:
        return ()
    parts = clauses(query)
    return tuple(clause.text for clause in parts) if 0 < len(parts) <= _MAX_NEEDS else ()


def unmet(query: str, ranking: Found, search: Callable[[str], Found]) -> tuple[str, ...]:
    """Return the needs, as they were written, for which `search` finds nothing at all; `ranking` is for all of them."""
    if not ranking.hits or ranking.hits[0].distance >= FITS or ranking.hits[0].exact:
        return ()
    return tuple(need for need in needs(query) if _best(search(need)) >= NOTHING)


def unmet_sentence(missing: tuple[str, ...]) -> str:
    """Return that nothing seems to answer these needs, in words; empty for none."""
    if not missing:
        return ""
    return f"No description matches {_quoted(missing)} well."


def _quoted(needs: Iterable[str]) -> str:
    return " and ".join(repr(shorten_to_tokens(" ".join(need.split()), *_SHOWN)) for need in needs)


def _best(ranking: Found) -> float:
    return min((hit.distance for hit in ranking.hits), default=1.0)


_ECHO: Final = (80, 24)
"""Characters and tokens of each need that is repeated."""
_FRAME_TOKENS: Final = 30
"""What is on such a page beside that of one need: `queries`, `next_cursor`."""
_MARK_TOKENS: Final = 6
"""Which need a row is for; one more need takes two more."""
_ROW_TOKENS: Final = 100
"""A row may be as long as that in any case; that takes long names, or a page that is too small for the needs."""
_CURSOR_TOKENS: Final = 100
_UNLISTED_TOKENS: Final = 28
"""How much of a list is shown, beside its query."""
_SAID_TOKENS: Final = 60
"""Of which needs rows are missing, and why; of how many rows, and of schemas beside their paths, a third of that."""


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """One of several: the `hits` that fit it, or the list that it asks for. `total`: how many there are.

    `tool` is the one that it means as a path; `sure`: it is about servers alone, so that nothing need fit. `remark` is
    said of it, `missing` are its parts for which there is nothing.
    """

    query: str
    total: int
    hits: Sequence[Hit] = ()
    tool: Resolved | None = None
    sure: bool = False
    listing: Listing | None = None
    remark: str = ""
    missing: Sequence[str] = ()

    @property
    def best(self) -> float:
        """The distance of what fits it best; 0 where it need not fit, 1 where there is nothing."""
        if self.listing is not None or (self.sure and self.hits):
            return 0.0
        return self.hits[0].distance if self.hits else 1.0


class _Place:
    """A row, and which needs it is for, by their places. `first`: it is the best one of the first of them. `opens`: it
    gets its schema, if there is room.
    """

    def __init__(self, row: Row, key: str, need: int, *, first: bool) -> None:
        self.row = row
        self.key = key
        self.needs = [need]
        self.first = first
        self.opens = False


def needs_page(
    context: Context,
    needs: Sequence[Need],
    limit: int,
    milliseconds: float,
    about: frozenset[str],
    likely: frozenset[str],
) -> dict[str, Any]:
    """Return the answer's object, of `limit` rows at most. `about`, `likely`: servers to tell of; see `build_page`."""
    notice = _notice(context, needs, about, likely)
    echo = [shorten_to_tokens(need.query, *_ECHO) for need in needs]
    frame = context.frame(echo[0], sum(need.total for need in needs), milliseconds, notice)
    frame = {**({"notice": notice} if notice else {}), "queries": echo, **frame}
    left = context.row_budget(frame) - _FRAME_TOKENS - sum(map(estimate_tokens, echo)) - _list_tokens(needs)
    chosen, long = _choose(context, needs, limit, max(left // len(needs), _ROW_TOKENS))
    shown = _fill(context, chosen, long, left - _SAID_TOKENS if long else left)
    frame["tools"] = _rows(needs, shown)
    said = sentences(
        notice,
        _unlisted(context, needs, shown, frame),
        _long_schemas(shown),
        _left_out({number for place in long if place not in shown for number in place.needs}),
        "" if notice else _more([*chosen, *long], shown),
    )
    return {**frame, "notice": said} if "notice" in frame else {"notice": said, **frame} if said else frame


def _choose(context: Context, needs: Sequence[Need], limit: int, most: int) -> tuple[list[_Place], list[_Place]]:
    """Return the rows of all needs, round by round, each once, and of each need the first one of over `most` tokens.

    Such a row leaves its turn to the next of its need. A list ends before it, as it is read on from its last row.
    """
    places: dict[str, _Place] = {}
    long: dict[str, _Place] = {}
    lacking = set[int]()
    turns = [iter(_supply(context, need)) for need in needs]
    given = [0] * len(needs)
    open_ = [*range(len(needs))]
    while open_ and len(places) < limit:
        for number in [*open_]:
            for thing in turns[number]:
                key = _key(thing)
                if (known := places.get(key)) is not None:
                    known.needs.append(number)
                    break
                if len(places) >= limit:
                    break
                place = _place(context, needs[number], number, given[number], thing)
                if place.row.fit(most) and not _is_far(thing):
                    places[key] = place
                    break
                if isinstance(thing, Item):
                    open_.remove(number)
                    break
                if number not in lacking:
                    lacking.add(number)
                    long.setdefault(key, place).needs.append(number)
            else:
                open_.remove(number)
            given[number] += 1
    return [*places.values()], [*long.values()]


def _is_far(thing: Hit | Item) -> bool:
    """Say whether the cursor behind a row of a list is too long, as it has the name."""
    return isinstance(thing, Item) and estimate_tokens(encode_cursor(thing.at)) > _CURSOR_TOKENS


def _supply(context: Context, need: Need) -> Iterator[Hit | Item]:
    return iter(need.hits) if need.listing is None else need.listing.items(context.seen)


def _key(thing: Hit | Item) -> str:
    document: Document = thing.document if isinstance(thing, Hit) else document_of(thing.at.server, thing.thing)
    return f"{document.kind} {document.key}"


def _place(context: Context, need: Need, number: int, rank: int, thing: Hit | Item) -> _Place:
    if isinstance(thing, Item):
        return _Place(Row(line_of(context, thing)), _key(thing), number, first=not rank)
    place = _Place(row_of(context, thing, need.tool, first=not rank), _key(thing), number, first=not rank)
    place.opens = thing.distance < FITS
    if rank >= KEPT and not place.opens:
        place.row.shrink()
    if need.best >= NOTHING:
        place.row.name()
    return place


def _fill(context: Context, chosen: Sequence[_Place], long: Sequence[_Place], left: int) -> list[_Place]:
    """Return the places whose rows fit, filled with what matters most; a `long` row takes what the others leave."""
    shown, needs = [*chosen], {number for place in chosen for number in place.needs}
    first = sum(place.first for place in chosen)
    aim = left - context.budget * (1 - AIM)
    left -= _MARK_TOKENS * len(needs) + sum(_mark_tokens(place) for place in shown)
    left = _shrink([place.row for place in shown], left - sum(place.row.tokens for place in shown))
    if left < 0:
        left -= _SAID_TOKENS // 3
    while left < 0 and len(shown) > first:
        gone = shown.pop()
        left += gone.row.tokens + _mark_tokens(gone)
    for place in sorted(long, key=lambda place: place.row.tokens):
        if place.row.tokens + _MARK_TOKENS <= left:
            left -= place.row.tokens + _MARK_TOKENS
            shown.insert(0, place)
            first += 1
    best = [place.row for place in shown if place.first and place.opens]
    for rank, row in enumerate(best):
        left -= row.complete_within(left // (len(best) - rank))
    others = [place.row for place in shown[first:]]
    for row in best:
        if row.is_signature:
            left -= row.complete_within(left + sum(max(0, other.spare) for other in others))
            left = _shrink(others, left)
    if any(row.is_signature for row in best):
        left -= LONG_TOKENS + _SAID_TOKENS // 3
    spare = min(left, int(aim) - sum(place.row.tokens for place in shown))
    for place in shown:
        if place.opens:
            spare -= place.row.complete_within(spare)
    return shown


def _shrink(rows: Sequence[Row], left: int) -> int:
    """Make lines terse, the last first, until no token is missing; return what is left."""
    for row in reversed(rows):
        if left >= 0:
            break
        left += row.shrink()
    return left


def _mark_tokens(place: _Place) -> int:
    """Return what it takes at most to say which needs a row is for that several have, and that the next is not."""
    return 2 * (_MARK_TOKENS + 2 * len(place.needs)) if len(place.needs) > 1 else 0


def _rows(needs: Sequence[Need], shown: Sequence[_Place]) -> list[dict[str, Any]]:
    """Return the rows by needs, each with which needs it is for where that differs from the row above it."""
    rows: list[dict[str, Any]] = []
    above: list[int] = []
    for number in range(len(needs)):
        for place in shown:
            if place.needs[0] == number:
                asked = sorted(each + 1 for each in place.needs)
                rows.append(place.row.value if asked == above else {**place.row.value, "queries": asked})
                above = asked
    return rows


def _notice(context: Context, needs: Sequence[Need], about: frozenset[str], likely: frozenset[str]) -> str:
    """Say why servers cannot be used, what is to be said of a need, and for which there is nothing, or nothing sure."""
    fits = any(need.best < FITS for need in needs)
    remarks = sentences(*dict.fromkeys(need.remark for need in needs))
    told = sentences(context.unusable(about, likely if fits else frozenset()), remarks)
    if not context.seen.visible:
        return sentences(told, context.no_tools(about))
    none = [need.query for need in needs if need.best >= NOTHING and not need.sure]
    unsure = [need.query for need in needs if FITS <= need.best < NOTHING]
    parts = [part for need in needs for part in need.missing]
    near = f"Not sure that anything fits {_quoted(unsure)}; nearest first." if unsure else ""
    down = context.others_down(about) if none or unsure else ""
    there = ""
    if none and not fits:
        servers = context.servers()
        there = sentences(f"Servers: {servers}." if servers else "", f"{ASK}; or '*' lists all.")
    unlisted = [need for need in needs if need.listing is not None and not need.total]
    empty = [need.query for need in unlisted if not need.remark and not need.sure]
    nothing = f"Nothing to list for {_quoted(empty)}." if empty else ""
    return sentences(told, nothing, unmet_sentence((*none, *parts)), near, there, down)


def _unlisted(context: Context, needs: Sequence[Need], shown: Sequence[_Place], frame: dict[str, Any]) -> str:
    """Say of each list that is not at its end how much of it is shown; the first such list goes on by `next_cursor`."""
    told = []
    for number, need in enumerate(needs):
        if need.listing is None:
            continue
        keys = {place.key for place in shown if number in place.needs}
        count, last = _listed(context, need.listing, keys)
        if count == need.total:
            continue
        how = "for the rest ask it alone"
        if last is not None and "next_cursor" not in frame:
            frame["next_cursor"] = encode_cursor(last)
            how += " with 'cursor' set to next_cursor"
        told.append(f"{shorten_to_tokens(need.query, *MAX_WORDS_SHOWN)!r}: {count} of {need.total}; {how}.")
    return sentences(*told)


def _listed(context: Context, listing: Listing, keys: set[str]) -> tuple[int, Position | None]:
    """Return how many of a list are shown from its beginning on, and which is the last of them."""
    last: Position | None = None
    for count, item in enumerate(islice(listing.items(context.seen), len(keys) + 1)):
        if _key(item) not in keys:
            return count, last
        last = item.at
    return (0 if last is None else count + 1), last


def _list_tokens(needs: Sequence[Need]) -> int:
    """Return what it takes at most to say how much of each list is shown, and where the first goes on."""
    lists = [shorten_to_tokens(need.query, *MAX_WORDS_SHOWN) for need in needs if need.listing is not None]
    return _CURSOR_TOKENS * bool(lists) + sum(_UNLISTED_TOKENS + estimate_tokens(query) for query in lists)


def _left_out(needs: Iterable[int]) -> str:
    numbers = ", ".join(str(number + 1) for number in sorted(needs))
    return f"Too long for this page by their names: rows of queries {numbers}; ask these alone." if numbers else ""


def _long_schemas(shown: Sequence[_Place]) -> str:
    paths = [place.row.value["tool_path"] for place in shown if place.first and place.opens and place.row.is_signature]
    if not paths:
        return ""
    named, left = list[str](), LONG_TOKENS
    for path in paths:  # whole, as a part of it means nothing
        if (cost := estimate_tokens(path) + 1) <= left:
            named.append(path)
            left -= cost
    more = len(paths) - len(named)
    told = f"{', '.join(named)} and {more} more" if named and more else ", ".join(named) or f"{more} rows"
    return f"Long inputSchema: {told}; a path alone as query gives it."


def _more(chosen: Sequence[_Place], shown: Sequence[_Place]) -> str:
    if len(shown) == len(chosen):
        return ""
    return f"{len(shown)} of {len(chosen)} shown, to save tokens; ask fewer needs at once for more of each."
