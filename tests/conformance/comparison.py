"""The scenarios of a suite directly against the same through the door, and what to make of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.conformance.scores import Scenarios, Score

LEFT = "a fresh daemon: the scenario before left questions unanswered"


class Row(NamedTuple):
    """One scenario; no score means that it could not be run. `reason`: why it may fail through the door.

    `anew`: it had a fresh daemon, as the one before left questions unanswered.
    """

    scenario: str
    is_scored: bool
    direct: Score | None
    through: Score | None
    reason: str = ""
    anew: bool = False

    @property
    def passes_directly(self) -> bool:
        """Whether it passes without the daemon."""
        return self.direct is not None and self.direct.passed

    @property
    def passes_through(self) -> bool:
        """Whether it passes with it."""
        return self.through is not None and self.through.passed

    @property
    def is_worse(self) -> bool:
        """Whether it passes directly, and not through the door."""
        return self.passes_directly and not self.passes_through

    @property
    def is_wrong(self) -> bool:
        """Whether it is scored, and worse without a reason that is known."""
        return self.is_scored and self.is_worse and not self.reason

    @property
    def remark(self) -> str:
        """What a reader should see of it."""
        if self.is_worse:
            return f"**worse**: {self.reason}" if self.reason else "**worse**"
        if self.passes_through and not self.passes_directly:
            return "better"
        if self.passes_through and self.reason:
            return "listed as different, and passes"
        return "" if self.direct == self.through else "not the same"


def compared(
    scenarios: Scenarios,
    direct: Mapping[str, Score],
    through: Mapping[str, Score],
    reasons: Mapping[str, str],
    anew: Collection[str] = (),
) -> list[Row]:
    """Return a row for each scenario, the scored ones first; those of `anew` had a fresh daemon."""
    return [
        Row(name, is_scored, direct.get(name), through.get(name), reasons.get(name, ""), name in anew)
        for is_scored, names in ((True, scenarios.scored), (False, scenarios.unscored))
        for name in names
    ]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Give the lines of the table, in Markdown, with the totals."""
    yield "| scenario | directly | through the door | |"
    yield "| --- | --- | --- | --- |"
    for row in rows:
        name = row.scenario if row.is_scored else f"{row.scenario} (not scored)"
        remarks = "; ".join(filter(None, (row.remark, LEFT if row.anew else "")))
        yield f"| {name} | {_shown(row.direct)} | {_shown(row.through)} | {remarks} |"
    for title, is_scored in (("scored", True), ("not scored", False)):
        chosen = [row for row in rows if row.is_scored == is_scored]
        if chosen:
            directly, passed = (sum(each) for each in zip(*map(_passes, chosen), strict=True))
            yield f"| **{title}** | **{directly} of {len(chosen)}** | **{passed} of {len(chosen)}** | |"


def differences(rows: Sequence[Row]) -> Iterator[str]:
    """Give a line for each check that is wrong through the door and not directly."""
    for row in rows:
        known = set(row.direct.wrong) if row.direct is not None else set()
        for wrong in row.through.wrong if row.through is not None else ():
            if wrong not in known:
                yield f"{row.scenario}: {wrong}"


def _shown(score: Score | None) -> str:
    if score is None:
        return "not run"
    return f"{'pass' if score.passed else 'FAIL'} {score}"


def _passes(row: Row) -> tuple[bool, bool]:
    return row.passes_directly, row.passes_through
