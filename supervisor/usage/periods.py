"""What was called in a minute, a quarter of an hour, an hour, a day: added up by who, with what, and which tool. Pure.

Each longer period is the sum of shorter ones, so that it can be made again from them after a crash:

    minute (kept 3 h) ──▶ quarter of an hour (26 h)
           └────────────▶ hour (35 days) ──▶ day (400 days)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from actors.principal import Principal
from supervisor.usage.histogram import Histogram
from supervisor.usage.records import UNHEARD, CallOutcome, CallRecord

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
