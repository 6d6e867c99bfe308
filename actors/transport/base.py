"""What a server actor needs from a transport: whole messages in, whole messages out, and the fact of the end.

A `Transport` opens `Connection`s, one per incarnation. A connection carries whole JSON-RPC messages (framing is the
transport's business), so that pipes, HTTP and WebSockets look alike to the actor. Expected failures are typed errors or
values, never bare `OSError`s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from actors.protocol.wire.framing import Line
from actors.protocol.wire.peer import Failure, Outgoing
from actors.transport.side_output import Asides

BUSY_CPU_S = 0.02
BUSY_BYTES = 1024
"""Less than this between two looks a second apart is idleness."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How one incarnation ended. `code` is None where there is no process; `signal` is its number if one killed it.

    `last_stderr` and `last_stdout` are the newest lines beside its messages; `install_log` is what the package manager
    that started it noted of its own failure in a file. `cause`: why it ended, where code and signal do not say.
    `renewable`: only the session is over, and a new one may be begun at once; `forgotten`: as the server does not know
    it any more, which is no failure. `denial`: what its sandbox denied it.
    """

    code: int | None = None
    signal: int | None = None
    last_stderr: str = ""
    last_stdout: str = ""
    install_log: str = ""
    asked: bool = False
    cause: str = ""
    renewable: bool = False
    forgotten: bool = False
    denial: str = ""

    @property
    def reason(self) -> str:
        """One line for people: `exit code 1`, `killed by signal 9`, `connection closed`."""
        if self.cause:
            return self.cause
        if self.signal is not None:
            return f"killed by signal {self.signal}"
        if self.code is not None:
            return f"exit code {self.code}"
        return "connection closed"


class Counters(msgspec.Struct, kw_only=True):
    """What came over a connection so far."""

    stdout_noise: int = 0
    messages_received: int = 0


class Incoming(msgspec.Struct, frozen=True):
    """What arrived at once, on one stream; neither lines nor a failure once nothing more can.

    A line is what may be one JSON text, or what is kept of one over the limit. `stream` is the id (JSON text) of the
    request that the stream answers; empty where all messages share one. `failure` says of a request that no answer to
    it comes any more: it changes nothing if there was one.
    """

    lines: Sequence[Line] = ()
    stream: bytes = b""
    failure: Failure | None = None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a connection have done: seconds of processor time, bytes read and written.

    `active`: one of them runs, or waits for a disk. `frozen`: the one that reads the input is stopped.
    """

    cpu_s: float = 0.0
    moved_bytes: int = 0
    processes: frozenset[int] = frozenset()
    active: bool = False
    frozen: bool = False

    def still_since(self, before: Work) -> bool:
        """Return whether nothing at all was done."""
        return not self.active and (self.cpu_s, self.moved_bytes, self.processes) == (
            before.cpu_s,
            before.moved_bytes,
            before.processes,
        )

    def busy_since(self, before: Work) -> bool:
        """Return whether so much was done that it is more than waiting: timers and wake-ups cost a little, too."""
        return (
            abs(self.cpu_s - before.cpu_s) >= BUSY_CPU_S
            or abs(self.moved_bytes - before.moved_bytes) >= BUSY_BYTES
            or self.processes != before.processes
        )


class Connection(Protocol):
    """One incarnation: a process, or what lasts of a remote server between its requests."""

    counters: Counters
    asides: Asides
    """What the server writes beside its messages."""

    @property
    def pid(self) -> int | None:
        """The server's process id, None where there is none."""

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """Hand over some messages, in their order; False if the peer takes nothing, for so long that it is lost.

        `left(count)` is called, before anything is waited for, with how many more of them the peer may know of, whole
        or in part: what it was not told of, it does not, also if the call is cancelled. How a message is framed, and
        what it takes to cancel one (`Outgoing.cancels`), is the transport's business. Only one task may send.
        Raises `ServerExited` when the peer no longer reads. A checkpoint only if it has to wait for the peer.
        """

    def send_at_once(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """As `send`, of small messages and at once; False if that has to be waited for: then none of them has left."""

    async def wait_input_closed(self) -> None:
        """Wait until the peer reads no more, or is gone. May wait until the latter where the former cannot be seen."""

    async def receive(self) -> Incoming:
        """Return what arrives. Raises `ProtocolViolation` at an endless message, `TruncatedMessage` at half one."""

    async def wait(self) -> Exit:
        """Wait for the end and return how it came. Safe to call more than once and after the end."""

    async def stop(self, *, term_s: float | None = None) -> None:
        """Have it end politely, or terminate within `term_s`; bounded in time, and nothing of the server is left."""

    def kill(self) -> None:
        """Kill everything of this incarnation at once, without waiting."""

    async def work(self) -> Work | None:
        """Look what the server's processes have done so far; None if nobody can tell. A checkpoint."""

    async def install_log(self) -> str:
        """Return what the package manager that started it noted of a failure, on one line, or nothing. A checkpoint."""


class Transport(Protocol):
    """How to reach one server. Holds the launch; between incarnations it only remembers by which way that works."""

    kind: str
    """The word shown to clients: `stdio`, `http`, `sse`, `websocket`. Those but the first may be away, and come back by
    themselves."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Start one incarnation; leaving kills what is left, shielded and bounded. Entering raises `SpawnFailed`."""
