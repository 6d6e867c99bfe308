"""The end of the requests at shutdown: those in flight may finish, new ones are refused, the rest is told so in time.

Every transport performs its requests here, each in a cancel scope that the transport has anyway, as its clients may
cancel: a scope costs a tenth of what a small request does. All of them answer with the same typed error, as a complete
answer of their own kind, before anything is closed; but streams of events with the result that ends these.
"""

from __future__ import annotations

from copy import copy
from time import perf_counter
from typing import Final

import msgspec
import trio

from actors.errors import ShuttingDown
from actors.protocol.agreement.capabilities import SHUTDOWN, STREAM
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.wire.jsonrpc import encode, success
from supervisor.metrics.families import CANCELLED, TOOL_ERROR, request_labels
from supervisor.metrics.meters import Meters
from supervisor.service.asking.exchange import Exchange
from supervisor.service.port import Answer, Service, answer, failure
from supervisor.tracing.context import RequestTrace, TracedRequest, Tracer

_CANCELLED: Final = Answer(b"", good=False, error=CANCELLED)
"""In the place of the answer that nobody waits for."""


class RequestDrain:
    """The requests in flight at a service, and behind all other doors. `closing` begins the drain, `end` ends it.

    `mark` is that of the daemon, for its answers to handshakes. `meters` count the requests, `tracer` traces them.
    """

    def __init__(
        self,
        service: Service,
        closing: trio.Event,
        mark: str = "",
        meters: Meters | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._meters = meters or Meters()
        self._tracer = tracer
        self.service = service
        self._mark = mark
        self.closing = closing
        self._in_flight: dict[trio.CancelScope, Exchange] = {}
        self._ended: set[trio.CancelScope] = set()
        self._performed = trio.lowlevel.ParkingLot()

    def behind(self, service: Service) -> RequestDrain:
        """Return the same drain for the requests at another service: they end together."""
        other = copy(self)
        other.service = service
        return other

    async def empty(self) -> None:
        """Wait until nothing is in flight. Calls of servers end a few turns of the loop before their requests do.

        Streams that servers send have no end to wait for: they end at once.
        """
        for scope, exchange in self._in_flight.items():
            if exchange.method == STREAM and exchange.forwarded:
                self._ended.add(scope)
                scope.cancel()
        while self._in_flight:
            await self._performed.park()

    def end(self) -> None:
        """Cancel what still runs; each request is to be answered with its `last_answer`.

        One for several calls ends by itself with what is known of each of them.
        """
        for scope, exchange in self._in_flight.items():
            if exchange.calls is not None:
                exchange.calls.cancel()
            else:
                self._ended.add(scope)
                scope.cancel()

    async def answer(self, scope: trio.CancelScope, exchange: Exchange) -> Answer:
        """Perform one request in `scope`, which its caller has entered; if that is cancelled, ask for `last_answer`."""
        if self.closing.is_set():
            return failure(exchange.id, ShuttingDown())
        self._in_flight[scope] = exchange
        if self._tracer is not None:
            exchange.trace = begin_trace(self._tracer, exchange)
        began, told = perf_counter(), _CANCELLED
        try:
            told = await answer(self.service, exchange, self._mark)
            return told
        finally:
            del self._in_flight[scope]
            if not self._in_flight:
                self._performed.unpark_all()
            seconds, error = perf_counter() - began, told.error or (TOOL_ERROR if exchange.failed else "")
            tool = exchange.called or (exchange.tool.name if exchange.tool is not None else "")
            labels = request_labels(exchange.method, error, exchange.client.version, tool)
            self._meters.requests.add(labels, seconds)
            if (trace := exchange.trace) is not None:
                self._meters.note_request(labels, seconds, trace.trace_id)
                trace.end(tool, error, told.code)

    def last_answer(self, scope: trio.CancelScope, exchange: Exchange) -> Answer | None:
        """Return the answer to a request that was cancelled by `end`; None if it was by somebody else."""
        if scope not in self._ended:
            return None
        if exchange.method == STREAM:  # an error would say that there is none of that kind
            kind = {"resultType": "complete"} if exchange.client.era == "modern" else {}
            meta = {META_SUBSCRIPTION: msgspec.Raw(exchange.id), SHUTDOWN: True}
            return Answer(success(exchange.id, encode({**kind, "_meta": meta})))
        if not exchange.forwarded:
            return failure(exchange.id, ShuttingDown("the daemon ended before this was passed on to a server"))
        text = "the daemon ended before this call did; whether it was carried out is not known"
        return failure(exchange.id, ShuttingDown(text, outcome="unknown", idempotent=exchange.idempotent))


def begin_trace(tracer: Tracer, exchange: Exchange) -> RequestTrace:
    """Return the trace that a request is in."""
    client = exchange.client
    return tracer.begin(
        TracedRequest(
            method=exchange.method,
            id=exchange.id,
            params=bytes(exchange.params),
            version=client.version,
            session=client.session or "",
            protocol=exchange.protocol,
            lines=exchange.lines,
        )
    )
