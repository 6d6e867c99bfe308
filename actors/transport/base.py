"""What a server actor needs from a transport: whole messages in, whole messages out, and the fact of the end.

A `Transport` opens `Connection`s, one per incarnation. A connection carries whole JSON-RPC messages (framing is the
transport's business), so that pipes, HTTP and WebSockets look alike to the actor. Expected failures are typed errors or
values, never bare `OSError`s.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from actors.kit.decoding import decoded
from actors.protocol.framing import Line, Pieces, may_be_message
from actors.transport.side_output import Asides

BUSY_CPU_S = 0.02
BUSY_BYTES = 1024
"""Less than this between two looks a second apart is idleness."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How one incarnation ended. `code` is None where there is no process; `signal` is its number if one killed it."""

    code: int | None = None
    signal: int | None = None
    last_stderr: str = ""
    asked: bool = False

    @property
    def reason(self) -> str:
        """One line for people: `exit code 1`, `killed by signal 9`, `connection closed`."""
        if self.signal is not None:
            return f"killed by signal {self.signal}"
        if self.code is not None:
            return f"exit code {self.code}"
        return "connection closed"


class Counters(msgspec.Struct, kw_only=True):
    """What a connection tolerated or saw so far; plain numbers for the status page."""

    stdout_noise: int = 0
    messages_received: int = 0
    messages_sent: int = 0
    stderr_bytes: int = 0


async def received(said: list[Line | Pieces], counters: Counters, asides: Asides) -> list[Line]:
    """Return those of some lines that may be messages, count all of them, and tell of the others.

    A checkpoint if one comes in pieces, which are put together in a thread.
    """
    lines: list[Line] = []
    for each in said:
        line = await decoded(each.line) if isinstance(each, Pieces) else each
        if line is not None:
            lines.append(line)
    found = [line for line in lines if may_be_message(line)]
    counters.messages_received += len(found)
    counters.stdout_noise += asides.noise(lines, found)
    return found


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a connection have done so far. `cpu_s`: processor time; `moved_bytes`: read and written.

    `processes` are their ids. They show whether a server that says nothing yet does anything at all.
    """

    cpu_s: float = 0.0
    moved_bytes: int = 0
    processes: frozenset[int] = frozenset()

    def busy_since(self, before: Work) -> bool:
        """Return whether so much was done that it is more than waiting: timers and wake-ups cost a little, too."""
        return (
            abs(self.cpu_s - before.cpu_s) >= BUSY_CPU_S
            or abs(self.moved_bytes - before.moved_bytes) >= BUSY_BYTES
            or self.processes != before.processes
        )


class Connection(Protocol):
    """One incarnation: a process, or one memory pair in tests."""

    counters: Counters
    asides: Asides
    """What the server writes beside its messages."""

    @property
    def pid(self) -> int | None:
        """The server's process id, None where there is none."""

    async def send(self, data: bytes | memoryview) -> int:
        """Write what the peer takes of some bytes, at least one, and return how many; a cancelled call wrote nothing.

        Only one task may send (the actor's writer), and whole messages in the end, each followed by a newline.
        Raises `ServerExited` when the peer no longer reads. A checkpoint only if it has to wait for the peer.
        """

    async def input_closed(self) -> None:
        """Wait until the peer reads no more, or is gone. May wait until the latter where the former cannot be seen."""

    async def receive(self) -> list[Line]:
        """Return the next lines, at least one; an empty list once the output is closed.

        A line is what may be one JSON text, without its newline, or what is kept of one over the limit. Noise was
        dropped and counted before. Raises `ProtocolViolation` after a line that does not end, and `TruncatedMessage`
        for half a line at the end.
        """

    async def wait(self) -> Exit:
        """Wait for the end and return how it came. Safe to call more than once and after the end."""

    async def stop(self, *, term_s: float | None = None) -> None:
        """Run the polite stop sequence, bounded in time; afterwards nothing of the server is left.

        With `term_s` it is told to terminate at once, and has that many seconds to do so.
        """

    def kill(self) -> None:
        """Kill everything of this incarnation at once, without waiting."""

    async def work(self) -> Work | None:
        """Look what the server's processes have done so far; None if nobody can tell. A checkpoint."""

    def last_stderr(self, lines: int = 20) -> str:
        """Return the newest lines the server wrote to stderr, control characters made visible."""


class Transport(Protocol):
    """How to reach one server. Holds the launch; has no state between incarnations."""

    kind: str
    """The word shown to clients: `stdio`, `http`, `sse`, `websocket`, `memory`."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Start one incarnation. Leaving the block kills what is left of it, shielded and bounded.

        Entering raises `SpawnFailed`.
        """
