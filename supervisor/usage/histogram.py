"""How often something took how long: counts in buckets that grow by a fifth, so that they can be added up. Pure.

A quantile is the middle of its bucket, so it is wrong by a tenth at most; of percentiles alone no sum could be made.
(The idea of DDSketch: Masson, Rim and Lee, VLDB 2019.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

import msgspec

STEPS: Final = 4
"""Buckets for a doubling."""
LEAST_MS: Final = 0.1
MOST_MS: Final = 3_600_000.0
"""An hour: what takes longer counts as that."""


def limit_of(bucket: int) -> float:
    """Return the longest time in a bucket, in milliseconds."""
    return float(LEAST_MS * 2 ** (bucket / STEPS))


_LIMITS: Final = [limit_of(bucket) for bucket in range(math.ceil(STEPS * math.log2(MOST_MS / LEAST_MS)))]
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
                return limit_of(bucket) / 2 ** (0.5 / STEPS) if bucket else LEAST_MS
        return None
