"""Trials: servers that are killed or stopped, and what is left of them when they or their proxy ends. Linux."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.faults.scene import CALL_WAIT_S, Scene
from benchmarks.faults.session import Session
from benchmarks.faults.subjects import Subject
from benchmarks.faults.verdict import Outcome, Trial, trial
from benchmarks.faults.wires import NO_RESTART, fault_server_at
from benchmarks.goals import stubborn_server
from benchmarks.goals.orphans import PROCESSES
from benchmarks.goals.processes import left_after, marked
from benchmarks.machine import until

GROUP: Final = "processes"
END_S: Final = 15.0
"""So soon a proxy that got SIGTERM has ended, and everything below it."""
GONE_S: Final = 5.0
"""So soon what was below a process that was killed is gone."""
KILL: Final = signal.SIGKILL


def try_ends(subject: Subject, directory: Path) -> Iterator[Trial]:
    """Yield a trial for each end of a server or of the subject."""
    directory.mkdir()
    mark = f"faults-{os.getpid()}-{subject.name.replace(' ', '-')}"
    server = fault_server_at(mark)
    with Scene(subject, directory / "simple", lambda ledger: (*server, str(ledger))) as scene:
        yield _killed_in_call(scene)
        yield trial(GROUP, "SIGSTOP of the server", *_stopped(scene))
        yield trial(GROUP, "SIGTERM of the proxy in a call", *_termed(scene, mark))
        for end in (signal.SIGTERM, KILL):
            scene.ready()
            name = f"{end.name} of the proxy, a simple server"
            yield trial(GROUP, name, _ended(scene, _below(scene, mark), mark, end))
    for end in (signal.SIGTERM, KILL):
        with _stubborn(subject, directory / end.name, mark) as scene:
            _pid(scene, mark)
            name = f"{end.name} of the proxy, a stubborn server"
            yield trial(GROUP, name, _ended(scene, _below(scene, mark), mark, end))
    with _stubborn(subject, directory / "children", mark) as scene:
        pid = _pid(scene, mark)
        before = _below(scene, mark) - {pid}
        os.kill(pid, KILL)
        yield trial(GROUP, "SIGKILL of a stubborn server", _left(before, mark))


def _killed_in_call(scene: Scene) -> Trial:
    session = scene.ready()
    fault = _during(scene, session, lambda: os.kill(scene.pid(), KILL))
    lacks = "" if scene.subject.restarts else NO_RESTART
    return trial(GROUP, "SIGKILL of the server in a call", fault, scene.aftermath(session), lacks=lacks)


def _during(scene: Scene, session: Session, event: Callable[[], None]) -> str:
    key, said = scene.key(), list[Outcome]()
    tool = ("fault", {"text": key, "fault": "mute"})
    call = threading.Thread(target=lambda: said.append(session.call(tool, CALL_WAIT_S)))
    call.start()
    try:
        until(lambda: scene.runs(key) > 0, "the call runs", CALL_WAIT_S)
        event()
    finally:
        call.join()
    return scene.judge(said[0], key)


def _stopped(scene: Scene) -> tuple[str, str]:
    session, key = scene.ready(), scene.key()
    pid = scene.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        fault = scene.call(session, ("echo", {"text": key}), key)
    finally:
        with suppress(ProcessLookupError):  # who kills a server that does not answer may do so
            os.kill(pid, signal.SIGCONT)
    return fault, scene.aftermath(session)


def _termed(scene: Scene, mark: str) -> tuple[str, str]:
    session, ended = scene.ready(), list[str]()
    before = _below(scene, mark)
    fault = _during(scene, session, lambda: ended.append(_ended(scene, before, mark, signal.SIGTERM)))
    return fault, ended[0]


def _ended(scene: Scene, before: set[int], mark: str, end: signal.Signals) -> str:
    """Send a signal to the subject; return what is wrong with its end."""
    scene.process.send_signal(end)
    try:
        scene.process.wait(END_S)
    except subprocess.TimeoutExpired:
        scene.process.kill()
        scene.process.wait()
        _kill_all(before)
        return f"runs {END_S:g} s after the signal"
    return _left(before, mark)


def _left(before: set[int], mark: str) -> str:
    left = left_after(before, mark, GONE_S)
    _kill_all(left)
    return f"{len(left)} of {len(before)} processes are left" if left else ""


def _kill_all(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _stubborn(subject: Subject, directory: Path, mark: str) -> Scene:
    return Scene(subject, directory, lambda _: (sys.executable, str(stubborn_server.__file__), mark))


def _pid(scene: Scene, mark: str) -> int:
    """Start the subject and its stubborn server; return the process of that."""
    scene.restart()
    said = Session(scene.port, scene.subject).call(("pid", {}), CALL_WAIT_S)
    until(lambda: len(_below(scene, mark)) >= PROCESSES, f"all of its processes run: {said}")
    return next(pid for pid in _below(scene, mark) if re.search(rf"\b{pid}\b", said.text))


def _below(scene: Scene, mark: str) -> set[int]:
    """Return the processes with the mark, which the subject's own command line may have, too."""
    return marked(mark) - {scene.process.pid}
