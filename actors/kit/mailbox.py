"""Mailboxes: how actors talk. The only module that opens memory channels.

Rules:
- A message is told (no answer) or asked (exactly one answer). An asked message that finds no room is refused at once;
  it never waits in front of the mailbox, so that load is shed where it can still be explained to the client.
- A `Reply` settles exactly once: answered, failed or abandoned. Whoever holds it may pass it on with its message.
- Closing a trio channel drops what is buffered, and trio closes nothing at garbage collection. Hence a mailbox
  remembers every reply it handed out, and leaving its ``with`` block fails those and the unread ones: what an actor had
  taken may have been carried out (outcome `unknown`), what it had not read was not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import msgspec
import trio

from actors.errors import ActorStopped, MailboxFull

R = TypeVar("R")
M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

MAX_BURST = 32
"""How many messages are taken in one turn of the loop; then others have theirs."""
StartSoon = Callable[..., None]
"""Starts a child task: `Actor.start_soon`, as those see it who work for an actor."""


class Ask(msgspec.Struct, Generic[R], frozen=True):
    """A message that expects exactly one answer of type R."""


class Reply(msgspec.Struct, Generic[R], eq=False):
    """A one-shot answer. Settles exactly once: answered, failed or abandoned; `settled` says whether it has."""

    settled: bool = False
    holder: set[Reply[Any]] | None = None
    """The replies that one mailbox handed out: its actor must settle this one."""
    _event: trio.Event = msgspec.field(default_factory=trio.Event)
    _value: R | None = None
    _error: Exception | None = None
    _on_abandon: Callable[[], None] | None = None
    abandoned_for: str = ""
    """The reason that somebody gave for abandoning it."""
    queued: bool = False
    """Whether what it answers waits in a queue of its actor, which has done nothing about it yet, for certain."""
    _on_settled: tuple[Callable[[], None], ...] = ()

    @property
    def value(self) -> R | None:
        """The answer; None as long as there is none."""
        return self._value

    @property
    def failure(self) -> Exception | None:
        return self._error

    def answer(self, value: R) -> None:
        """Give the answer; too late is no error."""
        if not self.settled:
            self._value = value
            self._settle()

    def fail(self, error: Exception) -> None:
        """Give an expected failure instead of an answer; too late is no error."""
        if not self.settled:
            self._error = error
            self._settle()

    def abandon(self, reason: str = "") -> None:
        """Say that nobody waits any more, and the reason if somebody gave one; tells whoever asked by `on_abandon`."""
        if not self.settled:
            self.abandoned_for = reason
            self._error = ActorStopped("nobody waits for this answer any more")
            told = self._on_abandon
            self._settle()
            if told is not None:
                told()

    def on_abandon(self, callback: Callable[[], None]) -> None:
        """Call `callback` (which must not block or raise) if the waiter goes away first; replaces an earlier one."""
        if not self.settled:
            self._on_abandon = callback

    def on_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` (which must not block or raise) when the reply settles, however it does; now if it has."""
        if self.settled:
            callback()
            return
        self._on_settled += (callback,)

    def release(self) -> None:
        """Say that another one settles it than the actor that has taken its message: so not at the end of that."""
        if self.holder is not None:
            self.holder.discard(self)
            self.holder = None

    def _settle(self) -> None:
        if self.holder is not None:
            self.holder.discard(self)
        self.settled = True
        self._event.set()
        told, self._on_settled = self._on_settled, ()
        # Who is told knows the call, which knows us: let go, or each call is freed only by a search for garbage.
        self.holder = self._on_abandon = None
        for callback in told:
            callback()

    async def wait(self) -> R:
        """Wait for the answer and return it, or raise the failure. Cancelling the wait abandons the reply."""
        try:
            await self._event.wait()
        except trio.Cancelled as cancelled:
            self.abandon(given_reason(cancelled))
            raise
        return self.result()

    def result(self) -> R:
        """Return the answer, or raise the failure, of a reply that has settled."""
        if self._error is not None:
            raise self._error
        return cast("R", self._value)


def given_reason(cancelled: trio.Cancelled) -> str:
    """Return the reason that was given for cancelling a scope; what trio says of itself is for nobody else."""
    return (cancelled.reason or "") if cancelled.source == "explicit" else ""


class Envelope(msgspec.Struct, Generic[M], frozen=True, eq=False):
    """A message and, if it was asked, where its answer goes."""

    message: M
    reply: Reply[Any] | None


