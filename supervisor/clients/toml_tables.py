"""Add and remove one table of a TOML text (1.0), and leave everything else as it is, byte for byte. Pure.

Rules of this file:
- A table is added at the end, where nothing else can be changed by it, and removed with the tables in it and the blank
  line before it. Comments behind its last line belong to what comes next.
- Each change is read again and held against what was meant; what cannot be done that way (an inline table, dotted keys)
  is refused, and nothing is written.
- No message repeats text of the file: what stands next to a syntax error may be a secret.

Not by tomlkit 0.15: it puts a new table between another one and the comment above that, and writes LF into CRLF.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from actors.errors import ConfigError
from supervisor.config.jsonc import MAX_DEPTH

_HEADER = re.compile(r"^[ \t]*\[[^\r\n]*", re.MULTILINE)
_PLACE = re.compile(r"at line (\d+)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTENT = re.compile(r"^[ \t]*[^#\s].*$", re.MULTILINE)

Way = tuple[str, ...]


def read_toml(text: str, path: str) -> dict[str, Any]:
    """Return what a text says; `path` is only named in errors. Raises `ConfigError` with the line."""
    try:
        read = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:  # also of a number with more digits than Python reads
        place = _PLACE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        raise ConfigError("this is not TOML", path=path, line=line, hint="correct it first") from None
    if _is_deep(read):  # a header of many keys is: who walks through it, or compares it, runs out of stack
        raise ConfigError(f"it is nested more than {MAX_DEPTH} levels deep", path=path, hint="correct it first")
    return read


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [*chain.from_iterable(inner)]
    return bool(level)


def put_table(text: str, where: Way, members: Mapping[str, Any], path: str) -> str:
    """Return the text with the table `where`, of scalars and lists of them, in its old place or at the end.

    Raises `ConfigError` if that takes more than a table of its own.
    """
    wanted = read_toml(text, path)
    _holder(wanted, where, path)[where[-1]] = dict(members)
    mark, text = _parts(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(map(_key, where))}]", *(f"{_key(key)} = {_value(each)}" for key, each in members.items())]
    block = newline.join(lines) + newline
    extents = list(_extents(text, where))
    if extents:
        (begin, end), *others = extents
        for other, behind in reversed(others):
            text = _cut(text, other, behind)
        text = text[:begin] + block + text[end:]
    else:
        text += newline if text and not text.endswith("\n") else ""
        text += (newline if text else "") + block
    return _as_meant(mark + text, wanted, path)


def remove_table(text: str, where: Way, path: str) -> str:
    """Return the text without the table `where`, if it is there. Raises `ConfigError` as `put_table` does."""
    wanted = read_toml(text, path)
    holder = _holder(wanted, where, path)
    if where[-1] not in holder:
        return text
    del holder[where[-1]]
    mark, text = _parts(text)
    for begin, end in reversed(list(_extents(text, where))):
        text = _cut(text, begin, end)
    if where[0] not in read_toml(text, path) and not wanted[where[0]]:  # it was there by its tables only
        del wanted[where[0]]
    return _as_meant(mark + text, wanted, path)


def _holder(document: dict[str, Any], where: Way, path: str) -> dict[str, Any]:
    """Return the table that `where` is a key of, made where it is missing."""
    for key in where[:-1]:
        document = document.setdefault(key, {})
        if not isinstance(document, dict):
            raise ConfigError("must be a table", path=path, key=key, hint="correct it first")
    return document


def _cut(text: str, begin: int, end: int) -> str:
    """Return the text without a part of it, and without the blank line before that."""
    before = text[:begin]
    blank = next((each for each in ("\r\n", "\n") if before.endswith(each + each)), "")
    return before.removesuffix(blank) + text[end:]


def _parts(text: str) -> tuple[str, str]:
    """Return the byte order mark of a text, if it has one, and the rest."""
    rest = text.removeprefix("\ufeff")
    return text[: len(text) - len(rest)], rest


def _as_meant(text: str, wanted: Mapping[str, Any], path: str) -> str:
    if read_toml(text, path) != wanted:
        raise ConfigError(
            "these tables are written in a way that cannot be changed safely",
            path=path,
            hint="change the file by hand, or by the client's own command",
        )
    return text


def _extents(text: str, where: Way) -> Iterator[tuple[int, int]]:
    """Yield from where to where the table `where` and those in it stand."""
    tables = list(headers(text))
    for at, (begin, way) in enumerate(tables):
        if way[: len(where)] == where:
            limit = tables[at + 1][0] if at + 1 < len(tables) else len(text)
            contents = list(_CONTENT.finditer(text, begin, limit))
            end = text.find("\n", contents[-1].end() - 1, limit) + 1
            yield begin, end or limit


def headers(text: str) -> Iterator[tuple[int, Way]]:
    """Yield where each header stands, and its keys; those of arrays of tables have one key too many to be meant."""
    for match in _HEADER.finditer(text):
        # A line of a list or of a text of several lines may look like one: there, what is before it is not complete.
        if _reads(text[: match.start()]) is not None and (header := _reads(match[0])) is not None:
            yield match.start(), tuple(_keys(header))


def _keys(header: Any) -> Iterator[str]:
    while header:
        if isinstance(header, list):
            yield ""
            header = header[0]
        else:
            ((key, header),) = header.items()
            yield key


def _reads(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """Return a scalar, or a list of them, as TOML: a basic string takes the escapes of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
