"""The end of the calls at shutdown: those in flight may finish, new ones are refused, the rest is told so in time.

It stands before the service, behind every transport: each of them answers with the same typed error, as a complete
answer of its own kind, before anything is closed.
"""

from __future__ import annotations

import msgspec
import trio

from actors.errors import ShuttingDown
from actors.kit import Latest
from supervisor.front.service import Client, Revisions, Service


class Drain:
    """The calls in flight. `closing` begins the drain, `end` ends it."""

    def __init__(self, closing: trio.Event) -> None:
        self.closing = closing
        self._in_flight: set[trio.CancelScope] = set()

    def end(self) -> None:
        """Cancel what still runs; each call is answered with `ShuttingDown`."""
        for scope in self._in_flight:
            scope.cancel()

    async def call(self, service: Service, client: Client, method: str, params: msgspec.Raw) -> bytes:
        """Perform one request of a service. Raises what it raises, and `ShuttingDown`."""
        if self.closing.is_set():
            raise ShuttingDown
        with trio.CancelScope() as scope:
            self._in_flight.add(scope)
            try:
                return await service.perform(client, method, params)
            finally:
                self._in_flight.discard(scope)
        text = "the daemon ended before this call did; whether it was carried out is not known"
        raise ShuttingDown(text, outcome="unknown")


class DrainedService:
    """A `Service` whose calls end with the drain."""

    def __init__(self, inner: Service, drain: Drain) -> None:
        self.changes: Latest[object] = inner.changes
        self._inner = inner
        self._drain = drain

    def revisions(self, principal: str) -> Revisions:
        """Return what `principal` sees now."""
        return self._inner.revisions(principal)

    async def perform(self, client: Client, method: str, params: msgspec.Raw) -> bytes:
        """Perform one request, until the drain ends. Raises `ShuttingDown` too. A checkpoint."""
        return await self._drain.call(self._inner, client, method, params)

    def initialize(self, version: str) -> bytes:
        """Return the JSON text of an `initialize` result that says `version`."""
        return self._inner.initialize(version)
