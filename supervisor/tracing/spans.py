"""The spans of one request, made by the SDK of OpenTelemetry. Nothing of what is said in a call is in them.

Which span is the parent of which is said each time: a call goes through the mailboxes of several tasks, and none of
them is the context of another. A span that is not traced costs little, and is passed on to servers all the same.

Names of spans and attributes are those of the semantic conventions for MCP and GenAI, and our own. They are in
development (open-telemetry/semantic-conventions-genai) and may change: they are here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from actors import codes
from actors.kit import Reply
from actors.messages import CallTrace
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.metrics.families import CANCELLED, error_label
from supervisor.tracing.context import TraceContext, with_context

SCOPE: Final = "mcpvisor"
METHOD: Final = "mcp.method.name"
_ERROR_TYPE: Final = "error.type"
_TOOL: Final = "gen_ai.tool.name"
_PROMPT: Final = "gen_ai.prompt.name"
_OPERATION: Final = "gen_ai.operation.name"
_EXECUTE_TOOL: Final = "execute_tool"
REQUEST_ID: Final = "jsonrpc.request.id"
_STATUS_CODE: Final = "rpc.response.status_code"
VERSION: Final = "mcp.protocol.version"
SESSION: Final = "mcp.session.id"
TRANSPORT: Final = "network.transport"
PROTOCOL: Final = "network.protocol.name"
# Ours
SERVER: Final = "mcpvisor.server"
_HITS: Final = "mcpvisor.search.hits"
_WAIT_SPAN: Final = "mcpvisor.wait"
_SEARCH_SPAN: Final = "mcpvisor.search"
START_SPAN: Final = "mcpvisor.start"
READING_SPAN: Final = "mcpvisor.discovery"

MAX_TEXT: Final = 256
"""Characters of what a client wrote."""
_NO_FAULT: Final = frozenset(
    {
        *(codes.PARSE_ERROR, codes.INVALID_REQUEST, codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS),
        codes.RESOURCE_NOT_FOUND,
    }
)
"""Codes of answers to a client that are its own mistake, and no error of the span of a server."""
_SUBJECTS: Final = {"tools/call": _TOOL, "prompts/get": _PROMPT}
"""By method, what the name is of that it is about, and that the name of the span has."""


def span_name(method: str, name: str) -> str:
    """Return the name of a span: never with the address of a resource, of which there may be any number."""
    subject = method in _SUBJECTS and name
    return f"{method} {name}"[:MAX_TEXT] if subject else method[:MAX_TEXT]


_ERROR: Final = Status(StatusCode.ERROR)
LEAST_WAIT_NS: Final = 1_000_000
"""A request that is sent sooner did not wait: a span costs the call a third of what it takes itself."""
Attributes = dict[str, str | int | float | bool]


class SpanFactory:
    """Makes spans of one tracer; `clock` gives unix nanoseconds. `baggage`: it is passed on to servers."""

    def __init__(self, tracer: Tracer, *, baggage: bool, clock: Callable[[], int] = time_ns) -> None:
        self.baggage = baggage
        self.clock = clock
        self._tracer = tracer

    def start(
        self,
        name: str,
        parent: Context,
        kind: SpanKind,
        attributes: Attributes,
        *,
        links: list[trace.Link] | None = None,
        begun: int | None = None,
    ) -> Span:
        """Return a span that has `begun` then, or begins now."""
        at = self.clock() if begun is None else begun
        return self._tracer.start_span(
            name, parent, kind, attributes, links, at, record_exception=False, set_status_on_exception=False
        )

    def add(self, name: str, attributes: Attributes, seconds: float, *, good: bool) -> None:
        """Make a span of what was over before anybody knew that it is one, in a trace of its own."""
        end = self.clock()
        span = self._tracer.start_span(name, Context(), SpanKind.INTERNAL, attributes, None, end - int(seconds * 1e9))
        if not good:
            span.set_status(_ERROR)
        span.end(end)


def _context_of(span: Span, baggage: str) -> TraceContext:
    """Return what is told of a span to those whose parent it is."""
    told = span.get_span_context()
    ids = trace.format_trace_id(told.trace_id), trace.format_span_id(told.span_id)
    return TraceContext(*ids, told.trace_flags.sampled, told.trace_state.to_header(), baggage)


def _end_span(span: Span, error: str, code: int, *, faulty: bool, now: int) -> None:
    """End a span with how that went; `faulty`: it is an error of that side."""
    if error:
        span.set_attribute(_ERROR_TYPE, error)
    if code:
        span.set_attribute(_STATUS_CODE, str(code))
    if faulty:
        span.set_status(_ERROR)
    span.end(now)


class UntracedCall:
    """Implements `CallTrace` for a request that is not traced: its server is told so, and no span is made."""

    def __init__(self, context: TraceContext) -> None:
        self._context = context

    def send(self, meta: bytes) -> bytes:
        """See `CallTrace.send`."""
        return with_context(meta, self._context)

    def end(self, error: str, code: int = 0) -> None:
        """Do nothing."""


class SdkCallSpans:
    """Implements `CallTrace`: the wait of a request before it is sent, if it does wait, and each time that it is."""

    def __init__(self, factory: SpanFactory, parent: Context, name: str, attributes: Attributes, baggage: str) -> None:
        self._factory = factory
        self._parent = parent
        self._name = name
        self._attributes = attributes
        self._baggage = baggage if factory.baggage else ""
        self._begun: int | None = factory.clock()
        self._span: Span | None = None

    @property
    def context(self) -> Context:
        """What belongs to it has this parent."""
        return self._parent if self._span is None else trace.set_span_in_context(self._span, Context())

    def send(self, meta: bytes) -> bytes:
        """See `CallTrace.send`."""
        factory = self._factory
        self._end_wait(factory.clock(), "")
        if self._span is not None:  # it is sent again: nobody carried it out
            _end_span(self._span, "unreached", 0, faulty=True, now=factory.clock())
        self._span = span = factory.start(self._name, self._parent, SpanKind.CLIENT, self._attributes)
        return with_context(meta, _context_of(span, self._baggage))

    def _end_wait(self, now: int, error: str) -> None:
        """Make a span of the wait that ends now; of one that was none only where it ends with an error."""
        begun, self._begun = self._begun, None
        if begun is not None and (error or now - begun >= LEAST_WAIT_NS):
            server = {SERVER: self._attributes[SERVER]}
            span = self._factory.start(_WAIT_SPAN, self._parent, SpanKind.INTERNAL, server, begun=begun)
            _end_span(span, error, 0, faulty=bool(error), now=now)

    def end(self, error: str, code: int = 0) -> None:
        """See `CallTrace.end`."""
        now, faulty = self._factory.clock(), bool(error)
        self._end_wait(now, error)
        if self._span is not None:
            _end_span(self._span, error, code, faulty=faulty, now=now)
        self._span = None


class SdkRequestTrace:
    """Implements `RequestTrace`."""

    def __init__(self, factory: SpanFactory, span: Span, method: str, baggage: str) -> None:
        self._factory = factory
        self._span = span
        self._method = method
        self._baggage = baggage
        self._context = trace.set_span_in_context(span, Context())
        self._call: SdkCallSpans | None = None

    @property
    def trace_id(self) -> str:
        told = self._span.get_span_context()
        return trace.format_trace_id(told.trace_id) if told.trace_flags.sampled else ""

    def begin_call(self, server: str, method: str, name: str, *, remote: bool) -> CallTrace:
        if not self._span.is_recording():
            return UntracedCall(_context_of(self._span, self._baggage if self._factory.baggage else ""))
        attributes: Attributes = {
            METHOD: method[:MAX_TEXT],
            SERVER: server,
            TRANSPORT: "tcp" if remote else "pipe",
            **_subject_of(method, name),
        }
        self._call = SdkCallSpans(self._factory, self._context, span_name(method, name), attributes, self._baggage)
        return self._call

    def branch(self) -> SdkRequestTrace:
        return SdkRequestTrace(self._factory, self._span, self._method, self._baggage)

    def begin_search(self) -> Callable[[int], None]:
        span = self._factory.start(_SEARCH_SPAN, self._context, SpanKind.INTERNAL, {})

        def end(hits: int) -> None:
            span.set_attribute(_HITS, hits)
            span.end(self._factory.clock())

        return end

    def ask(self, method: str, reply: Reply[Any]) -> None:
        parent = self._context if self._call is None else self._call.context
        told: Attributes = {METHOD: method[:MAX_TEXT]}
        span = self._factory.start(span_name(method, ""), parent, SpanKind.CLIENT, told)

        def end() -> None:
            error = reply.failure
            label = error_label(error) if error is not None else "" if reply.value is not None else CANCELLED
            code = error.error.code if isinstance(error, RemoteError) else 0
            _end_span(span, label, code, faulty=bool(label), now=self._factory.clock())

        reply.on_settled(end)

    def end(self, name: str, error: str, code: int = 0) -> None:
        if name:
            self._span.update_name(span_name(self._method, name))
            for key, value in _subject_of(self._method, name).items():
                self._span.set_attribute(key, value)
        faulty = bool(error) and code not in _NO_FAULT
        _end_span(self._span, error, code, faulty=faulty, now=self._factory.clock())


def _subject_of(method: str, name: str) -> Attributes:
    """Return the attributes of what a request is about; the address of a resource is none of them."""
    if method not in _SUBJECTS or not name:
        return {}
    told: Attributes = {_SUBJECTS[method]: name[:MAX_TEXT]}
    return {**told, _OPERATION: _EXECUTE_TOOL} if method == "tools/call" else told
