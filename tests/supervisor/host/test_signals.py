"""Signals that mean nothing to a daemon, while it starts and while it runs: modules that are loaded send them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.daemons import COMMAND, ROOT
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.process

MEANINGLESS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

SENDS = """
import os, sys
class Sender:
    modules = {modules!r}
    def find_spec(self, name, path=None, target=None):
        if name in self.modules:
            self.modules.remove(name)
            for number in {numbers}:
                os.kill(os.getpid(), number)
sys.meta_path.insert(0, Sender())
"""


def started(tmp_path: Path, modules: set[str], *numbers: signal.Signals) -> subprocess.Popen[str]:
    """Start a daemon that gets signals as soon as it loads one of these modules."""
    (tmp_path / "sitecustomize.py").write_text(SENDS.format(modules=modules, numbers=[*map(int, numbers)]))
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {}}))
    options = ["--config", str(config), "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    return subprocess.Popen(
        [*COMMAND, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_daemon_that_is_starting_goes_on_after_signals_that_mean_nothing_to_it_and_says_last_that_it_has_ended(
    tmp_path: Path,
) -> None:
    with started(tmp_path, {"supervisor.cli", "supervisor.daemon"}, *MEANINGLESS) as daemon:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        assert daemon.stdout.readline().startswith("listening on ")
        for number in MEANINGLESS:
            daemon.send_signal(number)
        daemon.terminate()
        assert daemon.wait(PATIENCE_S) == 0
        assert daemon.stderr.read().splitlines()[-1].endswith("ended, exit code 0")
