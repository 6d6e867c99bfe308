"""The arguments of a call as they are remembered, where that is wanted: short, and without secrets. Pure.

Rules of this file:
- Of large arguments the beginning alone is read, so that they cost no more than small ones. What is cut off in the
  middle is not shown to its end: it may be the beginning of a secret.
- Hidden are values under a name that says they are secret, in objects, in lists as of a command line, and in pairs of a
  name and a value; those that the schema of the tool marks (`writeOnly`, `format: password`); configured secrets; and
  what looks like a credential. JSON in a text is read as JSON.
- Whatever comes in, a JSON text of at most `MAX_CHARS` characters comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from actors.protocol.asking.forms import is_secret_name
from actors.transport.redaction import HIDDEN, says_secret, without_secrets

MAX_CHARS: Final = 2000
READ_BYTES: Final = 8192
_MAX_DEPTH: Final = 6
MAX_ITEMS: Final = 20
"""Of one object or list."""
_MAX_TEXT_CHARS: Final = 300
_MAX_NAME_CHARS: Final = 100
_MAX_LOOKS: Final = 40
"""Texts with escapes that are masked once more."""
UNSURE_CHARS: Final = 2100
"""At the end of a text that was cut off: longer than what looks like a credential is before it does."""
MORE: Final = "…"
MAX_SCHEMA_BYTES: Final = 65_536
_MAX_SCHEMA_DEPTH: Final = 24
_ALL: Final = frozenset({"*"})
_TOKEN = re.compile(r'\s*+("(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++)', re.DOTALL)
_WHOLE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
_NAMED = re.compile(r"[\"']([\w.-]{1,60})[\"']\s{0,3}:")
"""A name and its value in a text that is no JSON."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,39})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?")
_PLAIN: Final = ("true", "false", "null")
_NAMING: Final = ("name", "key", "header", "field", "variable", "option")
_VALUES: Final = ("value", "values")
_WORD = re.compile(r'"-{0,2}[\w.-]{1,60}"')
_LAST_ROOM: Final = 30
"""For what an object or list is written with, and how much of it is left out."""

Hide = Callable[[str], str]


def show_arguments(data: bytes | msgspec.Raw, hide: Hide, schema: bytes | msgspec.Raw = b"") -> str:
    """Return arguments as JSON, short and without secrets. `hide` masks those that are configured."""
    secret = secret_names(bytes(schema))
    if secret is _ALL:
        return json.dumps({MORE: f"{len(data):,} bytes, of which nobody can say what is secret"}, ensure_ascii=False)
    beginning = bytes(memoryview(data)[:READ_BYTES])
    text = hide(beginning.decode(errors="ignore"))
    value = _Reader(text, hide, secret, cut=len(data) > len(beginning)).read()
    if len(data) > len(beginning):
        whole = f"{len(data):,} bytes in all"
        value = {**value, MORE: whole} if isinstance(value, dict) else [value, whole]
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= MAX_CHARS else json.dumps({MORE: f"{len(data):,} bytes"}, ensure_ascii=False)


def secret_names(schema: bytes) -> frozenset[str]:
    """Return the names of properties that a schema marks as secret; `*` is any, for a schema that is not read."""
    if b"writeOnly" not in schema and b"password" not in schema:
        return frozenset()
    return _read_names(schema) if len(schema) <= MAX_SCHEMA_BYTES else _ALL


@lru_cache(maxsize=256)
def _read_names(schema: bytes) -> frozenset[str]:
    try:
        return frozenset(_marks_in(msgspec.json.decode(schema), _MAX_SCHEMA_DEPTH))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _ALL


def _marks_in(schema: Any, depth: int) -> Iterator[str]:
    inside = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, each in properties.items() if isinstance(properties, dict) else ():
        if isinstance(each, dict) and (each.get("writeOnly") is True or each.get("format") == "password"):
            yield name
    for each in inside if depth else ():
        yield from _marks_in(each, depth - 1)


