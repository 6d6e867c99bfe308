"""Real processes that are killed at any moment around calls: each call has one end and runs once at the most."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import ServerError
from actors.life.policy import RestartPolicy
from actors.server import ServerSettings
from actors.transport.stdio.process import ProcessTransport
from tests.actors.server.rig import running_server
from tests.actors.transport.stdio.children import PATIENCE_S, launch, no_child_and_no_descriptor_is_left

__all__ = ["no_child_and_no_descriptor_is_left"]

pytestmark = pytest.mark.process

ROUNDS = 15
CALLS = 4
"""In each round."""


@pytest.mark.case("P09", "P11")
@pytest.mark.parametrize("seed", [1])
async def test_a_call_that_a_kill_meets_has_one_end_and_is_carried_out_once_at_most(tmp_path: Path, seed: int) -> None:
    """The kill comes up to 3 ms after the first call is handed over."""
    chance = random.Random(seed)
    ledger = tmp_path / "ledger"
    policy = RestartPolicy(max_restarts=1000, backoff_initial_s=0.01, backoff_max_s=0.01)
    ends: dict[int, Any] = {}
    pids: set[int] = set()

    settings = ServerSettings(breaker=False)  # so many kills in a row would open it
    transport = ProcessTransport(launch("ledger", str(ledger)))
    async with running_server(transport=transport, settings=settings, policy=policy) as rig:

        async def call(number: int, after_s: float) -> None:
            await trio.sleep(after_s)
            try:
                ends[number] = await rig.call("note", n=number)
            except ServerError as error:
                ends[number] = error.outcome

        with trio.fail_after(PATIENCE_S):
            for round_ in range(ROUNDS):
                await rig.wake()
                pid = (await rig.status()).pid
                assert pid is not None
                pids.add(pid)
                async with trio.open_nursery() as nursery:
                    for number in range(CALLS):
                        nursery.start_soon(call, round_ * CALLS + number, number * 0.001)
                    await trio.sleep(chance.random() * 0.003)
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        assert await rig.call("note", n=ROUNDS * CALLS) == {"n": ROUNDS * CALLS}
    carried_out = [int(line) for line in ledger.read_text().splitlines()]
    assert len(set(carried_out)) == len(carried_out)
    assert sorted(ends) == list(range(ROUNDS * CALLS))
    assert {number for number, end in ends.items() if end == {"n": number}} <= set(carried_out)
    assert {end for end in ends.values() if isinstance(end, str)} <= {"unknown"}  # what was not sent was sent later
    assert len(pids) == ROUNDS
