"""The daemon and the terminal it was started in: it goes on when that is closed, and when it must not write to it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.daemons import COMMAND, ROOT, stand_in
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.process


LEADER = """
import os, signal, subprocess, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
attributes = termios.tcgetattr(terminal)
attributes[3] |= termios.TOSTOP
termios.tcsetattr(terminal, termios.TCSANOW, attributes)
job = subprocess.Popen(sys.argv[2:], stdin=terminal, stdout=terminal, stderr=terminal, process_group=0)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
job.wait()
"""
"""Leads the session of a terminal, and runs a job in the background that may not write (`stty tostop`)."""


FOREGROUND = """
import fcntl, os, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for number in range(3):
    os.dup2(terminal, number)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Leads the session of a terminal itself, as what a terminal's window runs in place of a shell, in its foreground."""


NOHUP = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
]


class Terminal:
    """Our side of a terminal."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self.fd = fd
        self.process = process

    def read_until(self, text: str) -> str:
        """Read what is shown until a line holds `text`."""
        seen = ""
        deadline = time.monotonic() + PATIENCE_S
        while text not in seen or not seen.endswith("\n"):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown: {seen!r}"
            seen += os.read(self.fd, 65536).decode(errors="replace")
        return seen

    def close(self) -> None:
        """Close it: the session gets SIGHUP, and every later write to the terminal fails."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@contextlib.contextmanager
def terminal(command: list[str], leader_script: str = LEADER) -> Iterator[Terminal]:
    """Run a command as a background job of a terminal of its own, or in its foreground."""
    ours, theirs = pty.openpty()
    leader = [sys.executable, "-c", leader_script, os.ttyname(theirs), *command]
    process = subprocess.Popen(leader, cwd=ROOT, start_new_session=True)
    shown = Terminal(ours, process)
    try:
        yield shown
    finally:
        shown.close()
        os.close(theirs)
        process.kill()
        process.wait()


def test_a_daemon_in_the_background_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": stand_in("listed", str(tmp_path / "tools"))}}))
    (tmp_path / "tools").write_text("one two")
    data = tmp_path / "data"
    command = [*COMMAND, "--config", str(config), "--listen", "127.0.0.1:0", "--data-dir", str(data)]
    with terminal(command) as shown:
        text = shown.read_until("listening on ")
        url = next(line for line in text.splitlines() if "listening on" in line).split()[-1]
        pid = int((data / "daemon.lock").read_text())
        try:
            shown.close()
            os.kill(pid, signal.SIGHUP)
            for order in ("restart", "sleep"):
                answer = httpx2.post(f"{url}/api/servers/notes/{order}", timeout=PATIENCE_S)
                assert answer.status_code == 200, answer.text
            page = httpx2.get(f"{url}/api/servers/notes/logs", timeout=PATIENCE_S).json()
            assert any("ready after" in line["text"] for line in page["lines"])
        finally:
            os.kill(pid, signal.SIGTERM)
            wait_until_gone(data)


@pytest.mark.parametrize("by_nohup", [False, True], ids=["plain", "nohup"])
def test_a_daemon_in_the_foreground_ends_in_order_when_its_terminal_is_closed_unless_by_nohup(
    tmp_path: Path, by_nohup: bool
) -> None:
    config, data = tmp_path / "mcp.json", tmp_path / "data"
    config.write_text('{"mcpServers": {}}')
    command = [*COMMAND, "--config", str(config), "--listen", "127.0.0.1:0", "--data-dir", str(data)]
    with terminal([*(NOHUP if by_nohup else ()), *command], FOREGROUND) as shown:
        text = shown.read_until("listening on ")
        url = next(line for line in text.splitlines() if "listening on" in line).split()[-1]
        shown.close()
        if not by_nohup:
            assert shown.process.wait(PATIENCE_S) == 0
            return
        pid = int((data / "daemon.lock").read_text())
        try:
            for _ in range(3):  # each is answered after what came before it
                assert httpx2.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200
        finally:
            os.kill(pid, signal.SIGTERM)
            wait_until_gone(data)


def wait_until_gone(data: Path) -> None:
    """Wait for the daemon's lock, which its end gives back."""
    with (data / "daemon.lock").open() as lock:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < deadline, "the daemon did not end"
                select.select([], [], [], 0.05)
            else:
                return
