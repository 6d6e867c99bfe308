"""What was called in a period, added up by who, with what, and which tool; and the sums of a window of time. Pure.

Each longer period is the sum of shorter ones, so that it can be made again from them after a crash:

    minute (kept 3 h) ──▶ quarter of an hour (26 h)
           └────────────▶ hour (35 days) ──▶ day (400 days)

How often something took how long is counted in buckets that grow by a fifth, so that they can be added up; of
percentiles alone no sum could be made. A quantile is the middle of its bucket, so it is wrong by a tenth at most. (The
idea of DDSketch: Masson, Rim and Lee, VLDB 2019.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from actors.principal import Principal
from supervisor.identity.people import user_of
from supervisor.usage.records import FAILED, NOT_SENT, UNHEARD, CallOutcome, CallRecord

_STEPS: Final = 4
"""Buckets for a doubling."""
LEAST_MS: Final = 0.1
MOST_MS: Final = 3_600_000.0
"""An hour: what takes longer counts as that."""


def limit_of(bucket: int) -> float:
    """Return the longest time in a bucket, in milliseconds."""
    return float(LEAST_MS * 2 ** (bucket / _STEPS))


_LIMITS: Final = [limit_of(bucket) for bucket in range(math.ceil(_STEPS * math.log2(MOST_MS / LEAST_MS)))]
"""Of all buckets but the last, which has what takes longer."""


class Histogram(msgspec.Struct, array_like=True):
    """`counts` by bucket; `total_ms` is the sum of all times."""

    counts: dict[int, int] = {}
    total_ms: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def add(self, times: Iterable[float]) -> None:
        """Count times, in milliseconds."""
        counts = self.counts
        for milliseconds in times:
            bucket = bisect_left(_LIMITS, milliseconds)
            counts[bucket] = counts.get(bucket, 0) + 1
            self.total_ms += milliseconds

    def merge(self, other: Histogram) -> None:
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.total_ms += other.total_ms

    def quantile(self, share: float) -> float | None:
        """Return the time within which so much of all stayed (0.95: the 95th percentile), in ms; None if there is none.

        It is exact to a tenth.
        """
        wanted, seen = math.ceil(share * self.count) or 1, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return limit_of(bucket) / 2 ** (0.5 / _STEPS) if bucket else LEAST_MS
        return None


Level = Literal["minute", "quarter", "hour", "day"]
LENGTH_S: Final[dict[Level, int]] = {"minute": 60, "quarter": 900, "hour": 3600, "day": 86_400}
KEPT_S: Final[dict[Level, int]] = {"minute": 3 * 3600, "quarter": 26 * 3600, "hour": 35 * 86_400, "day": 400 * 86_400}
OF: Final[dict[Level, Level]] = {"quarter": "minute", "hour": "minute", "day": "hour"}
"""Of which shorter ones a longer one is the sum."""
MAX_KEYS: Final = 500
"""Different combinations of person, client, server and tool in one period. What comes beside them counts as others."""
OTHERS: Final = "_other"

Key = tuple[Principal, str, str, str]
"""Who, with which client, which server, which tool."""


class Tally(msgspec.Struct, array_like=True):
    """The calls of one key. `took` is of those that the server heard of, `waited` of those that waited for it."""

    outcomes: dict[CallOutcome, int] = {}
    took: Histogram = msgspec.field(default_factory=lambda: Histogram({}))
    waited: Histogram = msgspec.field(default_factory=lambda: Histogram({}))
    bytes_in: int = 0
    bytes_out: int = 0
    tokens_shown: int = 0
    tokens_saved: int = 0
    newest: float = 0.0

    @property
    def calls(self) -> int:
        return sum(self.outcomes.values())

    def add(self, records: Sequence[CallRecord]) -> None:
        """Count calls of this key."""
        for outcome, count in Counter([record.outcome for record in records]).items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        self.took.add([record.took_ms for record in records if record.took_ms and record.outcome not in UNHEARD])
        self.waited.add([record.waited_ms for record in records if record.waited_ms])
        self.bytes_in += sum([record.bytes_in for record in records])
        self.bytes_out += sum([record.bytes_out for record in records])
        self.tokens_shown += sum([record.tokens_shown for record in records])
        self.tokens_saved += sum([record.tokens_saved for record in records])
        self.newest = max([self.newest, *[record.time for record in records]])

    def merge(self, other: Tally) -> None:
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        self.took.merge(other.took)
        self.waited.merge(other.waited)
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.tokens_shown += other.tokens_shown
        self.tokens_saved += other.tokens_saved
        self.newest = max(self.newest, other.newest)


class Period(msgspec.Struct):
    """Begins at `start`, in unix seconds."""

    level: Level
    start: int
    tallies: dict[Key, Tally] = {}

    @property
    def calls(self) -> int:
        return sum(tally.calls for tally in self.tallies.values())

    def add(self, records: Iterable[CallRecord]) -> None:
        """Count calls of this period."""
        by_key: defaultdict[Key, list[CallRecord]] = defaultdict(list)
        for record in records:
            by_key[record.principal, record.client, record.server, record.tool].append(record)
        for key, calls in by_key.items():
            self.tally(key).add(calls)

    def merge(self, other: Period) -> None:
        for key, tally in other.tallies.items():
            self.tally(key).merge(tally)

    def tally(self, key: Key) -> Tally:
        """Return the tally of a key: its own, or where there are too many, that of all others of the same person."""
        tally = self.tallies.get(key)
        if tally is not None:
            return tally
        if len(self.tallies) >= MAX_KEYS:
            principal = key[0] if len(self.tallies) < 2 * MAX_KEYS else Principal(OTHERS)
            key = principal, OTHERS, OTHERS, OTHERS
        return self.tallies.setdefault(key, Tally({}))

    def encode(self) -> bytes:
        return _encode([(*key, tally) for key, tally in self.tallies.items()])


_encode = msgspec.msgpack.Encoder().encode
_ROWS: Final = msgspec.msgpack.Decoder(list[tuple[Principal, str, str, str, Tally]])


def decode(level: Level, start: int, payload: bytes) -> Period | None:
    """Return the period that was encoded; None if it is none."""
    try:
        rows = _ROWS.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return Period(level, start, {(who, client, server, tool): tally for who, client, server, tool, tally in rows})


def start_of(level: Level, moment: float) -> int:
    """Return the start of the period around a moment, both unix seconds. Days are those of UTC."""
    return int(moment) // LENGTH_S[level] * LENGTH_S[level]


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


_ALL: Final = CallSelection()


def begin_of(window: TimeWindow, now: float) -> int:
    """Return the start of the first bucket of a window that ends now: the newest bucket is not over yet."""
    return (int(now) // window.bucket_s + 1) * window.bucket_s - window.length_s


def rows(periods: Iterable[Period], by: By, which: CallSelection = _ALL) -> list[dict[str, Any]]:
    """Return a row for each tool, server, client or user, those with most calls first."""
    sums: dict[tuple[str, ...], Tally] = {}
    for period in periods:
        for key, tally in period.tallies.items():
            if which.has(key):
                sums.setdefault(_BY[by](key), Tally({})).merge(tally)
    ordered = sorted(sums.items(), key=lambda each: (-each[1].calls, each[0]))
    return [{**dict(zip(NAMES[by], key, strict=True)), **figures(tally)} for key, tally in ordered]


def total(periods: Iterable[Period], which: CallSelection = _ALL) -> Tally:
    whole = Tally({})
    for period in periods:
        for key, tally in period.tallies.items():
            if which.has(key):
                whole.merge(tally)
    return whole


def timeline(
    periods: Sequence[Period], window: TimeWindow, begin: int, which: CallSelection = _ALL
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
        "took_ms": _percentiles(tally.took),
        "waited_ms": _percentiles(tally.waited),
        "bytes_in": tally.bytes_in,
        "bytes_out": tally.bytes_out,
        "tokens_shown": tally.tokens_shown,
        "tokens_saved": tally.tokens_saved,
        "newest": tally.newest or None,
    }


def _percentiles(histogram: Histogram) -> dict[str, float | int | None]:
    count = histogram.count
    return {
        "count": count,
        "mean": round(histogram.total_ms / count, 3) if count else None,
        **{f"p{share:g}": _round(histogram.quantile(share / 100)) for share in (50, 95, 99)},
    }


def _round(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 1 if milliseconds < 100 else 0)
