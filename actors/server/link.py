"""One incarnation of a server as its actor sees it: the process, and the conversation with it."""

from __future__ import annotations

import trio

from actors.incarnation import Incarnation
from actors.kit import Address, Starts
from actors.protocol.conversation import Conversation
from actors.protocol.era import Identity
from actors.protocol.versions import Era
from actors.server.inbox import Message
from actors.server.settings import ServerSettings
from actors.transport.asides import Hear
from actors.transport.base import Transport


class Link:
    """What is said goes into the process's outbox with `flush`. `hasty`: the first probe of the era was unanswered.

    `heard` is when the server last said anything that made sense, in seconds of the trio clock.
    """

    __slots__ = ("hasty", "heard", "process", "talk")

    def __init__(self, process: Incarnation, talk: Conversation) -> None:
        self.process = process
        self.talk = talk
        self.hasty = talk.probing
        self.heard = trio.current_time()

    @property
    def era(self) -> Era:
        """The era that was agreed on; legacy before that."""
        return self.talk.agreement.era if self.talk.agreement is not None else "legacy"

    @property
    def pid(self) -> int | None:
        """The process id, None before the process runs and where there is none."""
        return self.process.connection.pid if self.process.connection is not None else None

    @property
    def noise(self) -> int:
        """How many lines of its output were no messages."""
        return self.process.connection.counters.stdout_noise if self.process.connection is not None else 0

    def last_stderr(self, lines: int) -> str:
        """Return the newest lines the process wrote to stderr."""
        return self.process.connection.last_stderr(lines) if self.process.connection is not None else ""

    def flush(self) -> bool:
        """Hand over what was said; False if the process reads so slowly that it does not fit."""
        data = self.talk.take_output()
        return not data or self.process.outbox.put(data)

    def probe_answered(self) -> bool:
        """Return True once: when the first probe has got an answer, and the handshake goes on."""
        if not self.hasty or self.talk.probing:
            return False
        self.hasty = False
        return True


class Launcher:
    """Makes links. `starts` bounds how many servers start at once; the process posts its facts to `post`.

    `hear` is called with whatever a server writes beside its messages.
    """

    def __init__(
        self,
        transport: Transport,
        settings: ServerSettings,
        starts: Starts,
        post: Address[Message],
        identity: Identity,
        hear: Hear,
    ) -> None:
        self.kind = transport.kind
        self._transport = transport
        self._settings = settings
        self._starts = starts
        self._post = post
        self._identity = identity
        self._hear = hear

    def launch(self, nursery: trio.Nursery, number: int, era: Era | None, *, urgent: bool, new: bool) -> Link:
        """Start incarnation `number` in tasks of the nursery; `era` is what the server spoke before.

        `new`: it was never up, so it may have to be installed.
        """
        settings = self._settings
        process = Incarnation(
            number,
            self._transport,
            self._post,
            spawn_timeout_s=settings.start_timeout_s,
            write_timeout_s=settings.write_timeout_s,
            installer=settings.installer,
            installs=new,
            hear=self._hear,
        )
        if urgent:
            process.hurry()
        nursery.start_soon(process.run, self._starts)
        return Link(process, Conversation(f"s{number}", self._identity, era, settings.list_limits))
