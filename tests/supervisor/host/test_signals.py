"""Signals while the daemon is starting: a module that is loaded sends one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.daemons import COMMAND, PATIENCE_S, ROOT

pytestmark = pytest.mark.process

SENDS = """
import os, sys
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Sender())
"""


def started(tmp_path: Path, module: str, number: signal.Signals) -> subprocess.Popen[str]:
    """Start a daemon that gets a signal as soon as it loads a module."""
    (tmp_path / "sitecustomize.py").write_text(SENDS.format(module=module, number=int(number)))
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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("module", ["supervisor.cli", "supervisor.daemon"])
def test_a_daemon_that_is_starting_goes_on_after_a_signal_that_means_nothing_to_it(
    tmp_path: Path, module: str, number: signal.Signals
) -> None:
    with started(tmp_path, module, number) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith("listening on ")
        daemon.send_signal(number)
        daemon.terminate()
        assert daemon.wait(PATIENCE_S) == 0


def test_the_last_line_of_the_log_says_that_the_daemon_has_ended(tmp_path: Path) -> None:
    with started(tmp_path, "none", signal.SIGHUP) as daemon:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        assert daemon.stdout.readline().startswith("listening on ")
        daemon.terminate()
        assert daemon.wait(PATIENCE_S) == 0
        assert daemon.stderr.read().splitlines()[-1].endswith("ended, exit code 0")


@pytest.mark.parametrize("module", ["importlib.metadata", "supervisor.cli", "supervisor.daemon"])
def test_ctrl_c_while_the_daemon_is_loaded_shows_no_traceback(tmp_path: Path, module: str) -> None:
    with started(tmp_path, module, signal.SIGINT) as daemon:
        out, err = daemon.communicate(timeout=PATIENCE_S)
    assert (daemon.returncode, out, err) == (-signal.SIGINT, "", "")
