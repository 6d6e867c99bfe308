"""What the service needs of traces: who makes them, and the trace of one request. Without the SDK nobody does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from actors.kit import Reply
from actors.observer import CallTrace, Observer


class TracedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a client, as far as its span tells of it. `lines` are those of its head, if it came by HTTP."""

    method: str
    id: bytes
    params: bytes
    version: str
    session: str
    protocol: str
    lines: Mapping[bytes, bytes] | None


class RequestTrace(Protocol):
    """The span of one request of a client, and what belongs to it."""

    @property
    def trace_id(self) -> str:
        """In hexadecimal digits; empty if the trace is not sent to anybody."""

    def begin_call(self, server: str, method: str, name: str, *, remote: bool) -> CallTrace:
        """A request to a server begins to wait for it."""

    def begin_search(self) -> Callable[[int], None]:
        """A search begins; what is returned is to be called with its hits."""

    def branch(self) -> RequestTrace:
        """Return the same for one of several calls of the request: the spans of each are children of its span."""

    def ask(self, method: str, reply: Reply[Any]) -> None:
        """The client is asked something, until the reply is settled."""

    def end(self, name: str, error: str, code: int = 0) -> None:
        """It is answered: it was about a tool or prompt of this `name`. For the rest see `CallTrace.end`."""


class Tracer(Protocol):
    """Makes spans and hands them to a thread that sends them. Nothing here waits or raises."""

    def count_dropped(self) -> int:
        """Return how many spans did not reach their collector: too many waited, or it did not take them."""

    def begin(self, request: TracedRequest) -> RequestTrace: ...

    def observe(self, observer: Observer) -> Observer:
        """Return who is told what `observer` is, and makes spans of it."""

    def close(self) -> None:
        """Send what waits; blocks for as long as that takes."""
