"""The program between a client and the daemon: reads, connects, connects again, and ends when its client does.

Rules of this file:
- Three tasks: one reads what the client says, one keeps a connection and says what the daemon says, one gives up what
  waits for too long. What becomes of a message is decided in `relay`, and nowhere else.
- The end of the client's output is the end: the connection is closed, and the daemon cancels what is under way. So is a
  signal, a client that reads nothing, and a line of it that does not end.
- A daemon is started only where nobody listens and somebody waits: one that an operator has stopped stays away until
  it is needed, and one that is being started again by somebody else has a moment for that.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import trio

from actors.errors import CallTooLarge, ProtocolViolation, SupervisorError
from actors.kit.nursery import background
from actors.protocol.wire.fragment import read_fragment, request_id
from actors.protocol.wire.framing import Line, Oversized
from supervisor.bridge.connection import DaemonConnection, NotReached
from supervisor.bridge.pipes import Output, Unread
from supervisor.bridge.relay import OtherDaemon, Relay, failure
from supervisor.bridge.start import NotStarted

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Of a client; how much the daemon takes it says itself."""
_NOTE: Final = b'{"jsonrpc":"2.0","method":'
"""What the daemon's notifications begin with, and nothing else of it."""
_FIRST_PAUSE_S: Final = 0.05
MAX_PAUSE_S: Final = 5.0
GRACE_S: Final = 2.0
"""After the end of a connection, for whoever looks after the daemon to start it again."""
_EXIT_UNREAD: Final = 74
"""sysexits.h EX_IOERR: the client does not read."""
_EXIT_MALFORMED: Final = 65
"""sysexits.h EX_DATAERR: what the client writes has no lines."""


class Starting(Protocol):
    """Starts a daemon, see `start.Starter`."""

    def step(self, now: float) -> str: ...

    def finish(self) -> None: ...


