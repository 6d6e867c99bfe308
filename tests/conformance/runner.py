"""Runs one suite on both sides, over each transport asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.conformance.comparison import Row, compared
from tests.conformance.harness import Harness
from tests.conformance.installation import Installation
from tests.conformance.known import reasons
from tests.conformance.scores import Score
from tests.conformance.stage import Role, Stage, Transport
from tests.conformance.suites import OTHER, Suite


class Runner:
    """Compares with what is installed. What passes directly is found out once."""

    def __init__(self, installation: Installation) -> None:
        self._stage = Stage(installation)
        self._harness = Harness(installation)
        self._direct: dict[tuple[str, tuple[str, ...]], Mapping[str, Score]] = {}

    def compare(
        self, suite: Suite, transports: Sequence[Transport], names: Sequence[str] = (), *, across: bool = False
    ) -> Iterator[tuple[Transport, list[Row]]]:
        """Run all scenarios, or the named ones that there are: directly, and for each transport through the door.

        Directly is always against a server of the suite's own era. `across`: behind the door is one of the other era.
        """
        scenarios = self._harness.scenarios(suite, names)
        named = (*scenarios.scored, *scenarios.unscored) if names else ()
        if names and not named:
            return
        role = Role(OTHER[suite.era], overlay=True) if across else Role(suite.era)
        direct = self._directly(suite, named)
        for transport in transports:
            with self._stage.door(role, transport) as url:
                through = self._harness.run(suite, url, named, f"{role.era}-{transport}")
            yield transport, compared(scenarios, direct, through, reasons(suite.name, role.era, transport))

    def _directly(self, suite: Suite, names: tuple[str, ...]) -> Mapping[str, Score]:
        key = (suite.name, names)
        if key not in self._direct:
            with self._stage.server(Role(suite.era)) as url:
                self._direct[key] = self._harness.run(suite, url, names, "direct")
        return self._direct[key]
