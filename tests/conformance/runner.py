"""Runs one suite on both sides, over each transport asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import NamedTuple

from tests.conformance.comparison import Row, compared
from tests.conformance.harness import Harness
from tests.conformance.installation import Installation
from tests.conformance.known import reasons, takes_turns
from tests.conformance.scores import Score
from tests.conformance.stage import Doors, Role, Stage, Transport
from tests.conformance.suites import OTHER, Suite


class _Passage(NamedTuple):
    """A suite, and what is behind the door."""

    suite: Suite
    role: Role
    transport: Transport

    @property
    def title(self) -> str:
        return f"{self.role.era}-{self.transport}"


class Runner:
    """Compares with what is installed. What passes directly is found out once."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._stage = Stage(installation)
        self._harness = Harness(installation)
        self._direct: dict[tuple[str, tuple[str, ...]], Mapping[str, Score]] = {}

    def before_nodes(self, nodes: int) -> Runner:
        """Return one with so many daemons behind the door, which knows what passes directly from this one."""
        other = copy(self)
        other._stage = Stage(self._installation, nodes)
        return other

    def compare(
        self,
        suite: Suite,
        transports: Sequence[Transport],
        names: Sequence[str] = (),
        *,
        across: bool = False,
        dual: bool = False,
        doors: Doors = "as needed",
    ) -> Iterator[tuple[Transport, list[Row]]]:
        """Run all scenarios, or the named ones that there are: directly, and for each transport through the door.

        Directly is always against a server of the suite's own era. `across`: behind the door is one of the other era;
        `dual`: one that speaks both.
        A fresh daemon has a fresh server, too, so that nothing is left of the scenarios before.
        """
        scenarios = self._harness.scenarios(suite, names)
        every = (*scenarios.scored, *scenarios.unscored)
        named = every if names else ()
        if not every:
            return
        role = Role(OTHER[suite.era], overlay=True) if across else Role("dual" if dual else suite.era)
        with ThreadPoolExecutor(1) as beside:  # nearly all that it does is to wait for the suite
            direct = beside.submit(self._directly, suite, named)
            for transport in transports:
                passage = _Passage(suite, role, transport)
                if doors == "one" or (doors == "as needed" and not takes_turns(suite.name, role.era, transport)):
                    through, anew = self._together(passage, named), list[str]()
                else:
                    through, anew = self._one_by_one(passage, every, each=doors == "each")
                why = reasons(suite.name, role.era, transport, doors)
                yield transport, compared(scenarios, direct.result(), through, why, anew)

    def _directly(self, suite: Suite, names: tuple[str, ...]) -> Mapping[str, Score]:
        key = (suite.name, names)
        if key not in self._direct:
            with self._stage.server(Role(suite.era)) as url:
                self._direct[key] = self._harness.run(suite, url, names, "direct")
        return self._direct[key]

    def _together(self, passage: _Passage, names: tuple[str, ...]) -> dict[str, Score]:
        with self._stage.door(passage.role, passage.transport) as door:
            return self._harness.run(passage.suite, door.url, names, passage.title)

    def _one_by_one(self, passage: _Passage, names: Sequence[str], *, each: bool) -> tuple[dict[str, Score], list[str]]:
        """Run each with a fresh daemon, or only those that come after one that leaves a call behind.

        Returns:
            The scores, and which of the scenarios came after such a one.
        """
        scores: dict[str, Score] = {}
        first: list[str] = []
        left = list(names)
        while left:
            first.append(left[0])
            with self._stage.door(passage.role, passage.transport) as door:
                is_over = False
                while left and not is_over:
                    title = f"{passage.title}/{len(names) - len(left)}"
                    scores |= self._harness.run(passage.suite, door.url, (left.pop(0),), title)
                    is_over = each or door.is_busy
        return scores, [] if each else first[1:]
