"""Change one key of a JSON text with comments, and leave everything else as it is, byte for byte. Pure.

Rules of this file:
- Comments, commas, order, indentation, line ends, a byte order mark stay. What is added looks like its neighbours: on a
  line of its own where the last member has one, else behind it. An empty object opens up, and closes again.
- The comments on a member's own line go with it; what stands on other lines stays.
- A value that does not change keeps its text, also inside of an object that does.
- What cannot be changed without a guess is refused with its line: a text that cannot be read, a key on the way that is
  written twice, a way through what is no object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from actors.errors import ConfigError
from supervisor.config.syntax.jsonc import ConfigText, KeyPath, MemberSpan, read_spans, show_path

DEFAULT_UNIT = "  "
"""The indentation of a text that has none yet."""

Extent = tuple[int, int]

_COMMENT = r"(?://[^\n]*?(?=\r?\n|\Z)|/\*.*?\*/)"
_OWN = re.compile(rf"(?:[ \t]*+{_COMMENT})*+", re.DOTALL)
"""The comments that begin on the line on which something ends."""
_TOKEN = re.compile(rf"{_COMMENT}|\r?\n", re.DOTALL)
"""What blanks consist of, spaces aside."""
_SPACES = re.compile(r"[ \t]*+")
_LINE_END = re.compile(r"[ \t]*+(?=\r?\n)")
_BLANK = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*+", re.DOTALL)


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
    parsed, spans = read_spans(body, path)
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
        text, comma, own_line = self.text, _skip(_BLANK, self.text, last.end), self._line_break(last)
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
        after = _skip(_BLANK, text, span.end)
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
        is_last = not comma or text[_skip(_BLANK, text, after + 1)] == "}"
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
        return DEFAULT_UNIT

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
