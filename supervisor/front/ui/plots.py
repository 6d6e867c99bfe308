"""The geometry of plots, in units of their `viewBox`: bars of calls over time, lines of how long they took. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

WIDTH: Final = 720
HEIGHT: Final = 120
FEW: Final = 20
"""Under so many calls in a bucket a percentile means little: it is a dot, and no part of the line."""
LEAST_MS, MOST_MS = 1.0, 300_000.0
_DECADES: Final = math.log10(MOST_MS / LEAST_MS)


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
    level = math.log10(min(max(milliseconds, LEAST_MS), MOST_MS) / LEAST_MS) / _DECADES
    return round(HEIGHT * (1 - level), 2)


TICKS: Final = [
    (label, height_of(ms))
    for label, ms in (("10 ms", 10), ("100 ms", 100), ("1 s", 1e3), ("10 s", 1e4), ("100 s", 1e5))
]