class Bridge:
    """One client, and the daemon at one address. `starting` is None where no daemon can be started."""

    def __init__(
        self,
        relay: Relay,
        said: AsyncIterator[Line],
        output: Output,
        connect: Callable[[], AbstractAsyncContextManager[DaemonConnection]],
        starting: Starting | None,
    ) -> None:
        self._relay = relay
        self._said = said
        self._output = output
        self._connect = connect
        self._starting = starting
        self._scope = trio.CancelScope()
        self._changed = trio.lowlevel.ParkingLot()
        self._max_bytes = MAX_LINE_BYTES
        self._lost_at = -GRACE_S
        self._warned = ""
        self._has_started = False
        self._is_of_others = False  # the daemon: somebody else has started it, who may be about to start it again
        self._code = 0

    async def run(self) -> int:
        """Serve the client until it leaves; return the exit code."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                for task in (self._read, self._keep_connection, self._expire):
                    nursery.start_soon(self._guard, task)
        if self._starting is not None:
            self._starting.finish()
        return self._code

    def end(self) -> None:
        self._scope.cancel()

    async def _guard(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task; whoever cannot speak to the client any more ends everything."""
        try:
            await task()
        except Unread as error:
            log.error("%s: the end", error)
            self._code = _EXIT_UNREAD
            self.end()

    # What the client says ---------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async for line in self._said:
                await self._tell(self._take(line))
                self._changed.unpark_all()
                while self._relay.is_full and self._relay.is_open:
                    await self._changed.park()
        except ProtocolViolation:
            log.error("the client writes a line that does not end: the end")
            self._code = _EXIT_MALFORMED
        self.end()

    def _take(self, line: Line) -> list[bytes]:
        if isinstance(line, bytes) and len(line) <= self._max_bytes:
            return self._relay.from_client(line, trio.current_time())
        size, head = (line.size, line.head) if isinstance(line, Oversized) else (len(line), line)
        most = min(self._max_bytes, MAX_LINE_BYTES)
        text = f'a message of {size} bytes; {most} are the most here ("websocket_max_message_bytes" of the daemon)'
        if (answer := read_fragment(line)) is not None:  # whoever has asked gets to know it
            return self._relay.from_client(failure(answer.id, CallTooLarge(text)), trio.current_time())
        return [failure(request_id(head), CallTooLarge(text))]

    async def _tell(self, messages: list[bytes]) -> None:
        for message in messages:
            await self._output.write(message)

    async def _expire(self) -> None:
        while True:
            deadline = self._relay.deadline
            with trio.CancelScope(deadline=math.inf if deadline is None else deadline):
                await self._changed.park()
            await self._tell(self._relay.expire(trio.current_time()))

    # What the daemon says ---------------------------------------------------------------------------------------------

    async def _keep_connection(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with self._connect() as connection:
                    since = trio.current_time()
                    await self._converse(connection)
                log.info("the connection has ended (%s); connecting again", connection.why)
                self._lost_at = trio.current_time()
                if self._lost_at >= since + MAX_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                await self._tell(self._relay.lose(connection.why, self._lost_at))
                self._changed.unpark_all()
            except NotReached as error:
                await self._tell(self._relay.lose(error.reason, trio.current_time()))
                if await self._miss(error):
                    pause_s = _FIRST_PAUSE_S
            except OtherDaemon as error:
                await self._give_up(str(error))
            await self._pause(pause_s)
            pause_s = min(pause_s * 2, MAX_PAUSE_S)

    async def _converse(self, connection: DaemonConnection) -> None:
        """Pass messages on until the connection ends. Raises `OtherDaemon` and `Unread`."""
        log.info("connected")
        self._max_bytes = connection.max_message_bytes
        self._is_of_others = not self._has_started
        if self._starting is not None:
            self._starting.finish()
        self._relay.connect()
        async with background() as nursery:
            nursery.start_soon(self._send, connection)
            is_note = False
            try:
                while (text := await connection.receive()) is not None:
                    was_open, was_note, is_note = self._relay.is_open, is_note, text.startswith(_NOTE)
                    if was_note and not is_note:
                        await self._output.settle()
                    await self._tell(self._relay.from_daemon(text, trio.current_time()))
                    if self._relay.is_open != was_open:
                        self._changed.unpark_all()
            finally:
                nursery.cancel_scope.cancel()

    async def _send(self, connection: DaemonConnection) -> None:
        while True:
            was_full = self._relay.is_full
            line = self._relay.take() if connection.is_alive() else None
            if line is None:
                await self._changed.park()
                continue
            if was_full:
                self._changed.unpark_all()
            await connection.send(line)

    async def _miss(self, error: NotReached) -> bool:
        """Do what can be done where there is no connection; return whether there may be one in a moment."""
        now = trio.current_time()
        if error.kind == "rejected":
            await self._give_up(error.reason, error.error)
        if error.kind != "refused" or self._relay.deadline is None or self._starting is None:
            return False
        if now < self._lost_at + GRACE_S:
            return True
        try:
            said = self._starting.step(now)
        except NotStarted as failure:
            await self._give_up(str(failure), at_once=not self._is_of_others)
            return False
        if said:
            self._has_started = True
            log.info("%s", said)
        return True

    async def _give_up(self, why: str, error: SupervisorError | None = None, *, at_once: bool = True) -> None:
        """Say why there is no daemon, and tell whoever waits that this is of no use, where it is not.

        `error`: what they are told, where the daemon itself has said it.
        """
        if why != self._warned:
            log.warning("%s", why)
            self._warned = why
        await self._tell(self._relay.lose(why, trio.current_time()))
        if at_once:
            await self._tell(self._relay.refuse(why, error))

    async def _pause(self, pause_s: float) -> None:
        """Wait before the next attempt, not for long once a client says something."""
        await trio.sleep(_FIRST_PAUSE_S)
        with trio.move_on_after(pause_s - _FIRST_PAUSE_S):
            await self._changed.park()
