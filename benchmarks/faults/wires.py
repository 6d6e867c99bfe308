"""Trials: what a server writes wrong, one fault in one call, as the fault server plays them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.faults.remote_server import FAULTS
from benchmarks.faults.scene import Scene
from benchmarks.faults.subjects import Server, Subject
from benchmarks.faults.verdict import Trial, trial
from benchmarks.machine import free_port, program
from tests.fakes import fault_server

LINES: Final = "lines of a server"
HTTP: Final = "servers over HTTP"
ENDS: Final = frozenset({"exit", "closes-output"})
"""What ends the server."""
NO_RESTART: Final = "a dead server is not started again"


def fault_server_at(mark: str) -> Server:
    """Return the command of the fault server up to the path of its ledger; its processes bear the mark."""
    return (sys.executable, "-I", "-S", str(Path(fault_server.__file__)), mark)


def try_wires(subject: Subject, directory: Path, names: Iterable[str] = fault_server.FAULTS) -> Iterator[Trial]:
    """Yield a trial for each of these faults of a server's output; all without them."""
    with Scene(subject, directory, lambda ledger: (*fault_server_at("faults"), str(ledger))) as scene:
        for name in names:
            yield _one(scene, LINES, name)


def try_remote(subject: Subject, directory: Path, names: Iterable[str] = FAULTS) -> Iterator[Trial]:
    """Yield a trial for each of these faults of a server over HTTP; all without them."""
    if not subject.remote:
        yield from (Trial(HTTP, name, "not offered") for name in names)
        return
    directory.mkdir()
    port, ledger = free_port(), directory / "ledger"
    remote = [sys.executable, "-m", "benchmarks.faults.remote_server", str(port), str(ledger)]
    address = f"http://127.0.0.1:{port}/mcp"
    with program(remote, port, directory / "log"), Scene(subject, directory, lambda _: (address,)) as scene:
        for name in names:
            yield _one(scene, HTTP, name)


def _one(scene: Scene, group: str, name: str) -> Trial:
    session, key = scene.ready(), scene.key()
    fault = scene.call(session, ("fault", {"text": key, "fault": name}), key)
    lacks = NO_RESTART if name in ENDS and not scene.subject.restarts else ""
    return trial(group, name, fault, scene.aftermath(session), lacks=lacks)
