"""The router: admission, lookup, forward. It is not in the way of an answer: the reply travels with the message."""

from __future__ import annotations

from typing import Any

from actors import server
from actors.errors import ShuttingDown, TooManyCalls
from actors.kit import Actor, Ask, Reply
from actors.kit.directory import Directory
from actors.messages import CallServer, RefreshServer, RestartServer, SleepServer, WakeServer


class BeginShutdown(Ask[None], frozen=True):
    """Refuse what comes; answered when the last call in flight has settled."""


class ReadLoad(Ask[int], frozen=True):
    """How many calls are in flight over all servers."""


ForServer = CallServer | WakeServer | RestartServer | RefreshServer | SleepServer
Message = ForServer | BeginShutdown | ReadLoad


class Router(Actor[Message]):
    """One per daemon. At most `max_in_flight` calls are in flight over all servers."""

    def __init__(self, directory: Directory[server.Message], max_in_flight: int) -> None:
        super().__init__(max_in_flight + 64)
        self._directory = directory
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._closing: list[Reply[Any]] = []
        self._shut = False

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        """Admit and forward, or refuse with a typed error."""
        assert reply is not None
        match message:
            case CallServer() | WakeServer() | RestartServer() | RefreshServer() | SleepServer():
                self._forward(message, reply)
            case ReadLoad():
                reply.answer(self._in_flight)
            case BeginShutdown():
                self._shut = True
                self._closing.append(reply)
                self._report_drained()

    def _forward(self, message: ForServer, reply: Reply[Any]) -> None:
        if reply.settled:  # nobody waits any more
            return
        if self._shut:
            reply.fail(ShuttingDown())
            return
        address = self._directory.find(message.server)
        if address is None:
            reply.fail(self._directory.why_not(message.server))
            return
        if isinstance(message, (CallServer, WakeServer)):  # who waits for a server takes as much as who calls it
            if self._in_flight >= self._max_in_flight:
                reply.fail(TooManyCalls(f"the daemon is busy: {self._in_flight} calls are in flight"))
                return
            self._in_flight += 1
            reply.on_settled(self._settled)
        address.forward(message, reply)

    def _settled(self) -> None:
        self._in_flight -= 1
        if self._shut:
            self._report_drained()

    def _report_drained(self) -> None:
        if self._in_flight == 0:
            for reply in self._closing:
                reply.answer(None)
            self._closing.clear()
