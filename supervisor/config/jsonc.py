"""JSON as people write it in editors: read with the line of each key, and changed byte for byte. Pure.

Rules of this file:
- It accepts RFC 8259 plus what VS Code's "JSON with comments" allows: `//` and `/* */` comments, and trailing commas.
- One pass gives the value, the line of every key and list item, and the keys that are written twice; for a change also
  where in the text each member stands.
- No message repeats text of the file: what stands next to a syntax error may be a secret.
- After a change (`put`, `remove`) comments, commas, order, indentation, line ends, a byte order mark are as they were.
  What is added looks like its neighbours: on a line of its own where the last member has one, else behind it. An empty
  object opens up, and closes again. The comments on a member's own line go with it; what stands on other lines stays. A
  value that does not change keeps its text, also inside of an object that does.
- What cannot be changed without a guess is refused with its line: a text that cannot be read, a key on the way that is
  written twice, a way through what is no object.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import msgspec

from actors.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""Where a value is: object keys and list positions from the outside in; `()` is the whole document."""

MAX_DEPTH = 64
MAX_VALUES = 200_000
"""Values in one document: bounds the memory that positions take."""

_MAX_NUMBER_CHARS = 64
"""Longer numbers are refused: no setting needs them, and Python takes quadratic time to read them."""

_MAX_SHOWN_CHARS = 80
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
            shown += f".{part[:_MAX_SHOWN_CHARS]}" if shown else part[:_MAX_SHOWN_CHARS]
        else:
            # JSON's escapes keep control characters of a hostile key out of terminals and logs.
            shown += f"[{json.dumps(part[:_MAX_SHOWN_CHARS])}]"
    return shown


def read_document(text: str, path: str) -> ConfigText:
    """Parse `text`; `path` is only named in errors. Raises `ConfigError` with line and column."""
    return _Reader(text.removeprefix("\ufeff"), path).read()


def _read_spans(text: str, path: str) -> tuple[ConfigText, dict[KeyPath, MemberSpan]]:
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
        if _SCALAR.fullmatch(word) and len(word) <= _MAX_NUMBER_CHARS:
            scalar: float | None = json.loads(word)
            if scalar is None or math.isfinite(scalar):
                self._at += len(word)
                return scalar
        self._fail("expected a value", "strings need double quotes; the constants are true, false and null")


_DEFAULT_UNIT = "  "
"""The indentation of a text that has none yet."""

Extent = tuple[int, int]

_COMMENT = r"(?://[^\n]*?(?=\r?\n|\Z)|/\*.*?\*/)"
_OWN = re.compile(rf"(?:[ \t]*+{_COMMENT})*+", re.DOTALL)
"""The comments that begin on the line on which something ends."""
_TOKEN = re.compile(rf"{_COMMENT}|\r?\n", re.DOTALL)
"""What blanks consist of, spaces aside."""
_SPACES = re.compile(r"[ \t]*+")
_LINE_END = re.compile(r"[ \t]*+(?=\r?\n)")
_SPACE_AND_COMMENTS = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*+", re.DOTALL)


def put(text: str, where: tuple[str, ...], value: Any, path: str = "") -> str:
    """Return the text with `value` at the keys `where`, at least one; objects on the way that are missing are made.

    A new member is the last of its object. `path` is only named in errors. Raises `ConfigError`.
    """
    document = _read(text, where, path)
    members = document.members(where[:-1])
    if where[-1] not in members:
        return document.insert(where, value)
    known = members[where[-1]]
    if json.dumps(known) == json.dumps(value):  # as texts: 1 is neither true nor 1.0
        return text
    if not (isinstance(known, dict) and isinstance(value, dict)):
        return document.replace(where, value)
    for key in known:
        if key not in value:
            text = remove(text, (*where, key), path)
    for key, below in value.items():
        if key not in known or json.dumps(known[key]) != json.dumps(below):  # each one reads the whole text
            text = put(text, (*where, key), below, path)
    return text


