"""One process of a server, from spawn to exit: the tasks around a connection, which post facts to their actor.

Expected failures become messages; whatever happens, the last one is `ProcessExit` or `SpawnRefused`, sent when nothing
of the process is left. The reader and the writer are separate tasks, so that we always read while we write and no pipe
can deadlock us. A process may wait for its turn to start; afterwards nothing it does, or does not, holds up another.
`Link` is what the actor has of it: the process, and the conversation with it.
"""

from __future__ import annotations

import math
import secrets
from contextlib import suppress
from functools import partial

import msgspec
import trio

from actors.errors import ProtocolViolation, ServerExited, SpawnFailed
from actors.kit import Address, Mark, Outbox, Starts, Turn
from actors.kit.decoding import decode_in_thread
from actors.kit.want import first_of
from actors.life.lifecycle import Spawned, SpawnRefused, Violated
from actors.protocol.conversation import Conversation
from actors.protocol.facts import Fact
from actors.protocol.wire.fragment import DecodedLine, Message, decode_line, text_of
from actors.protocol.wire.fragment import Message as Said
from actors.protocol.wire.framing import Oversized
from actors.protocol.wire.jsonrpc import members
from actors.protocol.wire.peer import Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.server.inbox import OutputClosed, ProcessExit, Received, ServerMessage, Written
from actors.transport.base import Connection, Counters, Exit, Transport, Work
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


_NO_BATCHES = "a batch, which this version of the protocol does not have"
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


class Link:
    """One incarnation of a server as its actor sees it: the process, and the conversation with it.

    What is said goes into the process's outbox with `flush`. `hasty`: the first probe of the era was unanswered.

    `run` is a name that no other incarnation of any server has. `heard` is when the server last said anything that made
    sense, in seconds of the trio clock. `said` counts its messages that made sense, `read` the others, too. `choked`:
    it left so much unread that something did not fit. `apart`: what it says comes on a stream for each call.
    """

    __slots__ = ("apart", "choked", "hasty", "heard", "process", "read", "run", "said", "talk")

    def __init__(self, process: Incarnation, talk: Conversation) -> None:
        self.apart = self.choked = False
        self.process = process
        self.talk = talk
        self.run = secrets.token_hex(8)
        self.hasty = talk.probing
        self.heard = trio.current_time()
        self.read = self.said = 0

    @property
    def number(self) -> int:
        return self.process.number

    @property
    def pid(self) -> int | None:
        """The process id, None before the process runs and where there is none."""
        return self.process.connection.pid if self.process.connection is not None else None

    @property
    def silent_installer(self) -> Installer | None:
        """What started the process and may have to install it first, if nothing was ever said; else None."""
        return self.process.installer if not self.process.spoken.is_set() else None

    @property
    def counters(self) -> Counters:
        """What has arrived; messages that were not `read` yet are with the transport, or with the reader."""
        return self.process.connection.counters if self.process.connection is not None else Counters()

    def messages(self, line: Said) -> list[tuple[Said, str]]:
        """Return the messages of one line, which may be a batch, and of each why it cannot be used; empty if it can."""
        if isinstance(line, bytes) and line.startswith(b"{"):  # nearly all
            return [(line, "")]
        if isinstance(line, DecodedLine) and line.members:
            return [(message, "" if self.talk.batches else _NO_BATCHES) for message in line.members]
        if isinstance(line, bytes) and line.lstrip().startswith(b"["):
            with suppress(ProtocolViolation):  # it is no batch either
                spoiled_by = "" if self.talk.batches else _NO_BATCHES
                return [(message, spoiled_by) for message in members(line)]
        return [(line, "")]

    def receive(self, message: Said, spoiled_by: str, stream: bytes) -> Fact | None:
        """Take one message, see `Conversation.receive`; what is no JSON-RPC is told of as noise, too."""
        self.apart = self.apart or bool(stream)
        try:
            return self.talk.receive(message, spoiled_by, stream)
        except ProtocolViolation:
            if self.process.connection is not None:
                self.process.connection.asides.noise(
                    [text_of(message) if isinstance(message, DecodedLine) else message]
                )
            raise

    def last_stderr(self, lines: int) -> str:
        return self.process.connection.asides.last_stderr(lines) if self.process.connection is not None else ""

    def place(self, size: int) -> Mark | None:
        """Return the place in the stream of a call of so many bytes, which is said next; None if it should not be said
        now: then the process posts `Written` when there is room.

        What was said before is handed over first.
        """
        if self.talk.output:
            self.flush()
        outbox = self.process.outbox
        return outbox.mark() if outbox.fits(size) else None

    def flush(self) -> None:
        for message in self.talk.output:
            self.choked |= not self.process.outbox.put(message, message.size)
        self.talk.output.clear()

    def probe_answered(self) -> bool:
        """Return True once: when the first probe has got an answer, and the handshake goes on."""
        if not self.hasty or self.talk.probing:
            return False
        self.hasty = False
        return True
