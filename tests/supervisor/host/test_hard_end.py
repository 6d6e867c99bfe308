"""The end that nothing holds up: a loop that never comes back, and a system without threads and descriptors."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from tests.actors.transport.stdio.children import PATIENCE_S, ROOT

pytestmark = pytest.mark.process

STUCK = """
import resource, threading
from supervisor.host.program import HardEnd

def no_thread(self):
    raise RuntimeError("can't start new thread")

if {early}:
    threading.Thread.start = no_thread
end = HardEnd(0.2, 75)
threading.Thread.start = no_thread
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
end.begin()
end.begin()
{after}
while True:
    pass
"""


def ended(*, early: bool = False, after: str = "") -> int:
    script = STUCK.format(early=early, after=after)
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=PATIENCE_S, check=False).returncode


def test_a_stuck_process_without_threads_and_descriptors_ends_in_time() -> None:
    assert ended() == 75


def test_so_does_one_that_had_no_thread_from_the_start() -> None:
    assert ended(early=True) == -signal.SIGALRM


def test_an_end_in_order_is_not_cut_short_without_a_thread_either() -> None:
    again = "import time; end.cancel(); time.sleep(0.5); raise SystemExit(3)"
    assert ended(early=True, after=again) == 3


STOPPED = """
import sys, threading
from supervisor.host.program import HardEnd

end = HardEnd(1.5, 75)
end.begin()
print("begun", flush=True)
sys.stdin.readline()  # the end goes on only when the test has seen that it was not cut short
end.cancel()
raise SystemExit(3)
"""


def test_a_standstill_does_not_cut_the_end_short() -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGSTOP)
        threading.Event().wait(1.8)  # longer than the end may take, and nothing tells of a process that is stopped
        process.send_signal(signal.SIGCONT)
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 3
