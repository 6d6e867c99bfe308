"""How sure it is that anything serves what was asked, from what was found for it. Pure.

The weights are those that `python -m benchmarks.fit_scores` prints; nothing else depends on their values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from actors.search.postings import Bools, Floats

_TINY = 1e-6


class Curve(NamedTuple):
    """The weights of a logistic function of the evidence."""

    at_zero: float
    root_share: float
    terms: float
    unknown: float
    elsewhere: float
    said: float = 0.0
    nearest: float = 0.0
    world: float = 0.0
    common: float = 0.0


WORDS = Curve(at_zero=-11.17, root_share=14.65, terms=3.14, unknown=-3.04, elsewhere=-3.62, said=-0.8)
"""The curve where words alone are compared."""
MEANINGS = Curve(
    at_zero=-8.77,
    root_share=11.64,
    terms=2.74,
    unknown=-1.88,
    elsewhere=-3.87,
    said=-1.39,
    nearest=9.53,
    world=-12.79,
    common=27.79,
)
"""The curve where meanings are compared, too."""
FALLS = 0.3
"""A hit's chance falls with this power of its share of the best score."""


class Nearness(NamedTuple):
    """How near the meaning of a query is to others, in cosines.

    - `nearest`: to the document that is nearest;
    - `world`: to what is done in the world and by nobody here (`World.nearness`);
    - `common`: to all of that on average. Some queries are near to everything, which says nothing of them.
    """

    nearest: float = 0.0
    world: float = 0.0
    common: float = 0.0


NO_NEARNESS = Nearness()


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What speaks for and against the hits of one reading of a query.

    - `share`: the best score, as a share (0..1) of that of a document which matches everything;
    - `terms`: how many needs were read; of many words no document matches all;
    - `unknown`: which share of the things asked for, by weight, no document at all has;
    - `elsewhere`: per document, which share of the products that the query names it does not mention;
    - `said`: per document, whether sentences by which people ask for it are known: it matches more by chance.
    """

    share: float
    terms: int
    unknown: float
    elsewhere: Floats
    said: Bools

    def of(self, number: int, nearness: Nearness = NO_NEARNESS) -> tuple[float, ...]:
        """Return what a curve weighs for one document, in the order of its weights."""
        of_query = (1.0, math.sqrt(self.share), math.log(max(self.terms, 1)), self.unknown)
        return (*of_query, float(self.elsewhere[number]), float(self.said[number]), *nearness)


def chances(values: Floats, evidence: Evidence) -> Floats:
    """Return per document the chance (0..1) that it serves what was asked, by words alone.

    Each has products and sentences of its own; all else is the query's.
    """
    own = evidence.elsewhere * np.float32(WORDS.elsewhere) + evidence.said * np.float32(WORDS.said)
    common = _logit(WORDS, evidence.of(0)) if len(values) else 0.0
    out: Floats = decay(values) / (1 + np.exp(own[:1] - own - np.float32(common)))
    return out


def with_meanings(values: Floats, readings: Sequence[Evidence], nearness: Nearness | None) -> Floats:
    """Return the same by words and meanings, for the surest reading of the query; by words if no world is known."""
    first = int(values.argmax())
    curve = WORDS if nearness is None else MEANINGS
    sure = max(_logit(curve, evidence.of(first, nearness or NO_NEARNESS)) for evidence in readings)
    return decay(values) * np.float32(1 / (1 + math.exp(-sure)))


def _logit(curve: Curve, evidence: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip(curve, evidence, strict=True))


def decay(values: Floats) -> Floats:
    """Return per document by how much it is less likely to be meant than the one with the best score."""
    out = np.zeros(len(values), np.float32)
    scored = np.flatnonzero(values > 0)  # a power of zero takes ten times as long as one of a number
    best = max(float(values.max(initial=0.0)), _TINY)
    out[scored] = np.power(values[scored] / np.float32(best), np.float32(FALLS))
    return out
