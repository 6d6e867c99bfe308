"""The trace of one request: its context as it travels, and what the service needs of who makes traces. Pure.

The context is in heads of HTTP and in `_meta` (W3C Trace Context; SEP-414). What is not as the standard wants it counts
as nothing: the trace begins anew. (W3C Trace Context, 3.2.2 and 3.3.1.) Without the SDK nobody makes traces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from actors.facts import Projection
from actors.kit import Reply
from actors.messages import CallTrace
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

_PARENT: Final = "traceparent"
_STATE: Final = "tracestate"
_BAGGAGE: Final = "baggage"
MAX_PARAMS_BYTES: Final = 256 * 1024
_MAX_STATE_CHARS: Final = 512
_MAX_BAGGAGE_CHARS: Final = 8192
_PARENT_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+", re.ASCII)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceContext(msgspec.Struct, frozen=True):
    """Where in which trace something is: ids as hexadecimal digits. `state` and `baggage` are as they were written."""

    trace_id: str
    span_id: str
    sampled: bool
    state: str = ""
    baggage: str = ""

    @property
    def parent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def read_parent(text: str, state: str = "", baggage: str = "") -> TraceContext | None:
    """Return the context that a `traceparent` says; None for what is none."""
    match = _PARENT_FORM.fullmatch(text)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    sampled = bool(int(flags, 16) & 1)
    return TraceContext(
        trace_id, span_id, sampled, _bound(state, _MAX_STATE_CHARS), _bound(baggage, _MAX_BAGGAGE_CHARS)
    )


def _bound(text: str, most: int) -> str:
    return text if len(text) <= most and _PRINTABLE.fullmatch(text) else ""


def read_params(params: bytes) -> TraceContext | None:
    """Return the context in the `_meta` of a request; its params are an object, or nothing.

    Those of more than 256 KiB are not looked into: that would take some milliseconds of everybody's.
    """
    if len(params) > MAX_PARAMS_BYTES or b"traceparent" not in params:
        return None
    meta = json.members(json.at(params, "_meta"))
    parent, state, baggage = (json.text_at(meta.get(name)) for name in (_PARENT, _STATE, _BAGGAGE))
    return read_parent(parent, state, baggage)


def read_head(lines: Mapping[bytes, bytes]) -> TraceContext | None:
    """Return the context in the head of an HTTP request."""
    parent = lines.get(b"traceparent")
    if parent is None:
        return None
    return read_parent(parent.decode("latin-1").strip(), lines.get(b"tracestate", b"").decode("latin-1").strip())


def with_context(meta: bytes, context: TraceContext) -> bytes:
    """Return the members of a `_meta` (JSON without braces) with this context in the place of any other."""
    members: dict[str, msgspec.Raw] = {}
    if meta:
        members = {
            name: value
            for name, value in json.members(b"{" + meta + b"}").items()
            if name not in (_PARENT, _STATE, _BAGGAGE)
        }
    own = {_PARENT: context.parent, _STATE: context.state, _BAGGAGE: context.baggage}
    return encode({**members, **{name: text for name, text in own.items() if text}})[1:-1]


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


class Tracer(Projection, Protocol):
    """Makes spans and hands them to a thread that sends them. Nothing here waits or raises."""

    def count_dropped(self) -> int:
        """Return how many spans did not reach their collector: too many waited, or it did not take them."""

    def begin(self, request: TracedRequest) -> RequestTrace: ...

    def close(self) -> None:
        """Send what waits; blocks for as long as that takes."""
