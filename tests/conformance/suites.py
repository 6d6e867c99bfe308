"""The suites that are run: which version of the official one, with what options, and what each wants of a server."""

from __future__ import annotations

from typing import Literal, NamedTuple

Era = Literal["legacy", "modern"]
Behind = Literal["legacy", "modern", "dual"]
"""What a server speaks; `dual` is one that speaks both eras."""
OTHER: dict[Era, Era] = {"legacy": "modern", "modern": "legacy"}


class Suite(NamedTuple):
    """`package` is its name in the pins; the options are those that list it, run all of it, or one scenario of it."""

    name: str
    package: str
    era: Era
    listing: tuple[str, ...]
    all: tuple[str, ...]
    one: tuple[str, ...] = ()


def _requirements(revision: str, era: Era) -> Suite:
    every = ("--requirements", revision)
    return Suite(revision, "conformance", era, ("list", *every), every, ("--spec-version", revision, "--force"))


SUITES = {
    suite.name: suite
    for suite in (
        _requirements("2025-11-25", "legacy"),
        _requirements("2026-07-28", "modern"),
        Suite("0.1.16", "conformance-stable", "legacy", ("list", "--server"), ("--suite", "all")),
    )
}
REQUIREMENTS = ("2025-11-25", "2026-07-28")
"""Those that say what conformance to a revision is."""
