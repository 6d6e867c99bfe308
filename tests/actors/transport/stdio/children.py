"""Helpers of the process tests: a launch of the badly behaved server, and proofs of life and death without sleeps."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.protocol.wire.framing import Line
from actors.protocol.wire.peer import Outgoing
from actors.transport.base import Connection
from actors.transport.stdio.command import Launch, ProcessLimits

ROOT = Path(__file__).parents[4]
SCRIPT = str(Path(__file__).with_name("badly_behaved.py"))
PATIENCE_S = 60.0
"""Longer than anything here takes on a busy machine; a test that waits for it has failed."""
HASTY = ProcessLimits(stop_eof_s=0.1, stop_term_s=0.1, reap_s=1.0)


def launch(habit: str, *args: str) -> Launch:
    """The badly behaved server with one habit."""
    return Launch(command=sys.executable, args=("-I", "-S", SCRIPT, habit, *args))


def parent_of(pid: int) -> int:
    """The pid of the parent."""
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def state_of(pid: int) -> str:
    """What the process does: `R` runs, `S` sleeps, `T` is stopped."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()


def descriptors() -> int:
    """How many files we have open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def decoded(lines: Sequence[Line]) -> list[Any]:
    """The JSON values of some messages."""
    return [json.loads(line) for line in whole(lines)]


def whole(lines: Sequence[Line]) -> list[bytes]:
    """Some lines, none of which is over the limit."""
    complete = [line for line in lines if isinstance(line, bytes)]
    assert len(complete) == len(lines)
    return complete


async def send(connection: Connection, *texts: bytes) -> int:
    """Send messages; return how many of them left."""
    left: list[int] = []
    assert await connection.send([Outgoing(parts=(text,)) for text in texts], left.append)
    return sum(left)


class Pulse:
    """One living process."""

    def __init__(self, stream: trio.SocketStream, name: str, pid: int) -> None:
        self._stream = stream
        self.name = name
        self.pid = pid

    async def release(self) -> None:
        """Let it go on, if it waits for that."""
        await self._stream.send_all(b"\n")

    async def stopped(self) -> None:
        """Wait until the process is dead."""
        with trio.fail_after(PATIENCE_S):
            assert await self._stream.receive_some() == b""


class Monitor:
    """Where processes report that they live."""

    def __init__(self, address: str, listener: trio.SocketListener) -> None:
        self.address = address
        self._listener = listener
        self.accepted: list[trio.SocketStream] = []

    async def pulses(self, *names: str) -> dict[str, Pulse]:
        """Wait until a process of each name has reported."""
        reported: dict[str, Pulse] = {}
        with trio.fail_after(PATIENCE_S):
            while set(reported) != set(names):
                stream = await self._listener.accept()
                self.accepted.append(stream)
                name, _, pid = (await stream.receive_some()).decode().partition(" ")
                reported[name] = Pulse(stream, name, int(pid))
        return reported


@asynccontextmanager
async def monitor() -> AsyncIterator[Monitor]:
    """Listen on a Unix socket with a short path."""
    with tempfile.TemporaryDirectory(prefix="pulse") as directory, trio.socket.socket(trio.socket.AF_UNIX) as listening:
        await listening.bind(f"{directory}/s")
        listening.listen()
        lives = Monitor(f"{directory}/s", trio.SocketListener(listening))
        try:
            yield lives
        finally:
            for stream in lives.accepted:
                stream.socket.close()


@pytest.fixture(autouse=True)
def no_child_and_no_descriptor_is_left() -> Iterator[None]:
    """Import it into a module: after each test of it we have no child, dead or alive, and not more descriptors."""
    before = descriptors()
    yield
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert descriptors() <= before
