"""What is looked for at the end of every daemon of a test is found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.daemons import end, start, write_config
from tests.e2e.invariants import CANARY, Watched, configured_secrets, is_alive, process_of, zombies

SLEEPER = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
SECRET = "sk-of-the-configuration"
ENV = {"MY_API_KEY": SECRET, "PLACE": "/somewhere/else", "OTHER_TOKEN": "${OTHER_TOKEN}", "SHORT_TOKEN": "x"}
PLANTED: dict[str, tuple[str, str]] = {
    "a bug": ("Traceback (most recent call last):\n", ""),
    "a coroutine": ("RuntimeWarning: coroutine 'x' was never awaited\n", ""),
    "a secret in the log": (f"the key is {SECRET}\n", ""),
    "a secret in a file": ("", f"the key is {SECRET}"),
    "a variable of the daemon": ("", next(iter(CANARY.values()))),
}


@pytest.mark.parametrize("planted", ["", *PLANTED])
def test_what_a_daemon_leaves_is_judged(tmp_path: Path, planted: str) -> None:
    log, file = PLANTED.get(planted, ("2026 INFO all is well\n", "nothing"))
    (tmp_path / "store").write_text(file)
    watched = Watched(os.getpid(), "http://127.0.0.1:1", tmp_path, {SECRET})
    if not planted:
        watched.check(log)
        return
    with pytest.raises(AssertionError):
        watched.check(log)


def test_a_configuration_names_its_secrets(tmp_path: Path) -> None:
    write_config(tmp_path, {"one": {"command": "x", "env": ENV, "args": [SECRET]}})
    assert configured_secrets(tmp_path / "mcp.json") == {SECRET}
    assert configured_secrets(tmp_path / "none.json") == set()


def test_a_process_lives_until_it_ends_and_is_a_zombie_until_it_is_reaped() -> None:
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as process:
        found = process_of(process.pid)
        assert found is not None
        assert is_alive(found)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(found)
        assert process.pid in zombies(os.getpid())
    assert process.pid not in zombies(os.getpid())
    assert process_of(process.pid) is None


@pytest.mark.e2e
def test_a_process_that_outlives_a_daemon_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(tmp_path, {})
    daemon = start(tmp_path)
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as left:
        found = process_of(left.pid)
        below: Callable[[int], object] = lambda pid: {found}  # noqa: E731 - as if the daemon had started it
        monkeypatch.setattr("tests.e2e.invariants.below", below)
        with pytest.raises(AssertionError, match="outlived"):
            end(daemon)
