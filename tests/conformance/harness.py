"""Runs the official suite against an address."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from tests.conformance.installation import Installation
from tests.conformance.scores import Scenarios, Score, listed, scores
from tests.conformance.suites import Suite

SUITE_S = 900.0
SCENARIO_S = 120.0


class Harness:
    """One installation of the suite; what it writes stays beside it, in a directory for each run."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._every: dict[str, Scenarios] = {}

    def scenarios(self, suite: Suite, names: Sequence[str]) -> Scenarios:
        """Return what the suite runs, or those of it that are named.

        Raises:
            RuntimeError: The suite does not run at all.
        """
        if suite.name not in self._every:
            printed = self._run(suite, *suite.listing, within_s=SCENARIO_S)
            self._every[suite.name] = listed(printed)
            if not self._every[suite.name].scored:
                raise RuntimeError(f"the suite {suite.name} lists no scenarios: {printed}")
        every = self._every[suite.name]
        if not names:
            return every
        return Scenarios(
            tuple(each for each in every.scored if each in names),
            tuple(each for each in every.unscored if each in names),
        )

    def run(self, suite: Suite, url: str, names: Sequence[str], title: str) -> dict[str, Score]:
        """Run it, or the named scenarios of it, against `url`; return the scores of those that could be run."""
        into = self._installation.results / suite.name / title
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        against = ("server", "--url", url, "--output-dir", str(into))
        runs = [("--scenario", name, *suite.one) for name in names] or [suite.all]
        within_s = SCENARIO_S if names else SUITE_S
        log = [self._run(suite, *against, *options, within_s=within_s) for options in runs]
        (into / "log.txt").write_text("\n".join(log), encoding="utf-8")
        return scores(into)

    def _run(self, suite: Suite, *arguments: str, within_s: float) -> str:
        """Return what it printed. Its exit code counts failed scenarios, which is told better by what it writes."""
        command = [self._installation.node(), str(self._installation.suite(suite.package)), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)
        return ended.stdout + ended.stderr
