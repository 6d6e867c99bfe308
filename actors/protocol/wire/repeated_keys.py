"""Keys that an object of a JSON text has twice.

Parsers do not agree on such an object: most take the last value, some the first, some refuse it (RFC 8259 section 4).
Whoever is shown one value may so agree to another; hence arguments of calls have each key once, or are refused.

Pure. A small text that stays the same when it is read and written again has each key once: so do nearly all that
programs write. Any other is read by Python's decoder in C, which calls us for each object. A large one is walked
through, in a thread: no single step is long, strings are passed over at the speed of `bytes.find`, and the heaviest
text of `weight.MAX_WEIGHT` takes half a second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.wire.weight import LARGE_BYTES

MAX_SHOWN_CHARS: Final = 100
_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
_OPENING, _CLOSING, _QUOTE = b'{}"'
_MARK = re.compile(rb'["{}]')
_COLON = re.compile(rb"[ \t\r\n]*:")
_PIECE_BYTES, _MAX_PIECE_BYTES = 256, 64 * 1024
"""Of a string with escapes that is looked at at a time, growing; the most of what is outside of strings."""


class RepeatedKey(InvalidArguments):
    """An object in the arguments has a key twice, so it is not known which value is meant. `data.key` is the key."""

    def __init__(self, key: str) -> None:
        shown = key[:MAX_SHOWN_CHARS].encode(errors="backslashreplace").decode()
        text = f"the key {shown!r} is there twice in one object of the arguments; say it once"
        super().__init__(text, details={"key": shown})


def check_keys(text: bytes | msgspec.Raw) -> None:
    """Raise `RepeatedKey` if an object in a JSON text has a key twice, however its escapes are written.

    Raises `InvalidArguments` for what is nested too deeply to be read. Of what is not JSON nothing is said.
    """
    data = bytes(text)
    try:
        if len(data) >= LARGE_BYTES:
            _walk(data)
        elif not _stays_the_same(data):
            _decoder.decode(data.decode(errors="surrogateescape"))
    except RecursionError:
        raise InvalidArguments("the arguments are nested too deeply") from None
    except ValueError:
        return


def _stays_the_same(text: bytes) -> bool:
    """Say whether a text is what is written of its values: of a key that it has twice only one would be left."""
    try:
        return b'": ' not in text and _encode(_decode(text)) == text  # who writes blanks does so everywhere
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def check_unique(keys: Sequence[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise RepeatedKey(key)
        seen.add(key)


def _member_by_member(members: Sequence[tuple[str, object]]) -> None:
    if len(dict(members)) < len(members):
        check_unique([key for key, _ in members])


# No value is made: of a number its length is enough, also of an endless one.
_decoder = json.JSONDecoder(object_pairs_hook=_member_by_member, parse_int=len, parse_float=len, strict=False)


def _walk(text: bytes) -> None:
    open_: list[set[str]] = []
    for mark, key in _marks(text):
        if mark == _OPENING:
            open_.append(set())
        elif mark == _CLOSING:
            del open_[-1:]
        elif open_:
            if key in open_[-1]:
                raise RepeatedKey(key)
            open_[-1].add(key)


def _marks(text: bytes) -> Iterator[tuple[int, str]]:
    """Yield the braces of a text, and a quote with each of its keys."""
    place = 0
    while place < len(text):
        mark = _MARK.search(text, place, place + _MAX_PIECE_BYTES)
        if mark is None:
            place += _MAX_PIECE_BYTES
            continue
        start = place = mark.end()
        if text[start - 1] != _QUOTE:
            yield text[start - 1], ""
            continue
        end = _end_of_string(text, start)
        place = end + 1
        if _COLON.match(text, place):
            yield _QUOTE, _value(text[start:end])


def _end_of_string(text: bytes, start: int) -> int:
    """Return where the quote is that ends a string which begins at `start`; the end of the text if there is none."""
    end = text.find(b'"', start)
    if text.find(b"\\", start, end) < 0:  # nearly always
        return end if end >= 0 else len(text)
    size = _PIECE_BYTES
    while start < len(text):
        piece = text[start : start + size].replace(rb"\\", b"  ")
        piece = piece[:-1] if piece.endswith(b"\\") and len(piece) > 1 else piece  # its other half is in the next one
        end = piece.replace(rb"\"", b"  ").find(b'"')
        if end >= 0:
            return start + end
        start += len(piece)
        size = min(2 * size, _MAX_PIECE_BYTES)
    return len(text)


def _value(written: bytes) -> str:
    text = written.decode(errors="surrogateescape")
    return text if "\\" not in text else str(json.loads(f'"{text}"', strict=False))
