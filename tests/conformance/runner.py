"""Runs one suite on both sides, over each transport asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

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
        self,
        suite: Suite,
        transports: Sequence[Transport],
        names: Sequence[str] = (),
        *,
        across: bool = False,
        fresh: bool = False,
    ) -> Iterator[tuple[Transport, list[Row]]]:
        """Run all scenarios, or the named ones that there are: directly, and for each transport through the door.

        Directly is always against a server of the suite's own era. `across`: behind the door is one of the other era.
        `fresh`: each scenario has a daemon and a server of its own, so that nothing is left of those before.
        """
        scenarios = self._harness.scenarios(suite, names)
        every = (*scenarios.scored, *scenarios.unscored)
        named = every if names else ()
        if not every:
            return
        role = Role(OTHER[suite.era], overlay=True) if across else Role(suite.era)
        with ThreadPoolExecutor(1) as beside:  # nearly all that it does is to wait for the suite
            direct = beside.submit(self._directly, suite, named)
            for transport in transports:
                through: dict[str, Score] = {}
                for number, run in enumerate([(name,) for name in every] if fresh else [named]):
                    with self._stage.door(role, transport) as url:
                        through |= self._harness.run(suite, url, run, f"{role.era}-{transport}{f'/{number}' * fresh}")
                why = reasons(suite.name, role.era, transport, fresh=fresh)
                yield transport, compared(scenarios, direct.result(), through, why)

    def _directly(self, suite: Suite, names: tuple[str, ...]) -> Mapping[str, Score]:
        key = (suite.name, names)
        if key not in self._direct:
            with self._stage.server(Role(suite.era)) as url:
                self._direct[key] = self._harness.run(suite, url, names, "direct")
        return self._direct[key]
