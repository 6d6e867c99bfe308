"""The text of what a daemon answers, without what each daemon answers otherwise: moments, ids, secrets, places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import groupby
from typing import Any, Final

WIDTH: Final = 118
MASKS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), mask)
    for pattern, mask in (
        (r"\bmcpv(op)?_[\w.-]{20,}", "<token>"),
        (r"(?<![\w.])179[56]\d{9}(?:-\d+)?\b", "<milliseconds>"),
        (r"(?<![\w.])179[56]\d{12}\b", "<microseconds>"),
        (r"(?<![\w.])1(?:79[5-9]|80\d)\d{6}(\.\d+)?(?:e\+09)?(?![\w.])", "<moment>"),
        (r"\b1\.79[56]\d*e\+09\b", "<moment>"),
        (r'(catalog_revision\\?":\s*)\d{5,}', r"\1<revision>"),
        (r'(cursor\\?":\s*\\?")[^"\\]+', r"\1<cursor>"),
        (r"(?m)^(process_\w+|mcpvisor_tasks) [\d.e+]+$", r"\1 <varies>"),
        (r'python="[\d.]+"', 'python="<version>"'),
        (r"\b2026-1[12]-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?", "<time>"),
        (r"\b\w{3}, \d\d \w{3} 2026 \d\d:\d\d:\d\d GMT", "<date>"),
        (r"(?<![\w.])[1-9]\d{10,}(?![\w.])", "<number>"),
        (r"[A-Za-z0-9+/]{43}=", "<digest>"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
        (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", "<hex>"),
        (r"(?<![\w/-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{20,}(?:\.[\w-]{20,})*(?![\w/])", "<id>"),
    )
)
_LONG: Final = re.compile(r"(?<![\w.])\d+\.\d{4,}(?![\w.])")
_BUCKET: Final = re.compile(r'le="([^"]+)",?')
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
VARYING: Final = frozenset({"stalls", "longest_stall_s", "memory_bytes", "cpu_s", "cpu_percent"})
"""Members that are of the real machine."""


def masked(text: str, known: Mapping[str, str]) -> str:
    """Return a text in which `known` are replaced, and then whatever looks like a moment, an id or a token."""
    for what, mask in known.items():
        text = text.replace(what, mask)
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return _LONG.sub(lambda number: repr(round(float(number[0]), 2)), text)


def readable(body: bytes, kind: str) -> str:
    """Return a body as lines: JSON laid out, the outline of HTML, metrics on fewer lines, other text as it is."""
    text = body.decode(errors="backslashreplace")
    if "json" in kind:
        return layout(without_varying(json.loads(text)))
    if "html" in kind:
        return "\n".join(outline(text))
    return "\n".join(_metrics(text)) if "# TYPE" in text else text


def _metrics(text: str) -> Iterator[str]:
    """Yield metrics on fewer lines: buckets of a series together, and series at nought by the values of their labels.

    Of buckets those are shown that more fell into than into the one before, and all of the first series of a family.
    """
    families: set[str] = set()
    for (family, series, is_nought), lines in groupby(text.splitlines(), _series):
        rows = [*lines]
        if series:
            found = [(_BUCKET.findall(row)[0], row.rpartition(" ")[2]) for row in rows]
            counts = ["", *(count for _, count in found)]
            told = [
                f"{le}={n}" for (le, n), was in zip(found, counts, strict=False) if n != was or family not in families
            ]
            families.add(family)
            yield f"{series.replace(',}', '}')} {' '.join(told)}"
        elif is_nought and len(rows) > 1:
            values: dict[str, dict[str, None]] = {}
            for name, value in (label for row in rows for label in _LABEL.findall(row)):
                values.setdefault(name, {})[value] = None
            labels = ", ".join(f"{name}={'|'.join(each)}" for name, each in values.items())
            yield f"{family} {len(rows)} times 0.0: {labels}"
        else:
            yield from rows


def _series(line: str) -> tuple[str, str, bool]:
    """Return the family of a line, the series if it is one of its buckets, and whether it is another one at nought."""
    family = line.partition("{")[0] if "{" in line else ""
    is_bucket = family.endswith("_bucket")
    return (
        family,
        _BUCKET.sub("", line.rpartition(" ")[0]) if is_bucket else "",
        line.endswith("} 0.0") and not is_bucket,
    )


def without_varying(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "<varies>" if key in VARYING and each is not None else without_varying(each)
            for key, each in value.items()
        }
    return [without_varying(each) for each in value] if isinstance(value, list) else value


def layout(value: Any, before: str = "", behind: int = 0) -> str:
    """Return JSON on as few lines as are not too long; the order of members stays."""
    text = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or len(before) + len(text) + behind <= WIDTH:
        return text
    inner = f"{before} "
    parts = [masked(name + layout(each, inner, len(name) + 1), {}) for name, each in _members(value)]
    lines = [""]
    for part, same in groupby(parts):
        again = len([*same]) - 1
        part = f"{part},{f' <{again} times more>,' if again else ''}"
        if "\n" in part or len(inner) + len(lines[-1]) + len(part) >= WIDTH:
            lines += [part, ""] if "\n" in part else [part]
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    body = f"\n{inner}".join(filter(None, lines)).removesuffix(",")
    return f"{{\n{inner}{body}\n{before}}}" if isinstance(value, dict) else f"[\n{inner}{body}\n{before}]"


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object or a list has, each with how its name is written."""
    named = value.items() if isinstance(value, dict) else (("", each) for each in value)
    yield from (
        (f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(value, dict) else "", each) for name, each in named
    )


def outline(text: str) -> Iterator[str]:
    """Yield what a page says and where it leads: texts, links, forms and their inputs; no markup, style or drawing."""
    reader = _Outline()
    reader.feed(text)
    reader.close()
    reader.end()
    yield from reader.lines


class _Outline(HTMLParser):
    SILENT: Final = frozenset({"script", "style", "svg"})
    SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
        "a": ("href",),
        "form": ("method", "action"),
        "input": ("type", "name", "value"),
        "button": ("name", "value"),
        "select": ("name",),
        "textarea": ("name",),
        "meta": ("name", "content"),
        "link": ("rel", "href"),
    }
    INLINE: Final = frozenset({"a", "b", "code", "em", "small", "span", "strong", "time", "abbr", "mark", "del", "ins"})

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._said: list[str] = []
        self._tag = ""
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in self.SILENT
        if tag not in self.INLINE:
            self.end()
            self._tag = tag
        if tag in self.SHOWN and not self._silent:
            given = dict(attrs)
            shown = " ".join(f"{name}={given[name]}" for name in self.SHOWN[tag] if given.get(name) is not None)
            self._said.append(f"<{tag} {shown}>")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT
        if tag not in self.INLINE:
            self.end()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._said += data.split()

    def end(self) -> None:
        if self._said:
            self.lines.append(f"{self._tag}: {' '.join(self._said)}")
            self._said = []
