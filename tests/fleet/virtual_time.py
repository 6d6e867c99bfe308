"""Runs a simulation of a fleet on a clock that jumps to whatever is next, in the same order every time."""

from __future__ import annotations

import random

import trio
from trio._core import _run  # as hypothesis has it: there is no public name for a scheduler without chance
from trio.testing import MockClock

from tests.fleet.simulation import Report, Scale, Simulation


def simulate(scale: Scale, seed: int) -> Report:
    """Run one, and return what came of it."""
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # see above
    scheduler, pauses = _run._r.getstate(), random.getstate()
    _run._r.seed(seed)
    random.seed(seed)
    try:
        return trio.run(_run_one, scale, seed, clock=MockClock(autojump_threshold=0))
    finally:
        _run._r.setstate(scheduler)
        random.setstate(pauses)
        _run._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[misc]


async def _run_one(scale: Scale, seed: int) -> Report:
    return await Simulation(scale, seed).run()
