"""What differs between two definitions of a tool, place by place. Pure.

A definition is what its server wrote, so it may be anything: what is no JSON, or nested deeper than any real one, is
compared as a text. The order of members, and how numbers and texts are spelt, is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Any, Final

import msgspec

from actors.protocol.wire import json

MAX_DEPTH: Final = 24
MAX_PARTS: Final = 100
"""Places of one change that are told; a definition that is another one altogether differs in thousands."""
_EITHER_SIDE: Final = 60
_LONGEST: Final = 400


class Part(msgspec.Struct, frozen=True):
    """One place that differs, as `inputSchema.properties.path`; a text is None where nothing was, or is, there."""

    place: str
    before: str | None
    after: str | None


def parts(before: bytes, after: bytes) -> list[Part]:
    """Return what differs, `MAX_PARTS` places at most, in their order by name."""
    return [*islice(_parts("", _read(before), _read(after)), MAX_PARTS)]


def differs(before: bytes, after: bytes) -> bool:
    return any(_parts("", _read(before), _read(after)))


def excerpts(before: str, after: str, most: int = _LONGEST) -> tuple[str, str]:
    """Return two texts, if over `most` characters long, as far as they differ, with some of what is around that."""
    longest = max(len(before), len(after))
    if longest <= most:
        return before, after
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return _excerpt(before, start, end, most), _excerpt(after, start, end, most)


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _excerpt(text: str, start: int, end: int, most: int) -> str:
    first, last = max(0, start - _EITHER_SIDE), min(len(text), len(text) - end + _EITHER_SIDE)
    shown = text[first : min(last, first + most)]
    cut = first + len(shown) < len(text)
    return f"{'...' if first else ''}{shown}{'...' if cut else ''}"


def _read(definition: bytes) -> Any:
    return json.read_or(json.VALUE, definition, definition.decode(errors="replace"))


_NOTHING = object()


def _parts(place: str, before: Any, after: Any, depth: int = 0) -> Iterator[Part]:
    if isinstance(before, dict) and isinstance(after, dict) and depth < MAX_DEPTH:
        for name in sorted(before.keys() | after.keys()):
            below = f"{place}.{name}" if place else name
            yield from _parts(below, before.get(name, _NOTHING), after.get(name, _NOTHING), depth + 1)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and depth < MAX_DEPTH:
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _parts(f"{place}[{number}]", old, new, depth + 1)
    elif (was := _json(before)) != (is_now := _json(after)):
        yield Part(place, _text(before, was), _text(after, is_now))


def _json(value: Any) -> bytes | None:
    return None if value is _NOTHING else msgspec.json.encode(value, order="sorted")


def _text(value: Any, written: bytes | None) -> str | None:
    return value if isinstance(value, str) else None if written is None else written.decode()
