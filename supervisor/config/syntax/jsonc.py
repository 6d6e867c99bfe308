"""Read JSON as people write it in editors, and remember on which line each key stands.

Rules of this file:
- It accepts RFC 8259 plus what VS Code's "JSON with comments" allows: `//` and `/* */` comments, and trailing commas.
- One pass gives the value, the line of every key and list item, and the keys that are written twice; for `editing` also
  where in the text each member stands.
- No message repeats text of the file: what stands next to a syntax error may be a secret.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec

from actors.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""Where a value is: object keys and list positions from the outside in; `()` is the whole document."""

MAX_DEPTH = 64
MAX_VALUES = 200_000
"""Values in one document: bounds the memory that positions take."""

MAX_NUMBER_CHARS = 64
"""Longer numbers are refused: no setting needs them, and Python takes quadratic time to read them."""

MAX_SHOWN_CHARS = 80
"""Of each key in a message; a hostile key is as long as the file."""

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"([^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"')
_WORD = re.compile(r"[A-Za-z0-9_+\-.$]++")
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r"[A-Za-z0-9_$@-]+")


class ConfigText(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed text. `lines` has the first of every key path, `duplicates` keys written again; lines count from 1.

    `others` are the key paths that were taken from another file, with its path.
    """

    value: Any
    lines: Mapping[KeyPath, int]
    duplicates: tuple[tuple[KeyPath, int], ...] = ()
    others: Mapping[KeyPath, str] = {}

    def line(self, path: KeyPath) -> int:
        """Return the line of `path`, or of its nearest parent that the text has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def other_file(self, path: KeyPath) -> str:
        """Return the other file that `path` was taken from; empty for the text's own."""
        while path and path not in self.others:
            path = path[:-1]
        return self.others.get(path, "")


class MemberSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Where a member of an object stands in a text, as offsets: its key from `start`, its value from `value` to `end`.

    `before` is behind the comma or the bracket before it. A document has no key, and begins at its value.
    """

    before: int
    start: int
    value: int
    end: int


def show_path(path: KeyPath) -> str:
    """Return a key path as people write it: `mcpServers.github.args[2]`, `servers["my server"].env`."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            shown += f".{part[:MAX_SHOWN_CHARS]}" if shown else part[:MAX_SHOWN_CHARS]
        else:
            # JSON's escapes keep control characters of a hostile key out of terminals and logs.
            shown += f"[{json.dumps(part[:MAX_SHOWN_CHARS])}]"
    return shown


def read_document(text: str, path: str) -> ConfigText:
    """Parse `text`; `path` is only named in errors. Raises `ConfigError` with line and column."""
    return _Reader(text.removeprefix("\ufeff"), path).read()


def read_spans(text: str, path: str) -> tuple[ConfigText, dict[KeyPath, MemberSpan]]:
    """Return what `read_document` returns, and the members in order; of a key that is written again, the last one.

    `text` begins with no byte order mark. Raises `ConfigError` as `read_document` does.
    """
    spans: dict[KeyPath, MemberSpan] = {}
    return _Reader(text, path, spans).read(), spans


class _Reader:
    """A recursive-descent reader; its recursion is bounded by `MAX_DEPTH`."""

    def __init__(self, text: str, path: str, spans: dict[KeyPath, MemberSpan] | None = None) -> None:
        self._text = text
        self._path = path
        self._spans = spans
        self._at = 0
        self._breaks = [line_break.start() for line_break in re.finditer("\n", text)]
        self._lines: dict[KeyPath, int] = {}
        self._duplicates: list[tuple[KeyPath, int]] = []
        self._values = 0

    def read(self) -> ConfigText:
        if not self._peek():
            self._fail("the file is empty", 'write at least {"mcpServers": {}}')
        self._lines[()] = self._line()
        start = self._at
        value = self._value(())
        self._remember((), 0, start, start)
        if self._peek():
            self._fail("there is more text after the end of the JSON value", "remove it, or a bracket closes too early")
        return ConfigText(value=value, lines=self._lines, duplicates=tuple(self._duplicates))

    def _remember(self, path: KeyPath, before: int, start: int, value: int) -> None:
        if self._spans is not None:
            self._spans[path] = MemberSpan(before=before, start=start, value=value, end=self._at)

    def _line(self, at: int | None = None) -> int:
        return bisect_left(self._breaks, self._at if at is None else at) + 1

    def _fail(self, message: str, hint: str = "") -> NoReturn:
        line = self._line()
        column = self._at - (self._breaks[line - 2] if line > 1 else -1)
        raise ConfigError(f"{message} (column {column})", path=self._path, line=line, hint=hint)

    def _peek(self) -> str:
        """Skip blanks and comments; return the next character, or "" at the end."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        if self._text.startswith("/*", self._at):
            self._fail("a comment is not closed", "end it with */")
        return self._text[self._at : self._at + 1]

    def _value(self, path: KeyPath) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            self._fail(f"more than {MAX_VALUES} values", "this does not look like a configuration")
        if len(path) > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels", "this does not look like a configuration")
        match self._peek():
            case "{":
                return self._object(path)
            case "[":
                return self._list(path)
            case '"':
                return self._string()
            case _:
                return self._scalar()

    def _object(self, path: KeyPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for before in self._members("}"):
            if self._peek() != '"':
                self._fail("expected a key in double quotes", "JSON keys are written in double quotes")
            start, line = self._at, self._line()
            key = self._string()
            here = (*path, key)
            if key in members:
                self._duplicates.append((here, line))
            else:
                self._lines[here] = line
            if self._peek() != ":":
                self._fail('expected ":" after the key')
            self._at += 1
            self._peek()
            value_start = self._at
            members[key] = self._value(here)
            self._remember(here, before, start, value_start)
        return members

    def _list(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        for _ in self._members("]"):
            here = (*path, len(items))
            self._lines[here] = self._line()
            items.append(self._value(here))
        return items

    def _members(self, closing: str) -> Iterator[int]:
        """Walk the members of an object or list: yields `MemberSpan.before`, the reader at the start of each one."""
        opened = self._line()
        self._at += 1
        before = self._at
        while self._peek() != closing:
            if not self._peek():
                self._fail(f'the file ends before the "{closing}" that closes line {opened}', f'add "{closing}"')
            yield before
            end = self._at
            if self._peek() == ",":
                self._at += 1
                before = self._at
            elif self._peek() not in ("", closing):
                # The mistake is where the comma belongs, not where the reader noticed.
                if self._line(end) != self._line():
                    self._at = end
                self._fail(f'expected "," or "{closing}"', "is a comma missing here?")
        self._at += 1

    def _string(self) -> str:
        literal = _STRING.match(self._text, self._at)
        if literal is None:
            self._fail("a string is not closed on its line", 'end it with ", write a line break as \\n')
        content = literal[1]
        if "\\" in content:
            try:
                content = str(json.loads(literal[0]))
                content.encode()
            except (ValueError, UnicodeEncodeError):
                self._fail("a string holds an invalid escape", "write a backslash as \\\\")
        self._at = literal.end()
        return content

    def _scalar(self) -> float | None:  # noqa: RET503 - _fail never returns
        match = _WORD.match(self._text, self._at)
        word = match[0] if match else ""
        if _SCALAR.fullmatch(word) and len(word) <= MAX_NUMBER_CHARS:
            scalar: float | None = json.loads(word)
            if scalar is None or math.isfinite(scalar):
                self._at += len(word)
                return scalar
        self._fail("expected a value", "strings need double quotes; the constants are true, false and null")
