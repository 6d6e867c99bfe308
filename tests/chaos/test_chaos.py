"""A short run of chaos with every kind of fault once. `python -m tests.chaos` is for longer ones.

How long something takes says nothing here: other tests run at the same time. Everything else must hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.report import report
from tests.chaos.run import Plan, Run
from tests.chaos.schedule import KINDS, schedule
from tests.chaos.verdicts import Bounds, judge

pytestmark = pytest.mark.e2e

SECONDS = 30.0
CALLS_PER_S = 25.0
FAULTS_PER_S = 1.05
SEED = 7
PATIENCE = 60.0


async def test_a_daemon_under_every_kind_of_fault_keeps_what_it_promises(tmp_path: Path) -> None:
    faults = schedule(SEED, SECONDS, FAULTS_PER_S)
    assert {fault.kind for fault in faults} == set(KINDS)
    run = Run(tmp_path, Plan(SECONDS, SEED, tuple(faults), CALLS_PER_S), lambda line: print(line, flush=True))
    history = await run.go()
    verdicts = judge(history, Bounds().times(PATIENCE))
    told = report(history, verdicts, f"python -m tests.chaos --minutes {SECONDS / 60:.2f} --seed {SEED}")
    assert not any(verdicts.values()), told
    assert len(history.requests) > SECONDS
    assert sum(history.ran.values()) > SECONDS / 2
