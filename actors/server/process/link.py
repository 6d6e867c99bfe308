"""One incarnation of a server as its actor sees it: the process, and the conversation with it."""

from __future__ import annotations

import secrets
from contextlib import suppress

import trio

from actors.errors import ProtocolViolation
from actors.kit import Mark
from actors.protocol.conversation import Conversation
from actors.protocol.facts import Fact
from actors.protocol.wire.fragment import DecodedLine, text_of
from actors.protocol.wire.fragment import Message as Said
from actors.protocol.wire.jsonrpc import members
from actors.server.process.incarnation import Incarnation
from actors.transport.base import Counters
from actors.transport.stdio.installer import Installer

_NO_BATCHES = "a batch, which this version of the protocol does not have"


class Link:
    """What is said goes into the process's outbox with `flush`. `hasty`: the first probe of the era was unanswered.

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