class Address(Generic[M_contra]):
    """The sending half of a mailbox; safe to share between tasks. One that takes more messages may stand in for it."""

    __slots__ = ("_send",)

    def __init__(self, send: trio.MemorySendChannel[Envelope[M_contra]]) -> None:
        self._send = send

    async def tell(self, message: M_contra) -> None:
        """Put a message, waiting for room. Raises `ActorStopped`. A checkpoint if it waits."""
        await self._put_in_turn(Envelope(message, None))

    def tell_nowait(self, message: M_contra) -> None:
        """Put a message or raise `MailboxFull` or `ActorStopped` at once."""
        self._put(Envelope(message, None))

    def request(self, message: Ask[R]) -> Reply[R]:
        """Put a question and return where its answer will be. Raises `MailboxFull` or `ActorStopped` at once."""
        reply: Reply[R] = Reply()
        self._put(Envelope(cast("M_contra", message), reply))
        return reply

    async def ask(self, message: Ask[R]) -> R:
        """Put a question and wait for its answer; see `request` and `Reply.wait`. A checkpoint."""
        reply: Reply[R] = Reply()
        self._put(Envelope(cast("M_contra", message), reply))
        return await reply.wait()

    async def ask_in_turn(self, message: Ask[R]) -> R:
        """Put a question, waiting for room as `tell` does, and wait for its answer: for what must not be refused, such
        as the end. See `Reply.wait`; raises `ActorStopped`, never `MailboxFull`. A checkpoint.
        """
        return await (await self.request_in_turn(message)).wait()

    async def request_in_turn(self, message: Ask[R]) -> Reply[R]:
        """Put a question as `ask_in_turn` does, and return where its answer will be."""
        reply: Reply[R] = Reply()
        await self._put_in_turn(Envelope(cast("M_contra", message), reply))
        return reply

    def forward(self, message: M_contra, reply: Reply[Any] | None) -> None:
        """Pass a message on with its reply; a refusal goes to whoever waits for the reply.

        It is not for the actor any more that had it, also if that ends before the message is taken.
        """
        if reply is not None:
            reply.release()
        try:
            self._put(Envelope(message, reply))
        except (MailboxFull, ActorStopped) as error:
            if reply is None:
                raise
            reply.fail(error)

    def _put(self, envelope: Envelope[M_contra]) -> None:
        try:
            self._send.send_nowait(envelope)
        except trio.WouldBlock:
            raise MailboxFull from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStopped from None

    async def _put_in_turn(self, envelope: Envelope[M_contra]) -> None:
        """Where there is room, a turn of the loop for nothing would be a tenth of what a call takes."""
        try:
            self._put(envelope)
        except MailboxFull:
            try:
                await self._send.send(envelope)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise ActorStopped from None


class Mailbox(Generic[M]):
    """The receiving half, with room for `capacity` messages. Leaving the ``with`` block fails every open question."""

    def __init__(self, capacity: int) -> None:
        send, self._receive = trio.open_memory_channel[Envelope[M]](capacity)  # noqa: TID251  (the one place)
        self.address: Address[M] = Address(send)
        self._held: set[Reply[Any]] = set()  # taken from the mailbox, not yet settled or forwarded
        self._at_once = 0  # how many may still be taken before others have their turn

    def __len__(self) -> int:
        return self._receive.statistics().current_buffer_used

    async def receive(self, rest: Callable[[], None] | None = None) -> Envelope[M]:
        """Take the next message. A checkpoint if it has to be waited for, and after `MAX_BURST` in a row: then `rest`
        is called first.
        """
        try:
            envelope = self._receive.receive_nowait() if self._at_once else None
        except trio.WouldBlock:
            envelope = None
        if envelope is None:
            if rest is not None:
                rest()
            envelope = await self._receive.receive()
            self._at_once = MAX_BURST
        self._at_once -= 1
        reply = envelope.reply
        if reply is not None and not reply.settled:  # from now on this is the mailbox whose actor must settle it
            reply.holder = self._held
            self._held.add(reply)
        return envelope

    def __enter__(self) -> Mailbox[M]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        unread = self._take_unread()
        self._receive.close()
        for reply in list(self._held):
            reply.fail(ActorStopped(outcome="unknown"))
        for reply in unread:
            reply.fail(ActorStopped())

    def _take_unread(self) -> list[Reply[Any]]:
        replies: list[Reply[Any]] = []
        while True:
            try:
                envelope = self._receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                return replies
            if envelope.reply is not None:
                replies.append(envelope.reply)


class Actor(ABC, Generic[M]):
    """An actor: one task, one mailbox, handlers that cannot wait.

    A handler is a plain `def`: it cannot await, so it cannot block its mailbox. What must wait runs in a child task of
    `self.nursery`, which posts a message when done. An exception in a handler is a bug: it leaves `run` and its
    nursery.

    Subclasses write `handle`, which must not be async. `capacity` is the mailbox's room in messages.
    """

    nursery: trio.Nursery
    rest: Callable[[], None] | None = None
    """Called before others have their turn, as there is no message, or there were many: time to say what gathered."""

    def __init__(self, capacity: int) -> None:
        self._mailbox: Mailbox[M] = Mailbox(capacity)
        self._finished = False
        self.address: Address[M] = self._mailbox.address

    @abstractmethod
    def handle(self, message: M, reply: Reply[Any] | None) -> None:
        """React to one message without waiting."""

    def start_soon(self, task: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Run a child task; from `started` on. It is cancelled when the actor ends."""
        self.nursery.start_soon(task, *args)

    def finish(self) -> None:
        """End the actor after the message it is handling now; its child tasks are cancelled."""
        self._finished = True

    async def run(self, *, task_status: trio.TaskStatus[Address[M]] = trio.TASK_STATUS_IGNORED) -> None:
        """Handle messages until `finish`, a crash or cancellation."""
        with self._mailbox:
            async with trio.open_nursery() as self.nursery:
                self.on_start()
                task_status.started(self.address)
                while not self._finished:
                    envelope = await self._mailbox.receive(self.rest)  # what has gathered costs one turn of the loop
                    self.handle(envelope.message, envelope.reply)
                self.nursery.cancel_scope.cancel()

    def on_start(self) -> None:
        """Run once, inside the nursery, before the first message."""
