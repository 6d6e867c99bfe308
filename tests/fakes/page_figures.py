"""Every number that a page of the dashboard shows, each with the place where it stands, and its plots.

A place is made of what a reader sees: the section, the row, the column. Nothing with a digit in it is left out, neither
text nor an attribute, but for what is in `NO_FIGURES`; and a cell for numbers is one also where it has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final, NamedTuple

VOID: Final = frozenset({"meta", "link", "input", "br", "img", "hr"})
LABELS: Final = frozenset({"th", "dt", "figcaption", "label", "summary", "code"})
"""What names figures. Those of a page are checked, too, as one list."""
NO_FIGURES: Final = {
    ("head", "link"),  # style and script, by the digest of their text
    ("head", "script"),
    ("head", "meta"),
    ("form", "input"),  # the token of the form
}
SHOWN: Final = ("title", "datetime", "data-now", "data-sort", "href", "id")
"""Attributes that people see or scripts read."""


class Figure(NamedTuple):
    place: str
    text: str


class Bar(NamedTuple):
    """A bar of a plot: its words, and how high its two parts are."""

    words: str
    ok: float
    bad: float


class Element:
    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parts: list[Element | str] = []

    @property
    def children(self) -> list[Element]:
        return [part for part in self.parts if isinstance(part, Element)]

    @property
    def text(self) -> str:
        whole = "".join(part if isinstance(part, str) else part.text for part in self.parts)
        return " ".join(whole.split())

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a tag below this one, with these attributes."""
        wanted = attributes.items()
        below = [each for child in self.children for each in child.all(tag, **attributes)]
        mine = [each for each in self.children if each.tag == tag and wanted <= each.attributes.items()]
        return mine + below

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].parts.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> ends something else"

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def read(markup: str) -> Element:
    """Return a page whose elements all have an end of their own. Raises AssertionError for another one."""
    reader = _Reader()
    reader.feed(markup)
    assert len(reader.open) == 1, "all elements have ended"
    return reader.open[0]


def figures_of(page: Element) -> list[Figure]:
    """Return all figures of a page but those in plots."""
    return [figure for child in page.children for figure in _figures(child, "", page.tag)]


def bars_of(plot: Element) -> list[Bar]:
    """Return the bars of a plot of calls."""
    return [_bar(group) for group in plot.all("g")]


def _bar(group: Element) -> Bar:
    heights = {
        kind: sum(float(each.attributes["height"]) for each in group.all("rect", **{"class": kind}))
        for kind in ("ok", "bad")
    }
    return Bar(group.one("title").text, heights["ok"], heights["bad"])


def _figures(element: Element, place: str, above: str) -> Iterator[Figure]:
    if element.tag == "svg" or (above, element.tag) in NO_FIGURES:
        return
    name = element.attributes.get("id") or element.attributes.get("class", "") if element.tag != "tr" else ""
    inside = (
        f"{place}/{name or element.tag}" if element.tag in ("section", "dl", "figure", "header", "footer") else place
    )
    if element.tag == "table":
        yield from _table(element, place)
    elif element.tag == "div" and above == "dl":
        term, *told = element.children
        yield from _label(term)
        for each in told:
            yield from _cell(each, f"{place}/{term.text}")
    elif element.tag in LABELS:
        yield from _label(element)
    else:
        here = f"{inside}/{element.tag}"
        yield from _attributes(element, here)
        for part in element.parts:
            if isinstance(part, Element):
                yield from _figures(part, inside, element.tag)
            elif re.search(r"\d", part):
                yield Figure(here, " ".join(part.split()))


def _table(table: Element, place: str) -> Iterator[Figure]:
    head, body = table.children
    columns = head.all("th")
    for column in columns:
        yield from _label(column)
    for row in body.children:
        named = [
            cell.tag == "th" or column.text == "Server" for column, cell in zip(columns, row.children, strict=True)
        ]
        names = [cell.text for cell, names in zip(row.children, named, strict=True) if names]
        name = " ".join(names) or row.attributes.get("id") or row.children[0].text
        for column, cell in zip(columns, row.children, strict=True):
            yield from _cell(cell, f"{place}/{name}/{column.text}")


def _cell(cell: Element, place: str) -> Iterator[Figure]:
    if cell.tag == "dd" or cell.attributes.get("class") == "n" or re.search(r"\d", cell.text):
        yield Figure(place, cell.text)
    for each in (cell, *(below for tag in ("a", "time", "span", "abbr") for below in cell.all(tag))):
        yield from _attributes(each, place)


def _attributes(element: Element, place: str) -> Iterator[Figure]:
    for name in SHOWN:
        value = element.attributes.get(name, "")
        if re.search(r"\d", value):
            yield Figure(f"{place} @{name}", value)


def _label(element: Element) -> Iterator[Figure]:
    if re.search(r"\d", element.text):
        yield Figure("label", element.text)
