"""The figures that were measured last, as the documentation shows them: `benchmarks/goals/results.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.goals.figure import Figure

FILE: Final = Path(__file__).with_name("results.json")


class Kept(msgspec.Struct, frozen=True):
    """One run of one goal: `scale` is "full" or "small"."""

    goal: str
    what: str
    on: str
    machine: str
    scale: str
    figures: tuple[Figure, ...]


def kept() -> dict[str, Kept]:
    """Return the last run of each goal, by its name."""
    return {run.goal: run for run in msgspec.json.decode(FILE.read_bytes(), type=list[Kept])} if FILE.exists() else {}


def keep(runs: Sequence[Kept]) -> None:
    """Write these runs in place of earlier ones of the same goals."""
    now = kept() | {run.goal: run for run in runs}
    ordered = sorted(now.values(), key=lambda run: (len(run.goal.rstrip("ab")), run.goal))
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
