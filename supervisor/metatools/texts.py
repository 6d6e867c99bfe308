"""How text of servers is shown to a model and to people: without what cannot be seen, within a size. Pure.

Removed are terminal sequences, control characters, and characters without a shape: zero-width ones, bidirectional
overrides, tags and variation selectors that smuggle text past a reader.
"""

from __future__ import annotations

import re
import unicodedata
from json import dumps
from typing import Any

import msgspec

from actors.protocol.wire import json

_ANSI = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-9;:?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?")
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0d\U000e0100-\U000e01ef]"
)
"""Invisible, though Unicode counts them as letters or marks; U+FE0E and U+FE0F choose between glyphs and stay."""
_ESCAPED = re.compile(rb"\\[ubf]")
"""How JSON writes what cannot be seen."""
_SENTENCE = re.compile(r"[.!?。](?=\s|$)")

_TOKENS = re.compile(
    r'[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,3}|[\n\r\t ]+|[^\x00-\x7f]|[{}\[\]":,.()/`-]{1,3}|_{2,3}|[^A-Za-z0-9_\s]'
)
"""Pieces of a text; one underscore goes with the word behind it."""
_RARE = re.compile(r"[bcdfghjklmnpqrstvwxz]{3,}|[BCDFGHJKLMNPQRSTVWXZ]{3,}")
_LONG_WORD = 10
_ONE_TOKEN, _TWO_TOKENS = 0x500, 0x10000
"""Characters below the first are a token at most, below the second nearly always two at most."""
_MAX_ESTIMATED_CHARS = 65_536


def clean(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = _UNSEEN.sub("", _ANSI.sub("", text))
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs")


def escape(text: str) -> str:
    """Return a text in which everything can be seen: what cannot is written as in a JSON string of ASCII alone."""
    return text if text.isascii() and text.isprintable() else "".join(c if is_seen(c) else dumps(c)[1:-1] for c in text)


def is_seen(character: str) -> bool:
    return character.isprintable() and _UNSEEN.match(character) is None


def shorten(text: str, limit: int) -> str:
    """Cut at the end of a sentence if one ends in the last two thirds of the limit, else at a word."""
    text = clean(text[: 8 * limit]).strip()
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text, 0, limit)]
    if ends and ends[-1] >= limit // 3:
        return text[: ends[-1]]
    return text[:limit].rsplit(" ", 1)[0] + " ..."


def shorten_to_tokens(text: str, limit: int, tokens: int) -> str:
    """Shorten to `limit` characters, and further until its JSON is estimated at no more than `tokens` tokens."""
    shown = shorten(text, limit)
    while limit > 1 and estimate_tokens(msgspec.json.encode(shown).decode()) > tokens:
        limit //= 2
        shown = shorten(text, limit)
    return shown


def clean_json(raw: msgspec.Raw) -> Any:
    """Return JSON whose texts are clean: the same bytes where nothing can hide in them, else the decoded value.

    Empty for what cannot be decoded.
    """
    data = bytes(raw)
    if is_plain(data):
        return raw
    try:
        return clean_value(json.read(json.VALUE, data))
    except (json.UnreadableJson, RecursionError):
        return {}


def is_plain(data: bytes) -> bool:
    """Say whether nothing that cannot be seen can hide in JSON."""
    return data.isascii() and not _ESCAPED.search(data)


def clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_value(item) for key, item in value.items()}
    return value


def estimate_tokens(text: str) -> int:
    """Return about how many tokens (cl100k) a text has, rather too many than too few, in 0.1 ms per kilobyte.

    Of a list of real tools it is 1.1 to 1.2 times the count, of their schemas 1.1 to 1.7 times; random letters are the
    worst case, 0.75. An exact count would cost more than the whole answer, and a tokenizer in memory. Of a text over 64
    KiB every two characters count as a token: it fits nowhere.
    """
    if len(text) > _MAX_ESTIMATED_CHARS:
        return len(text) // 2
    tokens = 1
    for piece in _TOKENS.findall(text):
        if not piece.isascii():
            tokens += 1 if ord(piece) < _ONE_TOKEN else 2 if ord(piece) < _TWO_TOKENS else 4
        elif len(piece) < _LONG_WORD:
            tokens += piece != " "
        else:
            tokens += (len(piece) + 5) // 6
    for run in _RARE.findall(text):
        tokens += len(run) // 2
    return tokens
