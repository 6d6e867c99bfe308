"""Calls of tools are counted, and what fails among them is said to be repeatable where its tool says that it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter

from actors.catalogue.offer import Tool
from actors.errors import MailboxFull, ServerDisabled, ShuttingDown, SupervisorError
from actors.principal import Principal
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.service.asking.exchange import Exchange

Used = Callable[[Principal, str, str, bool, float, float], None]
"""Told of each call that ended: who called, server, tool as the server calls it, whether the server answered with a
result, and milliseconds: of the call, and of the time before that, in which it waited for its server."""
REFUSED = (MailboxFull, ServerDisabled, ShuttingDown)
"""Errors of ours that say nothing about the tool that was called."""


async def count(used: Used, exchange: Exchange, server: str, tool: Tool, call: Awaitable[bytes]) -> bytes:
    """Await the call of a tool, and tell how that ended; one that was refused or cancelled is not counted."""
    exchange.tool = tool
    principal, name, started = exchange.client.principal, (tool.own or tool).name, perf_counter()
    try:
        body = await call
    except (SupervisorError, RemoteError) as error:
        if isinstance(error, SupervisorError):
            error.idempotent = exchange.idempotent
        if not isinstance(error, REFUSED):
            took_ms = (perf_counter() - started) * 1000
            only_waited = isinstance(error, SupervisorError) and error.outcome == "not_sent"
            used(principal, server, name, False, *((0.0, took_ms) if only_waited else (took_ms, 0.0)))
        raise
    took_s = max(0.0, perf_counter() - started - exchange.waited_s)
    used(principal, server, name, True, took_s * 1000, exchange.waited_s * 1000)
    return body
