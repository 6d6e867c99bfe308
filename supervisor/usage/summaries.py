"""What was called in a window of time, by tool, server, client or user, and over time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from actors.principal import Principal
from supervisor.identity.people import user_of
from supervisor.usage.histogram import Histogram
from supervisor.usage.periods import Key, Level, Period, Tally
from supervisor.usage.records import FAILED, NOT_SENT

By = Literal["tool", "server", "client", "user"]


class TimeWindow(msgspec.Struct, frozen=True):
    """So many seconds until now, of periods of one level, told in buckets of so many seconds."""

    level: Level
    length_s: int
    bucket_s: int


WINDOWS: Final[dict[str, TimeWindow]] = {
    "1h": TimeWindow("minute", 3600, 60),
    "24h": TimeWindow("quarter", 86_400, 900),
    "7d": TimeWindow("hour", 7 * 86_400, 7200),
    "30d": TimeWindow("day", 30 * 86_400, 86_400),
}
_BY: Final[dict[By, Callable[[Key], tuple[str, ...]]]] = {
    "tool": lambda key: (key[2], key[3]),
    "server": lambda key: (key[2],),
    "client": lambda key: (key[1],),
    "user": lambda key: (user_of(key[0]),),
}
NAMES: Final[dict[By, tuple[str, ...]]] = {
    "tool": ("server", "tool"),
    "server": ("server",),
    "client": ("client",),
    "user": ("user",),
}


class CallSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls: None is any. Those of meta-tools, of the server with an empty name, only if they are wanted."""

    principal: Principal | None = None
    user: str | None = None
    client: str | None = None
    server: str | None = None
    tool: str | None = None
    meta_tools: bool = False

    def has(self, key: Key) -> bool:
        principal, client, server, tool = key
        return (
            self.principal in (None, principal)
            and self.user in (None, user_of(principal))
            and self.client in (None, client)
            and self.server in (None, server)
            and self.tool in (None, tool)
            and (self.meta_tools or bool(server))
        )


ALL: Final = CallSelection()


def begin_of(window: TimeWindow, now: float) -> int:
    """Return the start of the first bucket of a window that ends now: the newest bucket is not over yet."""
    return (int(now) // window.bucket_s + 1) * window.bucket_s - window.length_s


def rows(periods: Iterable[Period], by: By, which: CallSelection = ALL) -> list[dict[str, Any]]:
    """Return a row for each tool, server, client or user, those with most calls first."""
    sums: dict[tuple[str, ...], Tally] = {}
    for period in periods:
        for key, tally in period.tallies.items():
            if which.has(key):
                sums.setdefault(_BY[by](key), Tally({})).merge(tally)
    ordered = sorted(sums.items(), key=lambda each: (-each[1].calls, each[0]))
    return [{**dict(zip(NAMES[by], key, strict=True)), **figures(tally)} for key, tally in ordered]


def total(periods: Iterable[Period], which: CallSelection = ALL) -> Tally:
    whole = Tally({})
    for period in periods:
        for key, tally in period.tallies.items():
            if which.has(key):
                whole.merge(tally)
    return whole


def timeline(
    periods: Sequence[Period], window: TimeWindow, begin: int, which: CallSelection = ALL
) -> list[dict[str, Any]]:
    """Return the buckets of a window, the oldest first; one without a call has no percentiles."""
    starts = range(begin, begin + window.length_s, window.bucket_s)
    sums = {start: Tally({}) for start in starts}
    for period in periods:
        start = begin + (period.start - begin) // window.bucket_s * window.bucket_s
        if start in sums:
            sums[start].merge(total([period], which))
    return [{"start": start, **figures(tally)} for start, tally in sums.items()]


def figures(tally: Tally) -> dict[str, Any]:
    """Return the numbers of a tally: percentiles in milliseconds, None where nothing was measured."""
    outcomes = {outcome: count for outcome, count in sorted(tally.outcomes.items()) if count}
    return {
        "calls": tally.calls,
        "failed": sum(count for outcome, count in outcomes.items() if outcome in FAILED),
        "not_sent": sum(count for outcome, count in outcomes.items() if outcome in NOT_SENT),
        "outcomes": outcomes,
        "took_ms": percentiles(tally.took),
        "waited_ms": percentiles(tally.waited),
        "bytes_in": tally.bytes_in,
        "bytes_out": tally.bytes_out,
        "tokens_shown": tally.tokens_shown,
        "tokens_saved": tally.tokens_saved,
        "newest": tally.newest or None,
    }


def percentiles(histogram: Histogram) -> dict[str, float | int | None]:
    count = histogram.count
    return {
        "count": count,
        "mean": round(histogram.total_ms / count, 3) if count else None,
        **{f"p{share:g}": _round(histogram.quantile(share / 100)) for share in (50, 95, 99)},
    }


def _round(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 1 if milliseconds < 100 else 0)
