"""One process of a server, from spawn to exit: the tasks around a connection, which post facts to their actor.

Expected failures become messages; whatever happens, the last one is `ProcessExit` or `SpawnRefused`, sent when nothing
of the process is left. The reader and the writer are separate tasks, so that we always read while we write and no pipe
can deadlock us. A process may wait for its turn to start; afterwards nothing it does, or does not, holds up another.
"""

from __future__ import annotations

import math
from functools import partial

import msgspec
import trio

from actors.errors import ProtocolViolation, ServerExited, SpawnFailed
from actors.kit import Address, Outbox, Starts, Turn
from actors.kit.decoding import decode_in_thread
from actors.kit.want import first_of
from actors.life.events import Spawned, SpawnRefused, Violated
from actors.protocol.wire.fragment import Message, decode_line
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.outgoing import Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.server.inbox import OutputClosed, ProcessExit, Received, ServerMessage, Written
from actors.transport.base import Connection, Exit, Transport, Work
from actors.transport.lines import ATOMIC_BYTES
from actors.transport.side_output import Hear
from actors.transport.stdio.installer import Installer

EXIT_S = 0.1
"""How long after the end of its output a process mostly needs to exit: with that comes a better reason."""
DEAF_GRACE_S = 0.5
"""How long after its output closed a process may take to exit before it counts as deaf."""
LAST_LINES = 60
"""So many lines come with the exit of a process that had said something: what is older is about something else.

Of another one all that is kept does: it is about the start, and the reason may stand above a page of usage.
"""
LAST_WORDS_S = 0.25
"""How long output is still read after the process is gone."""
MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""How much of our answers to its own requests a server may leave unread."""
AHEAD_BYTES = 1024 * 1024
"""How much is put into the outbox before the rest of the calls has to wait: enough to keep a pipe busy."""
AT_ONCE_BYTES = 256 * 1024
"""About how much is handed to the transport at once."""
MAX_LINES = 128
"""How many lines the actor takes at once: one read may bring ten thousand."""
LOOK_S = 1.0
"""How often is looked whether a process that may be installing does anything."""
IDLE_LOOKS = 3
"""After that many looks without any work it does not install now, and others may."""


LastWord = ProcessExit | SpawnRefused
"""How the messages of a process end."""


class Incarnation:
    """Runs one process.

    `installer`: what starts it may install it first, so its work is watched until it says something, which sets
    `spoken`: `worked_at` is when it last did any, and `began` when it was started, in seconds of the trio clock;
    `alone`: the launcher has no process beside itself. With `installs`, it needs a place for installing, too. It starts
    once the `predecessor` is gone.
    """

    def __init__(
        self,
        number: int,
        transport: Transport,
        post: Address[ServerMessage],
        *,
        spawn_timeout_s: float,
        installer: Installer | None,
        installs: bool,
        hear: Hear,
    ) -> None:
        self.number = number
        self.outbox: Outbox[Outgoing] = Outbox(MAX_UNREAD_BYTES, AHEAD_BYTES)
        self.connection: Connection | None = None
        self.spoken = trio.Event()
        self.installer = installer
        self.began = self.worked_at = trio.current_time()
        self.alone = True
        self._installs = installs
        self.turn = Turn()
        self.predecessor: trio.Event | None = None
        self._placed = trio.Event()
        self._settled = trio.Event()
        self._term_s: float | None = None
        self._transport = transport
        self._post = post
        self._spawn_timeout_s = spawn_timeout_s
        self._hear = hear
        self._stop = trio.Event()
        self._scope = trio.CancelScope()
        self._asked = False

    @property
    def waiting(self) -> bool:
        """Whether it waits for its turn to start, so nothing of it runs yet."""
        return not self._placed.is_set()

    def stop(self, *, polite: bool, term_s: float | None = None) -> None:
        """Ask for the end: by the stop sequence, for `term_s` see `Connection.stop`, or at once."""
        self._asked = True
        if polite and self.connection is not None:
            self._term_s = term_s
            self._stop.set()
        else:
            self._scope.cancel()

    def write(self) -> bool:
        """Hand over what is to be said: at once where that can be, else by the task that may wait.

        Return whether there is room again for those who waited to write.
        """
        outbox, connection = self.outbox, self.connection
        if not outbox.here:
            return False
        if connection is not None and (messages := outbox.take_all(ATOMIC_BYTES)):
            if connection.send_at_once(messages, outbox.mark_sent):
                return outbox.finish()
            outbox.put_back(messages)
        outbox.wake()
        return False

    async def run(self, starts: Starts) -> None:
        end: LastWord | None = None
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._hold_places, starts)
                    await self._placed.wait()
                    self.began = self.worked_at = trio.current_time()
                    self._scope.deadline = self.began + self._spawn_timeout_s
                    end = ProcessExit(self.number, await self._live())
                    nursery.cancel_scope.cancel()
        except* SpawnFailed as group:
            error = first_of(group)
            assert isinstance(error, SpawnFailed)
            what = f"; {error.hint}" if error.hint else ""
            reason, detail = error.message + what, error.detail + what
            end = SpawnRefused(self.number, reason, error.permanent, error.scarce, detail, error.away)
        await self._post.tell(end or self._cut_short())

    def _cut_short(self) -> LastWord:
        if self.connection is not None:
            return ProcessExit(self.number, self._with_last_words(Exit(), self.connection))
        if self._asked:
            return ProcessExit(self.number, Exit(asked=True))
        return SpawnRefused(self.number, f"it could not be started within {self._spawn_timeout_s:g} s")

    async def _hold_places(self, starts: Starts) -> None:
        if self.predecessor is not None:
            await self.predecessor.wait()
        if self.installer is None or not self._installs:
            await starts.spawn(self.turn, self._placed, self.spoken)
            return
        async with starts.install(self.turn, self.installer.package):
            await starts.spawn(self.turn, self._placed, self.spoken)
            await self._settled.wait()

    async def _live(self) -> Exit:
        async with self._transport.connect() as connection:
            self._scope.deadline = math.inf
            self.connection = connection
            connection.asides.hear = self._hear
            await self._post.tell(Spawned(self.number))
            async with trio.open_nursery() as nursery:
                reading = trio.Event()
                nursery.start_soon(self._read, connection, reading)
                nursery.start_soon(self._write, connection)
                nursery.start_soon(self._watch_input, connection)
                nursery.start_soon(self._stop_when_asked, connection)
                if self.installer is not None:
                    nursery.start_soon(self._watch_work, connection)
                exit_ = await connection.wait()
                log = await connection.install_log() if self.installer is not None and exit_.code else ""
                with trio.move_on_after(LAST_WORDS_S):
                    await reading.wait()
                nursery.cancel_scope.cancel()
        return self._with_last_words(exit_, connection, log)

    def _with_last_words(self, exit_: Exit, connection: Connection, log: str = "") -> Exit:
        asides = connection.asides
        spoken = self.spoken.is_set()
        return msgspec.structs.replace(
            exit_,
            asked=self._asked,
            last_stderr=asides.last_stderr(LAST_LINES) if spoken else asides.whole_stderr(),
            last_stdout=asides.last_stdout(LAST_LINES) if spoken else asides.whole_stdout(),
            install_log=log,
        )

    async def _read(self, connection: Connection, finished: trio.Event) -> None:
        try:
            while (incoming := await connection.receive()).lines or incoming.failure is not None:
                lines = incoming.lines
                self.spoken.set()
                self._settled.set()
                for start in range(0, len(lines), MAX_LINES):
                    if start:  # others have their turn: one read may bring ten thousand lines
                        await trio.lowlevel.checkpoint()
                    messages: list[Message] = []
                    for line in lines[start : start + MAX_LINES]:
                        if isinstance(line, Oversized) or len(line) < LARGE_BYTES:
                            messages.append(line)
                        else:
                            messages.append(await decode_in_thread(partial(decode_line, line)))
                    await self._post.tell(Received(self.number, messages, incoming.stream))
                if incoming.failure is not None:
                    await self._post.tell(Received(self.number, (), failure=incoming.failure))
        except ProtocolViolation as error:
            await self._post.tell(Violated(self.number, error.message))
        finally:
            finished.set()
        with trio.move_on_after(EXIT_S):
            await connection.wait()
            return
        await self._post.tell(OutputClosed(self.number))
        await self._on_closed(connection, "it closed its output and did not exit")

    async def _watch_input(self, connection: Connection) -> None:
        await connection.wait_input_closed()
        await self._on_closed(connection, "it closed its input and did not exit")

    async def _on_closed(self, connection: Connection, reason: str) -> None:
        """A pipe was closed: mostly because the process is about to exit, which says more, or was asked to."""
        for _ in range(2):  # a standstill of ours, in which it may have exited, costs one of them at most
            with trio.move_on_after(DEAF_GRACE_S / 2):
                await connection.wait()
                return
        if self._stop.is_set():
            return
        await self._post.tell(Violated(self.number, reason))

    async def _write(self, connection: Connection) -> None:
        while True:
            messages = await self.outbox.take(AT_ONCE_BYTES)
            try:
                taken = await connection.send(messages, self.outbox.mark_sent)
            except ServerExited:
                await self._on_closed(connection, "it closed its input and did not exit")
                return
            if not taken:
                await self._post.tell(Violated(self.number, "it does not read its input"))
                return
            if self.outbox.finish():
                await self._post.tell(Written(self.number))

    async def _stop_when_asked(self, connection: Connection) -> None:
        await self._stop.wait()
        await connection.stop(term_s=self._term_s)

    async def _watch_work(self, connection: Connection) -> None:
        """Look whether a process that says nothing does anything; where nobody can tell, it is believed to."""
        idle, before = 0, Work()
        while not self.spoken.is_set():
            now = await connection.work()
            busy = now is None or now.busy_since(before)
            if busy:
                self.worked_at = trio.current_time()
            if now is not None:
                self.alone, before = len(now.processes) <= 1, now
            idle = 0 if busy else idle + 1
            if idle >= IDLE_LOOKS:
                self._settled.set()
            with trio.move_on_after(LOOK_S):
                await self.spoken.wait()
