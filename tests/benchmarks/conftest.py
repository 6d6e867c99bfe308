"""What the tests of all benchmarks have in common."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks import machine
from tests.e2e.fork_server import ForkedProcess, can_fork, fork

STARTED = "[G23]"
"""What measures the start itself, from the command on."""
OURS = [sys.executable, "-m", "supervisor"]


@pytest.fixture(autouse=True)
def forked_daemons(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the daemons that benchmarks measure be forked: half of what their small forms took was imports."""
    if request.node.name.endswith(STARTED):
        yield
        return
    by_command = machine.begin
    with ExitStack() as streams:

        def begin(command: Sequence[str], log: Path, env: Mapping[str, str]) -> ForkedProcess | subprocess.Popen[bytes]:
            if [*command[:3]] != OURS or not can_fork(env):
                return by_command(command, log, env)
            with log.open("ab") as output:
                process = fork(command[3:], env, output.fileno())
            streams.enter_context(process.stdout)
            return process

        monkeypatch.setattr(machine, "begin", begin)
        yield
