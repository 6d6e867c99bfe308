"""A remote server that answers with what is much work to read, and never with an answer: nobody else waits for it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
import trio

from benchmarks.worst_remotes import CALLS, hostile
from tests.e2e.daemons import Daemon, running
from tests.fakes.failures import failure

pytestmark = pytest.mark.e2e

CHECKS = 7
OTHERS_WAIT_MS = 50.0
"""Many times what a turn of the server in several passes of the loop costs, of which an answer takes a dozen."""
END_S = 60
"""The daemon ends in the middle of the flood; how fast the machine is says nothing here."""


def computed_ms(daemon: Daemon) -> float:
    """How much processor time the thread of the loop has used: who else is on the machine does not count."""
    pid = daemon.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


async def call_again_and_again(daemon: Daemon, tool: str) -> None:
    while True:
        await daemon.execute(tool)


@pytest.mark.case("H12", "D27")
@pytest.mark.parametrize("sent", ["interim", "empty", "chunks", "bomb"])
async def test_twenty_calls_of_a_remote_server_that_floods_make_nobody_else_wait(tmp_path: Path, sent: str) -> None:
    async with hostile() as entry:
        # Who leaves has not cancelled anything in this era: its calls go on to their deadline.
        entry["hostile"] |= {"call_timeout_s": 2, "breaker": False}
        with running(tmp_path, entry, shutdown_s=END_S) as daemon:
            await daemon.ready()
            async with trio.open_nursery() as nursery:
                for _ in range(CALLS):
                    nursery.start_soon(call_again_and_again, daemon, f"hostile:{sent}")
                took: list[float] = []
                for _ in range(CHECKS):
                    before = computed_ms(daemon)
                    assert (await daemon.ask("GET", "/healthz")).status_code == 200
                    took.append(computed_ms(daemon) - before)
                nursery.cancel_scope.cancel()
            assert median(took) < OTHERS_WAIT_MS


@pytest.mark.case("H14")
async def test_a_remote_server_that_says_100_without_end_is_an_error_and_no_call_that_times_out(tmp_path: Path) -> None:
    async with hostile() as entry:
        entry["hostile"]["call_timeout_s"] = 5
        with running(tmp_path, entry) as daemon:
            await daemon.ready()
            error = failure(await daemon.execute("hostile:interim"))
            assert error["data"]["type"] == "protocol"
            assert "without end, and no answer" in error["message"]
