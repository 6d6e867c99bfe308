"""What comes in on a connection without a process, and its end: the receiving half of every remote connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import trio

from actors.errors import MailboxFull
from actors.kit import Mailbox
from actors.protocol.wire.framing import Line, may_be_message
from actors.protocol.wire.peer import Failure, Outgoing
from actors.transport.base import Counters, Exit, Incoming, Work
from actors.transport.side_output import Asides

MAX_ARRIVED = 64
"""So many things that came in wait for the actor; then nothing more is read."""
TOGETHER_BYTES = 16 * 1024
"""What came on one stream since the actor last looked is taken at once, up to that."""
LASTING_S = 5.0
"""A connection that was lost later than this after its greeting may be made again at once."""
GREETINGS = frozenset({"server/discover", "initialize"})


class Session:
    """See `Connection` for the contract of its methods.

    Whoever reads for it calls `hand_on` and `fail`, and one of `expire`, `lose` and `end`; whoever sends calls `count`.
    `stop_s`: how long, in seconds, saying goodbye may take.
    """

    pid = None

    def __init__(self, stop_s: float = 0.0) -> None:
        self._stop_s = stop_s
        self._asked = False
        self.counters = Counters()
        self.asides = Asides()
        self._arrived: Mailbox[Incoming] = Mailbox(MAX_ARRIVED)
        self._unread: list[Line] = []
        """The newest lines that came; others of `_stream` are added until they are taken, or there is no room."""
        self._stream = b""
        self._room = 0
        self._exit: Exit | None = None
        self._exited = trio.Event()
        self._greeted_at: float | None = None

    @property
    def over(self) -> bool:
        return self._exit is not None

    def send_at_once(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """A network has to be waited for."""
        del messages, left
        return False

    @property
    def greeted(self) -> bool:
        """Whether the greeting is done."""
        return self._greeted_at is not None

    def count(self, message: Outgoing) -> None:
        """Take that a message is sent; the first one that is no greeting tells that the greeting is done."""
        if self._greeted_at is None and message.method not in GREETINGS:
            self._greeted_at = trio.current_time()

    async def hand_on(self, text: bytes, stream: bytes) -> None:
        """Take what may be a message, and came on the stream of a request; waits while much is unread."""
        if not may_be_message(text):
            self.counters.stdout_noise += 1
            self.asides.noise([text])
            return
        self.counters.messages_received += 1
        if stream == self._stream and len(text) <= self._room:
            self._unread.append(text)
            self._room -= len(text)
            return
        self._unread, self._stream, self._room = [text], stream, TOGETHER_BYTES - len(text)
        arrived = Incoming(self._unread, stream)
        try:
            self._arrived.address.tell_nowait(arrived)
        except MailboxFull:
            await self._arrived.address.tell(arrived)

    async def fail(self, failure: Failure) -> None:
        """Take that no answer to a request comes any more; waits as `hand_on` does."""
        self._room = 0  # nothing that comes later may come before it
        await self._arrived.address.tell(Incoming(failure=failure))

    def expire(self, cause: str) -> None:
        """End it, as the server does not know it any more."""
        self.end(Exit(cause=cause, renewable=True, forgotten=True))

    def lose(self, cause: str) -> None:
        """End it, as the connection was lost; one that did not last is not made again at once."""
        since = self._greeted_at or trio.current_time()
        self.end(Exit(cause=cause, renewable=trio.current_time() - since > LASTING_S))

    def end(self, exit_: Exit) -> None:
        """End it; only the first call counts."""
        if self._exit is None:
            self._exit = exit_
            self._exited.set()
            with suppress(MailboxFull):  # else whoever reads comes by when it has read all
                self._arrived.address.tell_nowait(Incoming())

    async def wait_input_closed(self) -> None:
        await self._exited.wait()

    async def receive(self) -> Incoming:
        if self._exit is not None and not len(self._arrived):
            return Incoming()
        incoming = (await self._arrived.receive()).message
        if incoming.lines is self._unread:
            self._room = 0
        return incoming

    async def stop(self, *, term_s: float | None = None) -> None:
        self._asked = True
        if not self.over:
            with trio.move_on_after(self._stop_s if term_s is None else term_s):
                await self._say_goodbye()
        self.end(Exit(asked=True))

    async def _say_goodbye(self) -> None:
        """Tell the other side that it is over, where it can be told."""

    def kill(self) -> None:
        self.end(Exit(asked=True))

    async def wait(self) -> Exit:
        await self._exited.wait()
        assert self._exit is not None
        return self._exit

    async def work(self) -> Work | None:
        await trio.lowlevel.checkpoint()
        return None

    async def install_log(self) -> str:
        await trio.lowlevel.checkpoint()
        return ""
