"""What one run of the suite says of each scenario, read from what it wrote. Pure but for reading files."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

DIRECTORY = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d\d-\d\dT[\d-]+Z")
"""How the suite names the directory of one scenario that was run."""


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """One check of a scenario, of those fields that are read."""

    id: str
    status: str
    error_message: str = ""


class Score(msgspec.Struct, frozen=True):
    """The checks of one scenario by their outcome, and what was wrong: the check's id and the suite's words."""

    succeeded: int = 0
    failed: int = 0
    warned: int = 0
    skipped: int = 0
    wrong: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """As the suite counts it: warnings and skipped checks do no harm."""
        return self.failed == 0

    def __str__(self) -> str:
        counts = f"{self.succeeded}/{self.succeeded + self.failed}"
        more = (f", {self.warned} warned" if self.warned else "") + (
            f", {self.skipped} skipped" if self.skipped else ""
        )
        return counts + more


class Scenarios(msgspec.Struct, frozen=True):
    """What a suite runs against a server, in its order: what it scores, and what it reports only."""

    scored: tuple[str, ...]
    unscored: tuple[str, ...] = ()


def scored(checks: bytes) -> Score:
    """Return the score of a scenario from its `checks.json`."""
    read = msgspec.json.decode(checks, type=list[Check])
    counts = Counter(check.status for check in read)
    return Score(
        succeeded=counts["SUCCESS"],
        failed=counts["FAILURE"],
        warned=counts["WARNING"],
        skipped=counts["SKIPPED"],
        wrong=tuple(f"{each.id}: {each.error_message}" for each in read if each.status in ("FAILURE", "WARNING")),
    )


def scores(results: Path) -> dict[str, Score]:
    """Return the score of every scenario that a run left in this directory."""
    named = {each: DIRECTORY.fullmatch(each.parent.name) for each in sorted(results.glob("*/checks.json"))}
    return {match["scenario"]: scored(file.read_bytes()) for file, match in named.items() if match}


def listed(text: str) -> Scenarios:
    """Return the scenarios against servers from what `list` of the suite prints."""
    required, _, reported = text.partition("Run and reported, but never scored:")
    _, _, required = required.partition("Server scenarios")
    against_servers, _, _ = required.partition("Client scenarios")
    return Scenarios(
        scored=tuple(re.findall(r"^  - (\S+)", against_servers, re.MULTILINE)),
        unscored=tuple(re.findall(r"^    - (\S+) \[server\]$", reported, re.MULTILINE)),
    )
