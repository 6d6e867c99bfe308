"""The geometry of plots in units of their `viewBox`: calls over time, how long they took, the life of a server. Pure.

The strip of a life has the width of the plots and, with the same window, their moments at the same places. What is not
known is a part of it like any other: before the daemon was started, or older than what is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from actors.facts import StateChange
from supervisor.front.ui.words import kind_of, life_of, span

WIDTH: Final = 720
HEIGHT: Final = 120
FEW: Final = 20
"""Under so many calls in a bucket a percentile means little: it is a dot, and no part of the line."""
_LEAST_MS, _MOST_MS = 1.0, 300_000.0
_DECADES: Final = math.log10(_MOST_MS / _LEAST_MS)


class Bar(msgspec.Struct, frozen=True):
    """One bucket: calls that were good stand on the line, those that failed or were never sent above them.

    `start` is unix seconds, `bad` how many failed, `unsent` how many were never sent.
    """

    start: float
    x: float
    width: float
    ok: float
    failed: float
    calls: int
    bad: int
    unsent: int
    partial: bool

    @property
    def top(self) -> float:
        return HEIGHT - self.ok - self.failed


class Bars(msgspec.Struct, frozen=True):
    """`most` is what the highest bar stands for."""

    bars: list[Bar]
    most: int


class Line(msgspec.Struct, frozen=True):
    """One percentile: `paths` where there are enough calls side by side, `dots` elsewhere."""

    name: str
    paths: list[str]
    dots: list[tuple[float, float]]


def bars(buckets: Sequence[Mapping[str, Any]]) -> Bars:
    """Return a bar for each bucket of `/api/usage/timeline`, of which the newest is not over."""
    most = max([1, *(bucket["calls"] for bucket in buckets)])
    width = WIDTH / max(1, len(buckets))
    scale = HEIGHT / most
    drawn: list[Bar] = []
    for place, bucket in enumerate(buckets):
        failed, unsent = bucket["failed"], bucket["not_sent"]
        drawn.append(
            Bar(
                start=bucket["start"],
                x=round(place * width, 2),
                width=round(width * 0.85, 2),
                ok=round((bucket["calls"] - failed - unsent) * scale, 2),
                failed=round((failed + unsent) * scale, 2),
                calls=bucket["calls"],
                bad=failed,
                unsent=unsent,
                partial=place == len(buckets) - 1,
            )
        )
    return Bars(drawn, most)


def lines(buckets: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the lines of p50, p95 and p99, on a scale of decades from 1 ms to 5 min. A gap breaks a line."""
    width = WIDTH / max(1, len(buckets))
    drawn: list[Line] = []
    for name in ("p50", "p95", "p99"):
        paths: list[str] = []
        dots: list[tuple[float, float]] = []
        joined = False
        for place, bucket in enumerate(buckets):
            took = bucket["took_ms"]
            if took[name] is None:
                joined = False
                continue
            x, y = round((place + 0.5) * width, 2), height_of(took[name])
            if took["count"] < FEW:
                dots.append((x, y))
                joined = False
            elif joined:
                paths[-1] += f" L{x} {y}"
            else:
                paths.append(f"M{x} {y}")
                joined = True
        # A path of one point draws nothing: a time that stands alone is a dot, however many calls it is of.
        alone = [path[1:].split(" ") for path in paths if " L" not in path]
        dots += [(float(x), float(y)) for x, y in alone]
        paths = [path for path in paths if " L" in path]
        drawn.append(Line(name, paths, dots))
    return drawn


def height_of(milliseconds: float) -> float:
    """Return how far down a time is: at the top is what took five minutes or longer."""
    level = math.log10(min(max(milliseconds, _LEAST_MS), _MOST_MS) / _LEAST_MS) / _DECADES
    return round(HEIGHT * (1 - level), 2)


TICKS: Final = [
    (label, height_of(ms))
    for label, ms in (("10 ms", 10), ("100 ms", 100), ("1 s", 1e3), ("10 s", 1e4), ("100 s", 1e5))
]


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
LIFELINE_HEIGHT: Final = 32
_TOP: Final = 8
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
        return LIFELINE_HEIGHT - self.height

    @property
    def height(self) -> float:
        return round((LIFELINE_HEIGHT - _TOP) * _PARTS[self.kind], 2)


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


Changes = Sequence[tuple[float, StateChange]]


def lifeline(changes: Changes, begin: float, end: float, now: float) -> Lifeline:
    """Return the life of a server in a window. `changes` have their times (unix s), the oldest first; a clock may have
    been set back in them.

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


def _spans(changes: Changes, begin: float, now: float) -> Iterator[tuple[str, str, float, float]]:
    """Yield kind, word, begin and end of each state that lasted in the window; without gaps."""
    since, kind, word = begin, UNKNOWN, LABELS[UNKNOWN]
    for time, change in changes:
        until = min(max(time, since), now)
        if until > since:
            yield kind, word, since, until
        since = until
        kind, word = kind_of(change.row), life_of(change.row)
    if now > since:
        yield kind, word, since, now


def _marks(changes: Changes, begin: float, now: float, scale: float) -> Iterator[LifeMark]:
    for time, change in changes:
        if begin <= time <= now and (change.is_crash or change.is_wake):
            x = round((time - begin) * scale, 2)
            yield LifeMark(what="crash" if change.is_crash else "wake", time=time, x=x, why=change.reason)
