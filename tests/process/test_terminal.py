"""The daemon and the terminal it was started in: it goes on when that is closed, and when it must not write to it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.daemons import COMMAND, PATIENCE_S, ROOT, stand_in

pytestmark = pytest.mark.process


class Terminal:
    """A terminal whose session leader starts a daemon in a background job."""

    def __init__(self, pid: int, fd: int) -> None:
        self.leader = pid
        self.fd = fd

    def read_until(self, text: str) -> str:
        """Read what is shown until a line holds `text`."""
        seen = ""
        deadline = time.monotonic() + PATIENCE_S
        while text not in seen or not seen.endswith("\n"):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown: {seen!r}"
            seen += os.read(self.fd, 65536).decode(errors="replace")
        return seen


@contextlib.contextmanager
def terminal(command: list[str]) -> Iterator[Terminal]:
    """Run a command as a background job of a terminal that stops such jobs when they write (`stty tostop`)."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.chdir(ROOT)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the leader outlives its terminal until it is killed
            attributes = termios.tcgetattr(0)
            attributes[3] |= termios.TOSTOP
            termios.tcsetattr(0, termios.TCSANOW, attributes)
            job = os.fork()
            if job == 0:
                os.setpgid(0, 0)
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                os.execv(sys.executable, command)  # noqa: S606
            os.waitpid(job, 0)
        finally:
            os._exit(0)
    try:
        yield Terminal(pid, fd)
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


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
            os.close(shown.fd)  # SIGHUP to the session, and every later write to the terminal fails
            os.kill(pid, signal.SIGHUP)
            for order in ("restart", "sleep"):
                answer = httpx2.post(f"{url}/api/servers/notes/{order}", timeout=PATIENCE_S)
                assert answer.status_code == 200, answer.text
            page = httpx2.get(f"{url}/api/servers/notes/logs", timeout=PATIENCE_S).json()
            assert any("ready after" in line["text"] for line in page["lines"])
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
