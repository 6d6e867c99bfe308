"""What is done in the world and by nobody here: what speaks against a hit by its meaning. Pure.

How near the nearest document is says little by itself, as some requests are near to everything. One that is nearer to
things which no document here does is most likely one of these. What some document here comes near to is left out: a
mail program beside the hundred that the world has is no reason to doubt that it sends mail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from actors.search.documents.embedding import Levels, Meanings
from actors.search.documents.postings import Bools, Floats

DONE_HERE = 0.6
"""What a document comes nearer to than this cosine is done here."""

_NEAREST = 3
_AT_ONCE = 1000  # documents: three megabytes of cosines


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The vectors of `WORLD`, none until they are made, and per server which of these lines it does."""

    lines: Meanings
    done: Mapping[str, Bools]
    elsewhere: Bools  # per line: no server does it

    @staticmethod
    def of(rows: Levels) -> World:
        """Return a world in which nothing is done here; `rows` are the vectors of its lines."""
        lines = Meanings.empty(rows.shape[1]).splice(0, 0, [rows])
        return World(lines, {}, np.ones(len(rows), np.bool_))

    @staticmethod
    def empty(dimensions: int) -> World:
        return World.of(np.zeros((0, dimensions), np.int8))

    def replace(self, gone: Iterable[str], new: Mapping[str, Levels]) -> World:
        if not len(self.elsewhere):
            return self
        out = {*gone, *new}
        done = {server: lines for server, lines in self.done.items() if server not in out}
        done |= {server: self._done_by(rows) for server, rows in new.items()}
        elsewhere: Bools = ~np.logical_or.reduce([np.zeros_like(self.elsewhere), *done.values()])
        return World(self.lines, done, elsewhere)

    def nearness(self, vector: Floats) -> tuple[float, float] | None:
        """Return the mean cosine of the three lines nearest to this one that are done elsewhere, and that of all these.

        Zeros if fewer than three are done elsewhere; None if no line is known.
        """
        if not len(self.elsewhere):
            return None
        cosines = self.lines.cosines(vector)[self.elsewhere]
        if len(cosines) < _NEAREST:
            return 0.0, 0.0
        return float(np.partition(cosines, -_NEAREST)[-_NEAREST:].mean()), float(cosines.mean())

    def _done_by(self, rows: Levels) -> Bools:
        out = np.zeros(len(self.elsewhere), np.bool_)
        if rows.shape[1] != self.lines.rows.shape[1]:
            return out
        documents = Meanings.empty(rows.shape[1]).splice(0, 0, [rows])
        for first in range(0, len(rows), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            cosines = self.lines.rows @ documents.rows[some].T * documents.scales[some]
            out |= cosines.max(axis=1) * self.lines.scales > DONE_HERE
        return out
