"""The geometry of a server's life: its states as a strip over a window of time, with marks for crashes and wakes. Pure.

The strip has the width of the plots and, with the same window, their moments at the same places. What is not known is a
part of it like any other: before the daemon was started, or older than what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from actors.registry.happening import StateChange
from supervisor.front.ui.plots import WIDTH
from supervisor.front.ui.words import kind_of, life_of, span

UNKNOWN: Final = "unknown"
LABELS: Final = {
    "ok": "online",
    "resting": "asleep",
    "moving": "on its way",
    "wanting": "waiting for somebody",
    "failed": "down",
    "off": "off",
    UNKNOWN: "not known",
}
"""What each kind of state is called in a sum; `words.kind_of` says which state is of which."""
HEIGHT: Final = 32
TOP: Final = 8
"""Above it are the marks alone."""
_PARTS: Final = {"ok": 1.0, "failed": 1.0, "moving": 0.7, "wanting": 0.7, "resting": 0.35, "off": 0.15, UNKNOWN: 1.0}
"""How high each kind stands, so that they differ without colours, too."""


class LifePart(msgspec.Struct, frozen=True, kw_only=True):
    """States of one kind that follow each other. `begin` and `end` are unix seconds, the rest has units of the plot."""

    kind: str
    words: tuple[str, ...]
    begin: float
    end: float
    x: float
    width: float

    @property
    def top(self) -> float:
        return HEIGHT - self.height

    @property
    def height(self) -> float:
        return round((HEIGHT - TOP) * _PARTS[self.kind], 2)


class LifeMark(msgspec.Struct, frozen=True, kw_only=True):
    """A crash, or that a call or an order woke the server, and why, where that was told."""

    what: Literal["crash", "wake"]
    time: float
    x: float
    why: str


class Lifeline(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that are side by side, from the begin of the window until now; marks in the order of time."""

    parts: list[LifePart]
    marks: list[LifeMark]

    @property
    def sums(self) -> list[tuple[str, float]]:
        """How many seconds each kind of state lasted, the longest first."""
        lasted: dict[str, float] = {}
        for each in self.parts:
            lasted[each.kind] = lasted.get(each.kind, 0.0) + each.end - each.begin
        return sorted(lasted.items(), key=lambda each: -each[1])

    @property
    def crashes(self) -> int:
        return sum(mark.what == "crash" for mark in self.marks)

    @property
    def wakes(self) -> int:
        return sum(mark.what == "wake" for mark in self.marks)

    @property
    def sentence(self) -> str:
        """What the strip shows, in words."""
        parts = [f"{LABELS[kind]} {span(seconds)}" for kind, seconds in self.sums]
        crashes = f"{self.crashes} crash{'' if self.crashes == 1 else 'es'}"
        wakes = f"{self.wakes} wake{'' if self.wakes == 1 else 's'}"
        return f"{', '.join(parts)}; {crashes}, {wakes}"


def lifeline(changes: Sequence[StateChange], begin: float, end: float, now: float) -> Lifeline:
    """Return the life of a server in a window. `changes` are the oldest first; a clock may have been set back in them.

    Before the first of them nothing is known, and after `now` there is nothing yet.
    """
    now = min(max(now, begin), end)
    scale = WIDTH / (end - begin)
    parts: list[LifePart] = []
    for kind, word, since, until in _spans(changes, begin, now):
        before = parts[-1] if parts else None
        words: tuple[str, ...] = (word,)
        if before is not None and before.kind == kind:
            parts.pop()
            since, words = before.begin, tuple(dict.fromkeys((*before.words, word)))
        x = round((since - begin) * scale, 2)
        width = round(round((until - begin) * scale, 2) - x, 2)
        parts.append(LifePart(kind=kind, words=words, begin=since, end=until, x=x, width=width))
    return Lifeline(parts=parts, marks=list(_marks(changes, begin, now, scale)))


def _spans(changes: Sequence[StateChange], begin: float, now: float) -> Iterator[tuple[str, str, float, float]]:
    """Yield kind, word, begin and end of each state that lasted in the window; without gaps."""
    since, kind, word = begin, UNKNOWN, LABELS[UNKNOWN]
    for change in changes:
        until = min(max(change.time, since), now)
        if until > since:
            yield kind, word, since, until
        since = until
        kind, word = kind_of(change.row), life_of(change.row)
    if now > since:
        yield kind, word, since, now


def _marks(changes: Sequence[StateChange], begin: float, now: float, scale: float) -> Iterator[LifeMark]:
    for change in changes:
        if begin <= change.time <= now and (change.is_crash or change.is_wake):
            x = round((change.time - begin) * scale, 2)
            yield LifeMark(what="crash" if change.is_crash else "wake", time=change.time, x=x, why=change.reason)
