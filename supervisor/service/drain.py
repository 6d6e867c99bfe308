"""The end of the requests at shutdown: those in flight may finish, new ones are refused, the rest is told so in time.

Every transport performs its requests here, each in a cancel scope that the transport has anyway, as its clients may
cancel: a scope costs a tenth of what a small request does. All of them answer with the same typed error, as a complete
answer of their own kind, before anything is closed.
"""

from __future__ import annotations

from copy import copy

import trio

from actors.errors import ShuttingDown
from supervisor.service.asking.exchange import Exchange
from supervisor.service.port import Answer, Service, answer, failure


class RequestDrain:
    """The requests in flight at a service, and behind all other doors. `closing` begins the drain, `end` ends it.

    `mark` is that of the daemon, for its answers to handshakes.
    """

    def __init__(self, service: Service, closing: trio.Event, mark: str = "") -> None:
        self.service = service
        self._mark = mark
        self.closing = closing
        self._in_flight: set[trio.CancelScope] = set()
        self._ended: set[trio.CancelScope] = set()
        self._performed = trio.lowlevel.ParkingLot()

    def behind(self, service: Service) -> RequestDrain:
        """Return the same drain for the requests at another service: they end together."""
        other = copy(self)
        other.service = service
        return other

    async def empty(self) -> None:
        """Wait until nothing is in flight. Calls of servers end a few turns of the loop before their requests do."""
        while self._in_flight:
            await self._performed.park()

    def end(self) -> None:
        """Cancel what still runs; each request is to be answered with its `last_answer`."""
        self._ended |= self._in_flight
        for scope in self._in_flight:
            scope.cancel()

    async def answer(self, scope: trio.CancelScope, exchange: Exchange) -> Answer:
        """Perform one request in `scope`, which its caller has entered; if that is cancelled, ask for `last_answer`."""
        if self.closing.is_set():
            return failure(exchange.id, ShuttingDown())
        self._in_flight.add(scope)
        try:
            return await answer(self.service, exchange, self._mark)
        finally:
            self._in_flight.discard(scope)
            if not self._in_flight:
                self._performed.unpark_all()

    def last_answer(self, scope: trio.CancelScope, exchange: Exchange) -> Answer | None:
        """Return the answer to a request that was cancelled by `end`; None if it was by somebody else."""
        if scope not in self._ended:
            return None
        if not exchange.forwarded:
            return failure(exchange.id, ShuttingDown("the daemon ended before this was passed on to a server"))
        text = "the daemon ended before this call did; whether it was carried out is not known"
        return failure(exchange.id, ShuttingDown(text, outcome="unknown", idempotent=exchange.idempotent))
