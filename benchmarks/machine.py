"""Processes, ports and memory, as the kernel tells about them. Linux."""

from __future__ import annotations

import atexit
import gc
import os
import socket
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
START_S = 60.0
END_S = 30.0
LOOK_S = 0.5


class Memory(msgspec.Struct, frozen=True):
    """Of one process, in MiB: what it has in memory, and its share of that."""

    rss_mib: float
    pss_mib: float


def pause(seconds: float) -> None:
    """Wait; a benchmark has no loop that this could block."""
    time.sleep(seconds)  # noqa: TID251 - the ban is for code that runs on trio


def until(condition: Callable[[], bool], what: str, timeout_s: float = START_S, step_s: float = 0.02) -> None:
    """Ask until `condition` holds. Raises `TimeoutError` that says what did not happen."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        pause(step_s)


def free_port() -> int:
    """Return a port for a process that is started to listen there, which nobody else is given while this one runs.

    Linux gives a port that a socket is bound to nobody who asks for any; who asks for it by number, and for reuse of
    addresses as servers do, listens there all the same, as that socket does not.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    atexit.register(held.close)
    port: int = held.getsockname()[1]
    return port


def listens(port: int) -> bool:
    """Return whether somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def memory(pid: int) -> Memory:
    """Return the memory of a process. Raises `OSError` if it is gone."""
    sizes: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0]) / 1024
    return Memory(sizes["Rss"], sizes["Pss"])


def taken_bytes(make: Callable[[], object]) -> int:
    """Return how much memory of this process what `make` returns takes, without what is made once only."""
    make()
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] if made is not None else 0
    tracemalloc.stop()
    return taken


def cpu_s(pid: int) -> float:
    """Return the processor time that a process took so far, in seconds. Raises `OSError` if it is gone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # proc_pid_stat(5), from field 3 on
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wake_ups(pid: int, seconds: float) -> int:
    """Return how often the threads of a process go on after a wait within so many seconds, from now on.

    It looks often, as a thread that ends takes its count with it. Raises `OSError` if the process is gone.
    """
    before, woken = _waits(pid), 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        pause(min(left, LOOK_S))
        now = _waits(pid)
        woken += sum(waits - before.get(thread, 0) for thread, waits in now.items())
        before = now
    return woken


def _waits(pid: int) -> dict[str, int]:
    """Return how often each thread of a process has waited so far."""
    counts: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            lines = (task / "status").read_text().splitlines()
            counts[task.name] = next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return counts


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below `pid`."""
    pids: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                pids += [int(child), *descendants(int(child))]
    return pids


def begin(command: Sequence[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a program of ours, whose output goes to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env)


@contextmanager
def program(
    command: Sequence[str], port: int, log: Path, *, env: Mapping[str, str] | None = None, end_s: float = END_S
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of ours until the end of the block; entered once it listens on `port`. Its output goes to `log`.

    Raises `RuntimeError` with the end of the log if it ends before it listens.
    """
    process = begin(command, log, {**os.environ, **(env or {})})

    def up() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{command} ended with {process.returncode}: {log.read_text()[-2000:]}")
        return listens(port)

    try:
        until(up, f"{command} listens", step_s=0.005)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(end_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
