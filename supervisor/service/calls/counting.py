"""Calls of tools are counted: each that is asked for ends in one record, at whatever door, and however it ends.

- A call that was refused, or whose server was not up, is counted as that, under the tool that it was for. What is not
  known of it (a server or a tool that a client made up) is `UNKNOWN`, so that nobody makes sums grow.
- A call that asks its client something has not ended: it is counted when its client has gone on with it.
- What fails is said to be repeatable where its tool says that it is.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter

import msgspec
import trio

from actors.catalogue.marks import digest
from actors.catalogue.offer import NO_RAW, Tool
from actors.errors import ActorStopped, CallTimedOut, ServerDisabled, ServerError, Starved, SupervisorError
from actors.kit import is_want
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.fleet.engine import NodeAway
from supervisor.fleet.peers import HeldElsewhere
from supervisor.identity.audit import Audit
from supervisor.servers.safety import NotReadOnly, WithheldTool
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import AskedByResult, InputNeeded
from supervisor.service.fitting.relay import has_failed
from supervisor.service.lookup.visible import Visible
from supervisor.usage.records import (
    MAX_CLIENT_CHARS,
    MAX_NAMED_CHARS,
    UNKNOWN,
    CallArguments,
    CallOutcome,
    CallRecord,
    Used,
)

UNREACHED = (ServerError, CallTimedOut, ActorStopped, NodeAway)
"""Errors of a call that was to be sent, and whose server could not be asked. Any other error before that refuses it."""
NOT_OVER = (AskedByResult, InputNeeded, HeldElsewhere)
"""What is raised for a call that goes on in another request, or at another node."""
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


class PendingCall:
    """A call of a tool until it ends: what is known of it so far. `named` is what its client wrote for the tool."""

    def __init__(self, exchange: Exchange, server: str) -> None:
        self.record = record_of(exchange, server, UNKNOWN)
        self.named = ""
        self.arguments = msgspec.Raw(b"")
        self.has_ended = False
        self._exchange = exchange
        self._began = perf_counter()

    def find(self, server: str, tool: Tool) -> None:
        """Take which tool is called. Its time counts from now: what it took to find out is none of the tool's."""
        self._exchange.tool, record = tool, self.record
        record.server, record.tool, record.definition = server, (tool.own or tool).name, digest(tool)
        self._began = perf_counter()

    def end(self, body: bytes) -> None:
        """Take a result, as the server gave it."""
        exchange, record = self._exchange, self.record
        self.has_ended = True
        record.waited_ms = exchange.waited_s * 1000
        record.took_ms = max(0.0, self._took_ms() - record.waited_ms)
        record.bytes_out = len(body)
        if has_failed(body):
            record.outcome, exchange.failed = "tool_error", True

    def fail(self, error: BaseException) -> None:
        """Take what was raised in the place of a result."""
        exchange, record = self._exchange, self.record
        self.has_ended = True
        if isinstance(error, SupervisorError):
            error.idempotent = exchange.idempotent
        elif isinstance(error, Exception) and is_want(error):
            error = Starved("", outcome="unknown" if exchange.forwarded else "not_sent")
        record.outcome, record.error = outcome_of(error), kind_of(error)
        if record.outcome == "unreached":
            record.waited_ms = self._took_ms()
        elif record.outcome != "rejected":
            record.took_ms = self._took_ms()

    def _took_ms(self) -> float:
        return (perf_counter() - self._began) * 1000


class CallCounter:
    """Tells `used` of calls, and the `audit` of those that a rule refused. `visible`: what clients see, so what may be
    named."""

    def __init__(self, used: Used, audit: Audit, visible: Visible) -> None:
        self.used = used
        self._audit = audit
        self._visible = visible

    async def count(self, exchange: Exchange, pending: PendingCall, call: Awaitable[bytes]) -> bytes:
        """Await a call of a tool, and tell how it ended. Its `pending` is told what is found out meanwhile."""
        try:
            body = await call
            if not pending.has_ended:
                pending.end(body)
        except NOT_OVER:
            raise
        except (Exception, trio.Cancelled) as error:
            if not pending.has_ended:  # else it has ended well, whatever becomes of its result
                pending.fail(error)
                self._note(pending, error)
            self._tell(exchange, pending)
            raise
        self._tell(exchange, pending)
        return body

    def refuse(self, exchange: Exchange, error: BaseException, given: msgspec.Raw = NO_RAW) -> None:
        """Tell of a call of which nothing can be read but that it is one; `given` are its arguments."""
        pending = PendingCall(exchange, UNKNOWN)
        pending.arguments = given
        pending.fail(error)
        self._tell(exchange, pending)

    def _note(self, pending: PendingCall, error: BaseException) -> None:
        """Take of an error whose server it is about."""
        if isinstance(error, WithheldTool | NotReadOnly):
            error.record(self._audit)
        if isinstance(error, SupervisorError) and error.server and pending.record.server == UNKNOWN:
            seen = self._visible.catalogue
            pending.record.server = seen.names.literal(error.server) or UNKNOWN

    def _tell(self, exchange: Exchange, pending: PendingCall) -> None:
        record, tool = pending.record, exchange.tool
        record.bytes_in = len(pending.arguments)
        if record.tool == UNKNOWN:
            record.named = pending.named[:MAX_NAMED_CHARS]
        self.used(record, CallArguments(pending.arguments, tool.input_schema if tool is not None else msgspec.Raw(b"")))


def outcome_of(error: BaseException) -> CallOutcome:
    """Return how a call ended that raised this: by what its error says of the server, which may have heard of it."""
    if isinstance(error, trio.Cancelled):
        return "cancelled"
    if not isinstance(error, SupervisorError):
        return "error"
    if error.outcome == "not_sent":
        unreached = isinstance(error, UNREACHED) and not isinstance(error, ServerDisabled)
        return "unreached" if unreached else "rejected"
    if isinstance(error, CallTimedOut):
        return "timeout"
    return "unknown" if error.outcome == "unknown" else "error"


def kind_of(error: BaseException) -> str:
    """Return the type of an error; of one that a server gave, its code; of a bug, that of an error of ours."""
    if isinstance(error, RemoteError):
        return str(error.error.code)
    if isinstance(error, trio.Cancelled):
        return ""
    return error.kind if isinstance(error, SupervisorError) else SupervisorError.kind
