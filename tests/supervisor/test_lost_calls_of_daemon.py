"""A call in flight has its error when its server is dead, whatever else of that still has to die."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.transport.stdio.containment import ALL, Contained, GroupContainment
from actors.transport.stdio.process import ProcessTransport
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.sandbox import Sandbox
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from tests.e2e.daemons import stand_in
from tests.fakes.failures import failure
from tests.scenario.daemon import world

BEHIND = 'exec 3<&0; setsid "$@" <&3 3<&- & wait'
"""A launcher whose server has a session of its own: it outlives it, and holds its output."""


class LongDying(Contained):
    """Of which something is left until the test says that it is gone."""

    def __init__(self, started: Contained, swept: trio.Event) -> None:
        super().__init__(started.process, started.pid)
        self._swept = swept

    async def wait(self) -> tuple[int | None, int | None]:
        await self._swept.wait()
        return await super().wait()


class SlowContainment(GroupContainment):
    def __init__(self) -> None:
        super().__init__()
        self.swept = trio.Event()

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        sandbox: Sandbox | None = None,
        allotment: Allotment = ALL,
    ) -> Contained:
        started = await super().spawn(argv, env=env, cwd=cwd, sandbox=sandbox, allotment=allotment)
        return LongDying(started, self.swept)


@pytest.mark.process
async def test_a_call_in_flight_is_told_that_its_server_was_killed_before_the_last_of_that_is_dead(
    tmp_path: Path, data: DataDir
) -> None:
    containment = SlowContainment()

    def connect(server: DeployedServer) -> ProcessTransport:
        return ProcessTransport(server.launch, server.limits, containment=containment, name=server.name)

    behind = stand_in("growing")
    entry = {"command": "/bin/sh", "args": ["-c", BEHIND, "launcher", behind["command"], *behind["args"]]}
    answers: list[Any] = []

    async with world(tmp_path, data, {"desk": entry}, daemon={"connect": connect}) as at:

        async def hang() -> None:
            answers.append(await at.execute("desk:hang"))

        try:
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(hang)
                    row = await at.until("/api/servers/desk", lambda row: row["in_flight"])
                    os.kill(row["pid"], signal.SIGKILL)
        finally:
            containment.swept.set()
    assert failure(answers[0])["data"]["outcome"] == "unknown"
