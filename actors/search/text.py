r"""Text to words. Pure; the same for documents and queries, or they would not meet.

Order: compatibility form (NFKC), accents and invisible characters off, apostrophe endings off, `camelCase` apart, then
runs of letters and digits in lower case; snake_case, kebab-case and punctuation separate. Scripts written without
spaces (Han, kana, Hangul) become overlapping pairs of characters. Stems are Snowball's English.
Every pattern is linear in the text or bounded: a hostile description costs no more than an honest one.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

import Stemmer

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_CHAR = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_DIGIT = re.compile(r"[0-9]")
_LOWER_UPPER = re.compile(r"([a-z0-9])([A-Z])")
_ACRONYM_WORD = re.compile(r"([A-Z])([A-Z][a-z])")
_LETTERS_DIGITS = re.compile(r"(?<=[a-zA-Z]{3})(?=\d)|(?<=\d)(?=[a-zA-Z]{3})")
_APOSTROPHE = re.compile(r"[\u2019'](s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_ALNUM_RUN = re.compile(r"[A-Za-z0-9]++")
_CAMEL = re.compile(r"[A-Za-z]+[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z]+[A-Za-z0-9]*")
SENTENCE_END = re.compile(r"(?<=[.!?。])\s|\n")
_NOT_ALNUM = re.compile(r"[\W_]+")
_MAX_STEMMED_CHARS = 40
_MAX_CAMEL_CHARS = 30


_stemmer = Stemmer.Stemmer("english", 0)  # without a cache, which is ours: so it has no state between two words


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the English stem of a lower-case word; words of other scripts, and very long ones, stay as they are."""
    if len(word) <= 2 or len(word) > _MAX_STEMMED_CHARS or not word.isascii():
        return sys.intern(word)
    stemmed: str = _stemmer.stemWord(word)
    return sys.intern(stemmed)


def as_written(word: str) -> str:
    """Return the term for a word exactly as it is written; no stem and no word looks like it."""
    return sys.intern(f"={word}")


def is_cjk(word: str) -> bool:
    """Say whether the word begins with a character of a script written without spaces."""
    return _CJK_CHAR.match(word) is not None


def clean(text: str) -> str:
    """Return the text in compatibility form, without accents and invisible characters."""
    return text if text.isascii() else _normalize(text)


@lru_cache(maxsize=32)  # a query is cleaned by each step that reads it
def _normalize(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    if _CJK_CHAR.search(text):  # taking Hangul and kana apart would change what is written
        return "".join(c for c in text if unicodedata.category(c) != "Cf")
    return "".join(c for c in unicodedata.normalize("NFD", text) if _is_visible(c))


def _is_visible(char: str) -> bool:
    if unicodedata.combining(char):
        return False
    return char in "\n\t\r " or unicodedata.category(char) not in ("Cf", "Cc")


def words(text: str, *, split: bool = True) -> list[str]:
    """Return the words of a text in order, in lower case; `split` takes camelCase and letters from digits apart."""
    if not text.isascii():
        text = clean(text)
    if "'" in text or "\u2019" in text:
        text = _APOSTROPHE.sub(" ", text)
    if split and not text.islower():
        text = _ACRONYM_WORD.sub(r"\1 \2", _LOWER_UPPER.sub(r"\1 \2", text))
    if text.isascii():
        whole = _ASCII_WORD.findall(text.lower())
        return _apart(whole) if split and _DIGIT.search(text) else whole
    out: list[str] = []
    for word in _WORD.findall(text.lower()):
        if is_cjk(word):
            out += [word] if len(word) == 1 else [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            out += _apart([word]) if split else [word]
    return out


def _apart(whole: list[str]) -> list[str]:
    """Separate letters from digits in longer words: `base64` stays readable as `base` and `64`."""
    out: list[str] = []
    for word in whole:
        if len(word) > 4 and not word.isalpha():
            out += _LETTERS_DIGITS.sub(" ", word).split()
        else:
            out.append(word)
    return out


def camel_words(text: str) -> list[str]:
    """Return the camelCase words of a text as they are written, in lower case: `MySQL` is one word too."""
    return [
        camel.group(0).lower()
        for run in _ALNUM_RUN.findall(text)
        if len(run) < _MAX_CAMEL_CHARS and not run.islower() and (camel := _CAMEL.search(run))
    ]


def with_spaces(name: str) -> str:
    """Return a name in words as a person would write them: no camelCase, underscores or hyphens."""
    return _LOWER_UPPER.sub(r"\1 \2", name).replace("_", " ").replace("-", " ")


def squash(text: str) -> str:
    """Return letters and digits only, in lower case: `Create-Issue`, `createIssue` and `create issue` are one."""
    if not text.isascii():
        text = clean(text)
    text = text.lower()
    short = text.replace("_", "").replace("-", "")
    if short.isascii() and short.isalnum():  # most names: a third of the time
        return short
    return _NOT_ALNUM.sub("", text)
