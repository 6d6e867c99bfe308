"""Calls of tools are counted, and what fails among them is said to be repeatable where its tool says that it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter

import msgspec
import trio

from actors.catalogue.lists.marks import digest
from actors.catalogue.offer import Tool
from actors.errors import CallRefused, CallTimedOut, MailboxFull, ServerDisabled, ShuttingDown, SupervisorError
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.service.asking.exchange import Exchange
from supervisor.service.fitting.relay import has_failed
from supervisor.usage.records import MAX_CLIENT_CHARS, CallArguments, CallOutcome, CallRecord, Used

REFUSED = (MailboxFull, ServerDisabled, ShuttingDown)
"""Errors of ours that say nothing about the tool that was called."""
BYTES_PER_TOKEN = 4
"""Of JSON, about: to count what a model is shown would cost more than to find it."""


def record_of(exchange: Exchange, server: str, tool: str, bytes_in: int = 0) -> CallRecord:
    """Return the record of a call that has not ended yet; `server` is empty for a meta-tool."""
    client = exchange.client
    return CallRecord(
        principal=client.principal,
        client=client.name[:MAX_CLIENT_CHARS],
        era=client.era,
        server=server,
        tool=tool,
        bytes_in=bytes_in,
    )


Show = Callable[[bytes], Awaitable[tuple[bytes, int]]]
"""Gives a result as a model is shown it, and how many tokens that spares the model."""


async def whole(body: bytes) -> tuple[bytes, int]:
    return body, 0


async def count(
    used: Used,
    exchange: Exchange,
    server: str,
    tool: Tool,
    arguments: msgspec.Raw,
    call: Awaitable[bytes],
    show: Show = whole,
) -> bytes:
    """Await the call of a tool, and tell how that ended and what a model was spared of its result."""
    exchange.tool = tool
    record, started = record_of(exchange, server, (tool.own or tool).name, len(arguments)), perf_counter()
    record.definition = digest(tool)
    given = CallArguments(arguments, tool.input_schema)
    try:
        body = await call
    except (SupervisorError, RemoteError) as error:
        if isinstance(error, SupervisorError):
            error.idempotent = exchange.idempotent
        record.outcome, record.error = outcome_of(error), kind_of(error)
        took_ms = (perf_counter() - started) * 1000
        only_waited = isinstance(error, SupervisorError) and error.outcome == "not_sent"
        record.waited_ms, record.took_ms = (took_ms, 0.0) if only_waited else (0.0, took_ms)
        used(record, given)
        raise
    except trio.Cancelled:
        record.outcome, record.took_ms = "cancelled", (perf_counter() - started) * 1000
        used(record, given)
        raise
    record.waited_ms = exchange.waited_s * 1000
    record.took_ms = max(0.0, (perf_counter() - started) * 1000 - record.waited_ms)
    record.bytes_out = len(body)
    if has_failed(body):
        record.outcome, exchange.failed = "tool_error", True
    try:
        body, record.tokens_saved = await show(body)
    finally:  # the call has ended, whatever becomes of its result
        used(record, given)
    return body


def outcome_of(error: SupervisorError | RemoteError) -> CallOutcome:
    if isinstance(error, REFUSED) or (isinstance(error, CallRefused) and error.outcome == "not_sent"):
        return "rejected"
    if isinstance(error, CallTimedOut):
        return "timeout"
    return "unknown" if isinstance(error, SupervisorError) and error.outcome == "unknown" else "error"


def kind_of(error: SupervisorError | RemoteError) -> str:
    """Return the type of an error; of one that a server gave, its code."""
    return str(error.error.code) if isinstance(error, RemoteError) else error.kind