class _Reader:
    """Reads JSON that may be cut off or none at all, as far as there is room for what it shows. `text` is masked."""

    def __init__(self, text: str, hide: Hide, secret: frozenset[str], *, cut: bool) -> None:
        self._text = text
        self._at = 0
        self._hide = hide
        self._secret = secret
        self._cut = cut
        self._room = MAX_CHARS - _LAST_ROOM
        self._looks = _MAX_LOOKS

    def read(self) -> Any:
        return self._value(self._next(), _MAX_DEPTH)

    # Reading ----------------------------------------------------------------------------------------------------------

    def _next(self) -> str:
        """Return the next token: a text with its quotes, a mark, or a word; empty at the end."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest, self._at = self._text[self._at :].lstrip(), len(self._text)
            return self._begin_text(rest)
        self._at = match.end()
        is_whole = not self._cut or self._at < len(self._text) or match[1][0] == '"'
        return match[1] if is_whole else ""

    def _begin_text(self, rest: str) -> str:
        """Return what can be shown of a text whose end is not there."""
        sure = _WHOLE.match(rest[1 : max(1, len(rest) - UNSURE_CHARS)]) if self._cut else None
        return f'"{sure[0]}{MORE}"' if sure is not None and sure[0] else ""

    def _skip(self, token: str) -> None:
        """Pass over the value that begins with a token."""
        depth = int(token in ("{", "["))
        while depth and (token := self._next()):
            depth += (token in ("{", "[")) - (token in ("}", "]"))

    def _text_of(self, token: str) -> str:
        """Return what a text in quotes says. An escape may have hidden a secret from the mask."""
        try:
            text = str(json.loads(token, strict=False)).encode(errors="replace").decode()
        except ValueError:
            return MORE
        if "\\u" not in token and "\\\\" not in token:
            return text
        self._looks -= 1
        return self._hide(text) if self._looks >= 0 else MORE

    # Showing ----------------------------------------------------------------------------------------------------------

    def _value(self, token: str, depth: int) -> Any:
        if token in ("{", "["):
            self._room -= _LAST_ROOM
            return self._object(depth - 1) if token == "{" else self._list(depth - 1)
        if token[:1] == '"':
            return self._show_text(self._text_of(token), depth)
        return self._spend(_literal(token))

    def _object(self, depth: int) -> Any:
        told: dict[str, Any] = {}
        left, names_one = 0, False
        while (token := self._next()) not in ("}", ""):
            if token == ",":
                continue
            name = self._text_of(token) if token[:1] == '"' else MORE
            value = self._next() if (colon := self._next()) == ":" else colon
            names_one = names_one or self._names_secret(name.lower(), value)
            if self._room <= 0 or depth < 0 or len(told) >= MAX_ITEMS:
                self._skip(value)
                left += 1
            else:
                told[self._spend(without_secrets(name)[:_MAX_NAME_CHARS])] = self._member(name, value, depth)
        if names_one:
            told = {name: HIDDEN if name.lower() in _VALUES else value for name, value in told.items()}
        return {**told, MORE: f"{left} more"} if left else told

    def _member(self, name: str, value: str, depth: int) -> Any:
        if value in _PLAIN or not (name in self._secret or _names_secret(name)):
            return self._value(value, depth)
        self._skip(value)
        return self._spend(HIDDEN)

    def _names_secret(self, name: str, value: str) -> bool:
        """Say whether this member of an object tells that another one is a secret."""
        if name not in _NAMING or value[:1] != '"':
            return False
        return name == "key" or _names_secret(self._text_of(value))

    def _list(self, depth: int) -> Any:
        told: list[Any] = []
        left, is_secret = 0, False
        while (token := self._next()) not in ("]", ""):
            if token == ",":
                continue
            if self._room <= 0 or depth < 0 or len(told) >= MAX_ITEMS:
                self._skip(token)
                left += 1
                continue
            if is_secret:
                self._skip(token)
            told.append(self._spend(HIDDEN) if is_secret else self._value(token, depth))
            is_secret = _WORD.fullmatch(token) is not None and _names_secret(token)
        return [*told, f"{left} more"] if left else told

    def _show_text(self, text: str, depth: int) -> Any:
        """Return what is shown of a text: what is JSON itself, as that."""
        if text.lstrip()[:1] in ("{", "["):
            outside, self._text, self._at = (self._text, self._at), text, 0
            value = self._value(self._next(), depth - 1)
            self._text, self._at = outside
            return value
        if any(_names_secret(match[1]) for match in _NAMED.finditer(text)):
            return self._spend(HIDDEN)
        shown = without_secrets(text)
        return self._spend(shown if len(shown) <= _MAX_TEXT_CHARS else f"{shown[:_MAX_TEXT_CHARS]}{MORE}")

    def _spend(self, value: Any) -> Any:
        """Take room for a value, or give what stands for it."""
        size = len(json.dumps(value, ensure_ascii=False)) + len(", ")
        if size > self._room:
            self._room = 0
            return MORE
        self._room -= size
        return value


def _names_secret(name: str) -> bool:
    return says_secret(name) or is_secret_name(name)


def _literal(token: str) -> Any:
    """Return a number, a truth or nothing; of anything else, that it is none."""
    if token in _PLAIN or _NUMBER.fullmatch(token):
        return json.loads(token)
    return HIDDEN if HIDDEN in token else MORE
