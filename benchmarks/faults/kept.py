"""The results that were measured last, as the documentation shows them: `benchmarks/faults/results.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from benchmarks.faults.verdict import Trial

FILE: Final = Path(__file__).with_name("results.json")


class Kept(msgspec.Struct, frozen=True):
    """All trials of one subject, with how it was started and when."""

    subject: str
    version: str
    how: str
    on: str
    trials: tuple[Trial, ...]


def kept() -> dict[str, Kept]:
    """Return the last run of each subject, by its name."""
    return (
        {run.subject: run for run in msgspec.json.decode(FILE.read_bytes(), type=list[Kept])} if FILE.exists() else {}
    )


def keep(run: Kept) -> None:
    """Write this run in place of an earlier one of the same subject."""
    FILE.write_bytes(
        msgspec.json.format(msgspec.json.encode([*(kept() | {run.subject: run}).values()]), indent=1) + b"\n"
    )
