"""Reading a kept result: what an address asks for, and the lines that answer it within a budget of tokens. Pure.

`mcpvisor-result://ID` has the beginning, `?lines=120-180` (also `120-`, `120`, and `-20` for the last twenty) these
lines, `?search=WORDS` the lines that have these words, `?path=$.items[0]` a part of JSON. A search or a path may be
narrowed by `&lines=`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from actors.errors import InvalidArguments
from supervisor.metatools.texts import estimate_tokens
from supervisor.service.results import paths
from supervisor.service.results.long_text import LongText, as_text, long_text

SCHEME: Final = "mcpvisor-result://"
MAX_SEARCH_CHARS: Final = 500
_QUERY: Final = re.compile(r"[?&](lines|search|path)=")
_LINES: Final = re.compile(r"(?P<first>[1-9]\d{0,8})(?:(?P<open>-)(?P<last>[1-9]\d{0,8})?)?|-(?P<end>[1-9]\d{0,8})")
HOW: Final = "?lines=1-80, ?search=WORDS or, of JSON, ?path=$.items[0:5]"
_PLAIN: Final = " /:=+'\",;()[]{}<>$*@!|"
"""What need not be quoted in the words of a search."""
_ALL: Final = (1, 1_000_000_000)


class PartQuery(msgspec.Struct, frozen=True):
    """`id` of a result; `lines` from the end, if the first is negative."""

    id: str
    lines: tuple[int, int] = _ALL
    search: str = ""
    path: str = ""


class ResultPart(msgspec.Struct, frozen=True):
    """`text` is what was asked for, as it is there; `note` says which part that is and how to go on."""

    text: str
    note: str
    is_json: bool = False


def read_address(uri: str) -> PartQuery:
    """Return what an address asks for. Raises `InvalidArguments`."""
    places = [*_QUERY.finditer(uri)]
    id_ = uri[len(SCHEME) : places[0].start() if places else len(uri)]
    ends = [*(place.start() for place in places[1:]), len(uri)]
    given = {place[1]: unquote(uri[place.end() : end]) for place, end in zip(places, ends, strict=False)}
    if "?" in id_ or "&" in id_:
        raise InvalidArguments(f"a result is read by {HOW}")
    search = given.get("search", "")
    if len(search) > MAX_SEARCH_CHARS or "\n" in search:
        raise InvalidArguments(f"'search' takes words of one line, {MAX_SEARCH_CHARS} characters at the most")
    return PartQuery(
        id_.strip("/"), _lines(given["lines"]) if "lines" in given else _ALL, search, given.get("path", "")
    )


def answer(kept: LongText, asked: PartQuery, tokens: int) -> ResultPart:
    """Return what an address asks for, as much as fits. Raises `InvalidArguments` for what is not there."""
    kept = _part(kept, asked.path) if asked.path else kept
    first, last = asked.lines
    first, last = (max(1, kept.lines + first + 1), kept.lines) if first < 0 else (first, min(last, kept.lines))
    if first > kept.lines:
        raise InvalidArguments(f"there are {kept.lines} lines only")
    if asked.search:
        return _search(kept, asked, first, last, tokens)
    shown = kept.last_within(first, last, tokens)
    text = as_text(kept.between(first, shown))
    more = f"; go on with lines={shown + 1}-{last}" if shown < last else ""
    whole = kept.is_json and first == 1 and shown == kept.lines
    return ResultPart(text, f"lines {first}-{shown} of {kept.lines}{more}", whole)


def _lines(text: str) -> tuple[int, int]:
    match = _LINES.fullmatch(text.strip())
    if match is None:
        raise InvalidArguments("'lines' is a number or a range of lines, as in lines=120-180, lines=120- or lines=-20")
    if match["end"]:
        return -int(match["end"]), _ALL[1]
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else _ALL[1] if match["open"] else first
    if last < first:
        raise InvalidArguments(f"'lines' ends before it begins: {first}-{last}")
    return first, last


def _part(kept: LongText, path: str) -> LongText:
    if not kept.is_json:
        raise InvalidArguments("this result is not read as JSON: it is none, or too large; use lines or search")
    try:
        value = paths.select(kept.value(), paths.read(path))
    except paths.BadPath as error:
        raise InvalidArguments(str(error)) from None
    return long_text(value.encode() if isinstance(value, str) else msgspec.json.encode(value))


def _search(kept: LongText, asked: PartQuery, first: int, last: int, tokens: int) -> ResultPart:
    """Return the lines that have the words, each with its number."""
    rows: list[str] = []
    for number in kept.lines_with(asked.search, first, last):
        row = f"{number}: {as_text(kept.between(number, number)).rstrip()}"
        tokens -= estimate_tokens(row)
        if rows and tokens < 0:
            following = f"search={quote(asked.search, safe=_PLAIN)}&lines={number}-{last}"
            return ResultPart("\n".join(rows), f"{_count(rows)}; go on with {following}")
        rows.append(row)
    if not rows:
        return ResultPart("", f"no line from {first} to {last} has {asked.search!r}")
    return ResultPart("\n".join(rows), f"{_count(rows)}, the end")


def _count(rows: list[str]) -> str:
    return f"{len(rows)} line{'s' if len(rows) > 1 else ''}"
