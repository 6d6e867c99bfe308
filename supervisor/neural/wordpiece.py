"""Cuts texts into the pieces of words that BERT's models were trained on (WordPiece, uncased).

Ours because `tokenizers`, the library for it, installs a client of a model hub with all that it needs, and this one
algorithm is short: Devlin et al. 2018 (arXiv:1810.04805) and the tokenizer published with it. Words are cut one by one
into the longest pieces of the vocabulary, from the left; all pieces but the first are written with `##` before them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache

CLASSIFY, SEPARATE, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
"""The pieces that begin a text, end it, and stand for a word that has no pieces."""

_CONTINUED = "##"
_MAX_WORD_CHARS = 100  # as the tokenizer published with the models: a longer word is unknown
_REMEMBERED_WORDS = 8192
_LONGEST_PIECE = 32
# The blocks that BERT's tokenizer cuts into single characters; Hangul and kana are not among them.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPieces:
    """Cuts texts, in several threads at once. Raises `ValueError` if the vocabulary lacks a special piece."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        missing = {CLASSIFY, SEPARATE, UNKNOWN} - vocabulary.keys()
        if missing:
            raise ValueError(f"the vocabulary lacks {', '.join(sorted(missing))}")
        self._vocabulary = vocabulary
        self._first, self._last = vocabulary[CLASSIFY], vocabulary[SEPARATE]
        self._unknown = (vocabulary[UNKNOWN],)
        self._remembered = lru_cache(_REMEMBERED_WORDS)(self._word)

    def cut(self, text: str, most: int) -> list[int]:
        """Return the numbers of a text's pieces, at most so many with the first and the last; none for no words."""
        out = [self._first]
        for word in _words(text):
            out += self._remembered(word)
            if len(out) >= most:
                break
        return [*out[: most - 1], self._last] if len(out) > 1 else []

    def _word(self, word: str) -> tuple[int, ...]:
        if len(word) > _MAX_WORD_CHARS:
            return self._unknown
        out: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            for end in range(min(len(word), start + _LONGEST_PIECE), start, -1):
                number = self._vocabulary.get(prefix + word[start:end])
                if number is not None:
                    out.append(number)
                    start = end
                    break
            else:
                return self._unknown
        return tuple(out)


def _words(text: str) -> list[str]:
    """Return the words of a text: without case, accents and control characters, punctuation by itself."""
    if text.isascii() and text.isprintable():
        return _split(text.lower())
    decomposed = unicodedata.normalize("NFD", "".join(map(_readable, text)))
    return _split("".join(char for char in decomposed if unicodedata.category(char) != "Mn").lower())


def _readable(char: str) -> str:
    """Return a character as it is read: control characters are nothing, ideographs stand alone."""
    if char in "\t\n\r" or unicodedata.category(char) == "Zs":
        return " "
    if char in "\0\ufffd" or unicodedata.category(char).startswith("C"):
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _IDEOGRAPHS) else char


def _split(text: str) -> list[str]:
    spaced = "".join(f" {char} " if _is_punctuation(char) else char for char in text)
    return spaced.split()


@lru_cache(1024)
def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")
