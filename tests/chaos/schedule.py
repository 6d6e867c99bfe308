"""What is done when, from a seed: the same seed and length give the same faults at the same moments. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

QUIET: Final = 0.15
"""The share of a run in which nothing is done, before the first fault: what the rest is compared with."""
CALM: Final = 0.12
"""The share at the end of it, in which everything comes to rest."""


class Kind(Struct, frozen=True):
    """A kind of fault. `weight`: how often it comes beside others. `lasts_s`: for how long, at least and at most.

    `rows`: what of the fault catalogue it plays. `shakes`: it is done to the daemon itself, one at a time.
    """

    name: str
    weight: int
    rows: str
    lasts_s: tuple[float, float] = (0.0, 0.0)
    shakes: bool = False


class Fault(Struct, frozen=True):
    """One fault: `at_s` after the begin, `luck` seeds what is left to chance in it."""

    at_s: float
    kind: Kind
    lasts_s: float
    luck: int


KINDS: Final = (
    Kind("kill server", 12, "G1 P09 P11"),
    Kind("stop server", 4, "P01", (0.5, 3.0)),
    Kind("wire fault", 24, "S01-S34"),
    Kind("remote fault", 6, "H01-H31", (0.3, 1.5)),
    Kind("tear remote", 5, "H23"),
    Kind("vanish", 8, "C12 C13"),
    Kind("deaf client", 3, "W02", (2.0, 6.0)),
    Kind("storm", 4, "L06 H24"),
    Kind("many at once", 4, "P12 P13"),
    Kind("expire login", 3, "H25"),
    Kind("add or remove", 5, "D05 P24"),
    Kind("change server", 5, "D05 P25"),
    Kind("bad file", 3, "D06 G15", shakes=True),  # a daemon that starts with it ends, or has an entry less
    Kind("hang up", 3, "D05"),
    Kind("revoke user", 2, "D10 I12", (0.5, 1.5), shakes=True),
    Kind("full disk", 2, "D11 G16", (1.0, 4.0), shakes=True),
    Kind("step clock", 2, "D14 G17", (0.5, 2.0), shakes=True),
    Kind("stop daemon", 2, "D15 G17", (0.5, 4.0), shakes=True),
    Kind("kill daemon", 1, "D03 D04 G2", shakes=True),
)


def schedule(seed: int, seconds: float, per_s: float, kinds: Sequence[Kind] = KINDS) -> list[Fault]:
    """Return the faults of a run of so many seconds, about `per_s` of them in each; in order.

    Each kind comes at least once, if there are at least as many faults as kinds.
    """
    luck = random.Random(seed)
    begin, end = seconds * QUIET, seconds * (1 - CALM)
    count = max(1, round((end - begin) * per_s))
    drawn = list(luck.sample(kinds, len(kinds)))[:count]
    drawn += luck.choices(kinds, [kind.weight for kind in kinds], k=count - len(drawn))
    moments = sorted(luck.uniform(begin, end) for _ in drawn)
    luck.shuffle(drawn)
    return [
        Fault(at_s, kind, min(luck.uniform(*kind.lasts_s), max(0.0, end - at_s)), luck.getrandbits(32))
        for at_s, kind in zip(moments, drawn, strict=True)
    ]
