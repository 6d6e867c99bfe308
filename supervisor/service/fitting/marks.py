"""Whether a JSON text has one of some names in quotes, at the cost of a scan. Pure.

What makes a text large is mostly one string, an image or a page. There are few quotes then, and to go from one to the
next is several times as fast as to look for each name.
"""

from __future__ import annotations

from typing import Final

LARGE_BYTES: Final = 65_536
MAX_QUOTES: Final = 4096


def holds(text: bytes, marks: tuple[bytes, ...]) -> bool:
    """Say whether a text has one of some marks; each begins with a quote."""
    place = 0
    if len(text) > LARGE_BYTES:
        place = -1
        for _ in range(MAX_QUOTES):
            place = text.find(b'"', place + 1)
            if place < 0 or text.startswith(marks, place):
                return place >= 0
    return any(text.find(mark, place) >= 0 for mark in marks)
