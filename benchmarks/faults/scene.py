"""One subject before one server, started again when a trial has ended it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

from benchmarks.client import Tool
from benchmarks.faults.session import NoSession, Session
from benchmarks.faults.subjects import Server, Subject
from benchmarks.faults.verdict import Outcome, fault_of_call
from benchmarks.machine import free_port, pause, program

CALL_WAIT_S = 8.0
"""So long a client waits for an answer."""
NEXT_S = 5.0
"""So soon the next call must work, in the same session or in a new one."""
_numbers = count(1)


class Scene:
    """A context manager: what it started is ended with it. `server` makes the command for a ledger."""

    def __init__(self, subject: Subject, directory: Path, server: Callable[[Path], Server]) -> None:
        self.subject = subject
        self.ledger = directory / "ledger"
        self.port = 0
        self._directory = directory
        self._server = server(self.ledger)
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The subject, as it was started last."""
        assert self._process is not None
        return self._process

    @property
    def alive(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    def restart(self) -> None:
        """End the subject, if it runs, and start it anew."""
        self._stack.close()
        self.port = free_port()
        self._directory.mkdir(exist_ok=True)
        command = self.subject.start(self._server, self.port, self._directory)
        log = self._directory / "log"
        self._process = self._stack.enter_context(program(command, self.port, log, end_s=15.0))

    def ready(self) -> Session:
        """Return a new session in which a call works; the subject is started anew if there is none."""
        if self.alive:
            with suppress(NoSession):
                session = Session(self.port, self.subject)
                if not self.next_fault(session):
                    return session
        self.restart()
        session = Session(self.port, self.subject)
        if fault := self.next_fault(session):
            raise NoSession(f"{self.subject.name} does not work before any fault: {fault}")
        return session

    def key(self) -> str:
        """Return a text that no other call has."""
        return f"key-{os.getpid()}-{next(_numbers)}"

    def echo(self, session: Session, within_s: float) -> str:
        """Call the tool `echo`; return what is wrong with what came of it."""
        key = self.key()
        said = session.call(("echo", {"text": key}), within_s)
        return fault_of_call(said, key, self.runs(key)) or ("" if said.kind == "answer" else f"error: {said.text[:80]}")

    def next_fault(self, session: Session) -> str:
        """Return what is wrong with the next call, tried until `NEXT_S` in this session and in new ones."""
        end = time.monotonic() + NEXT_S
        fault = self.echo(session, NEXT_S)
        while fault and self.alive and (left_s := end - time.monotonic()) > 0:
            try:
                fault = self.echo(Session(self.port, self.subject, left_s), max(0.1, end - time.monotonic()))
            except NoSession as error:
                fault = str(error)
            pause(0.1)
        return fault

    def aftermath(self, session: Session) -> str:
        """Return what is wrong after a fault: the subject ended, or the next call does not work."""
        fault = self.next_fault(session)
        if not self.alive:
            return "the process ends"
        return f"the next call fails ({fault})" if fault else ""

    def call(self, session: Session, tool: Tool, key: str) -> str:
        """Call a tool with a fault in it; return what is wrong with what came of it."""
        return self.judge(session.call(tool, CALL_WAIT_S), key)

    def judge(self, said: Outcome, key: str) -> str:
        """Return what is wrong with what came of the call with this key."""
        return fault_of_call(said, key, self.runs(key))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield what the servers noted."""
        if self.ledger.exists():
            yield from map(json.loads, self.ledger.read_text().splitlines())

    def runs(self, key: str) -> int:
        """Return how often a call came to a server."""
        return sum(entry["what"] == "run" and entry["key"] == key for entry in self.entries())

    def pid(self) -> int:
        """Return the process of the server that was called last."""
        return int([entry["pid"] for entry in self.entries() if entry["what"] == "run"][-1])