def remove(text: str, where: tuple[str, ...], path: str = "") -> str:
    """Return the text without the member at the keys `where`, at least one; as it is where there is none.

    `path` is only named in errors. Raises `ConfigError`.
    """
    document = _read(text, where, path)
    return document.cut(where) if where[-1] in document.members(where[:-1]) else text


def _read(text: str, where: KeyPath, path: str) -> _Document:
    body = text.removeprefix("\ufeff")
    parsed, spans = _read_spans(body, path)
    for duplicate, line in parsed.duplicates:
        if duplicate == where[: len(duplicate)]:
            message = f"the key is written twice (first on line {parsed.line(duplicate)})"
            raise ConfigError(message, path=path, key=show_path(duplicate), line=line, hint="remove one of them")
    return _Document(mark=text[: len(text) - len(body)], text=body, path=path, parsed=parsed, spans=spans)


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """A text without its byte order mark, and what stands where in it."""

    mark: str
    text: str
    path: str
    parsed: ConfigText
    spans: Mapping[KeyPath, MemberSpan]

    def members(self, where: KeyPath) -> dict[str, Any]:
        """Return the members of an object, none if it is missing. Raises `ConfigError` if something else is there."""
        members: Any = {"": self.parsed.value}
        for depth, key in enumerate(("", *where)):
            members = members.get(key, {})
            if not isinstance(members, dict):
                at, hint = where[:depth], "write {} if there is nothing in it"
                line = self.parsed.line(at)
                raise ConfigError("must be an object", path=self.path, key=show_path(at), line=line, hint=hint)
        return dict(members)

    def insert(self, where: tuple[str, ...], value: Any) -> str:
        """Return the text with a new last member of the deepest object on the way that is there."""
        depth = max(depth for depth in range(len(where)) if where[:depth] in self.spans)
        for key in reversed(where[depth + 1 :]):
            value = {key: value}
        parent, key = where[:depth], where[depth]
        siblings = [span for at, span in self.spans.items() if at and at[:-1] == parent]
        if not siblings:
            return self._open(self.spans[parent], key, value)
        last = max(siblings, key=lambda span: span.end)
        text, comma, own_line = self.text, _skip(_SPACE_AND_COMMENTS, self.text, last.end), self._line_break(last)
        trails = text[comma] == ","
        behind = comma + 1 if trails else last.end
        at = _skip(_OWN, text, behind)
        indent = self._indent(last.start if own_line is None else own_line[1])
        breaks = own_line is not None or _ends_in_line_comment(text, behind, at)
        at = _skip(_LINE_END, text, at) if breaks else at
        member = self._member(key, value, None if own_line is None else indent)
        added = (f"{self._newline}{indent}" if breaks else " ") + member
        if trails:
            return self.mark + text[:at] + added + "," + text[at:]
        return self.mark + text[: last.end] + "," + text[last.end : at] + added + text[at:]

    def replace(self, where: KeyPath, value: Any) -> str:
        """Return the text with another value of a member."""
        span = self.spans[where]
        own_line = self._line_break(span)
        rendered = self._render(value, None if own_line is None else self._indent(own_line[1]))
        return self.mark + self.text[: span.value] + rendered + self.text[span.end :]

    def cut(self, where: KeyPath) -> str:
        """Return the text without a member, its comma, and the comments on its own line."""
        text, span, parent = self.text, self.spans[where], self.spans[where[:-1]]
        after = _skip(_SPACE_AND_COMMENTS, text, span.end)
        cuts = [self._extent(span, after)]
        if text[after] == ",":
            cuts.append((after, after + 1))
        elif text[span.before - 1] == ",":
            cuts.append((span.before - 1, span.before))
        inside = (parent.value + 1, parent.end - 1)
        if not _without(text, cuts, inside).strip():
            cuts = [inside]
        return self.mark + _without(text, cuts, (0, len(text)))

    def _extent(self, span: MemberSpan, after: int) -> Extent:
        """Return from where to where a member goes, `after` being where the comma or bracket behind it is."""
        text, comma, own_line = self.text, self.text[after] == ",", self._line_break(span)
        end = _skip(_OWN, text, span.end)
        if comma and _skip(_SPACES, text, end) == after:
            behind = _skip(_OWN, text, after + 1)
            end = behind if _LINE_END.match(text, behind) else after + 1
        ends_line = _LINE_END.match(text, end)
        is_last = not comma or text[_skip(_SPACE_AND_COMMENTS, text, after + 1)] == "}"
        if own_line is not None and (ends_line or is_last):
            # The line goes with the break before it, unless the rest would become part of a comment.
            joins = not ends_line and _ends_in_line_comment(text, span.before, own_line[0])
            return own_line[joins], (ends_line.end() if ends_line else end)
        if comma and (own_line is not None or text[span.before - 1] != ","):
            return span.start, _skip(_SPACES, text, end)
        return len(text[: span.start].rstrip(" \t")), end

    def _open(self, span: MemberSpan, key: str, value: Any) -> str:
        """Return the text with a first member of an object that has none."""
        text, newline, indent = self.text, self._newline, self._indent(span.start)
        inside = text[span.value + 1 : span.end - 1]
        end = _skip(_LINE_END, inside, len(inside.rstrip(" \t\r\n")))
        kept, rest = inside[:end], inside[end:]
        child = indent + self._unit
        close = rest if "\n" in rest else newline + indent
        opened = f"{kept}{newline}{child}{self._member(key, value, child)}{close}"
        return self.mark + text[: span.value + 1] + opened + text[span.end - 1 :]

    def _member(self, key: str, value: Any, indent: str | None) -> str:
        return f"{_compact(key)}: {self._render(value, indent)}"

    def _render(self, value: Any, indent: str | None) -> str:
        """Return a value as text whose further lines begin with `indent`, or on one line. Lists of scalars are one."""
        if indent is None or not _is_nested(value):
            return _compact(value)
        inner = indent + self._unit
        if isinstance(value, dict):
            brackets, items = "{}", [self._member(key, each, inner) for key, each in value.items()]
        else:
            brackets, items = "[]", [self._render(each, inner) for each in value]
        lines = f",{self._newline}{inner}".join(items)
        return f"{brackets[0]}{self._newline}{inner}{lines}{self._newline}{indent}{brackets[1]}"

    @property
    def _newline(self) -> str:
        return "\r\n" if self.text[: self.text.find("\n") + 1].endswith("\r\n") else "\n"

    @property
    def _unit(self) -> str:
        """Return by how much the text indents: its outermost member on a line of its own says it."""
        for at, span in sorted(self.spans.items(), key=lambda item: len(item[0])):
            own_line, parent = self._line_break(span), self.spans.get(at[:-1])
            if own_line is not None and at and parent is not None:
                outer, inner = self._indent(parent.start), self._indent(own_line[1])
                if inner != outer and inner.startswith(outer):
                    return inner[len(outer) :]
        return _DEFAULT_UNIT

    def _indent(self, at: int) -> str:
        """Return the spaces and tabs at the beginning of the line."""
        begin = self.text.rfind("\n", 0, at) + 1
        return self.text[begin : _skip(_SPACES, self.text, begin)]

    def _line_break(self, span: MemberSpan) -> Extent | None:
        """Return the line break before a member that is the first of its line, comments aside."""
        breaks = [token for token in _TOKEN.finditer(self.text, span.before, span.start) if token[0].endswith("\n")]
        return breaks[-1].span() if breaks else None


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _ends_in_line_comment(text: str, begin: int, end: int) -> bool:
    """Say whether what is behind these blanks would be part of a comment without a line break."""
    tokens = _TOKEN.findall(text, begin, end)
    return bool(tokens) and tokens[-1].startswith("//")


def _without(text: str, cuts: Iterable[Extent], of: Extent) -> str:
    """Return a part of the text without what is cut out; cuts may overlap."""
    kept, (at, end) = "", of
    for begin, behind in sorted(cuts):
        kept += text[at:begin]
        at = max(at, behind)
    return kept + text[at:end]


def _is_nested(value: object) -> bool:
    """Say whether a value takes several lines: an object with members, or a list with such a one."""
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and any(map(_is_nested, value))))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
