"""From the front to a server and back: one request, with what may travel, its result fitted to the client's era."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import trio

from actors.catalogue.marks import digest
from actors.catalogue.metadata import seems_to_read
from actors.errors import InvalidArguments, MalformedRequest, ProtocolViolation, SupervisorError, forget_frames
from actors.kit import Latest
from actors.messages import CallServer, CallTrace, Result
from actors.protocol.agreement.capabilities import STREAM
from actors.protocol.tasks import RESULT
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.host.workbench import SMALL_BYTES, Workbench
from supervisor.metatools.lenient_json import plain
from supervisor.metrics.families import error_label
from supervisor.metrics.meters import Meters
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.asking.elicitations import CallElicitations, Elicitations
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.round_trips import RoundTrips
from supervisor.service.asking.rounds import AskedByResult, CapabilityRequired, InputNeeded
from supervisor.service.client import Client
from supervisor.service.fitting.relay import (
    as_tool_result,
    fit,
    passes,
    state_told_in_meta,
    state_told_to_model,
    translate_error,
    travelling_meta,
)
from supervisor.service.fitting.results import NO_DEFINITION, Shown, fit_result, may_not_fit
from supervisor.service.plugins import CallHooks
from supervisor.service.request import ServerRequest
from supervisor.service.tasks import HeldTasks, TaskVoice
from supervisor.tracing.context import RequestTrace

MAX_META_BYTES = 65_536
MAX_ERROR_BYTES = 1_048_576
"""Of the text and of the data of a server's error; data over that is left out."""
CHECKED_COST = 64
"""So many bytes of members cost as much, to be looked at, as one that a model wrote."""
NOT_OVER = (AskedByResult, CapabilityRequired, InputNeeded)
"""What is raised for an answer of a server that is no error."""
FITTED_COST, REWRITTEN_COST = 64, 8
"""So many bytes of a result cost as much as one that a model wrote; the second where its client cannot take it so."""


class Forwarder:
    """Asks servers, by `round_trips`. Deadlines, and what hides secrets of servers, are those of the deployment."""

    def __init__(
        self,
        round_trips: RoundTrips,
        deployment: Latest[Deployment],
        bench: Workbench,
        tasks: HeldTasks,
        elicitations: Elicitations,
        launches: LaunchNames,
        hooks: CallHooks,
        meters: Meters,
    ) -> None:
        self._meters = meters
        self._hooks = hooks
        self._launches = launches
        self._bench = bench
        self._tasks = tasks
        self._elicitations = elicitations
        self._round_trips = round_trips
        self._deployment = deployment

    def timeout_s(self, server: str) -> float:
        return self._deployment.value.rules_of(server).timeout_s

    async def ask(self, exchange: Exchange, request: ServerRequest, *, past_plugins: bool = False) -> bytes:
        """Send one request to a server and return its result, fitted to its client; calls of tools by way of plugins.

        Raises `SupervisorError`, `RemoteError` in the codes of the client's era, `InputNeeded` for a client that is to
        answer something first, and `AskedByResult` where the server may ask by the result. A checkpoint.
        """
        if request.method == "tools/call" and not past_plugins and self._hooks.passes(exchange):
            return await self._hooks.call(exchange, request, partial(self.ask, exchange, past_plugins=True))
        client = exchange.client
        if request.as_task and not self._tasks.admits(client):
            if client.era == "legacy":  # it asked for a task; of a modern one any call may become one, and need not
                raise self._tasks.refusal(client)
            request = msgspec.structs.replace(request, as_task=False)
        if len(request.members) + len(request.meta) > json.MAX_INT_DIGITS:  # less holds nothing that `check` refuses
            await self._bench.run(len(request.members) // CHECKED_COST, check, request.members, request.meta)
        message = self._message(exchange, request)
        refused: RemoteError | None = None
        exchange.forwarded, began = True, perf_counter()
        try:
            result: Result = await self._round_trips.result(exchange, message, by_result=request.by_result)
        except RemoteError as error:
            self._tell_error(exchange, message, perf_counter() - began, error)
            refused = within_limits(error)
        except CapabilityRequired as lacking:
            self._tell_error(exchange, message, perf_counter() - began, lacking)
            if request.written is not None:  # whoever speaks to this server acts on it
                raise
            result = lacking.result  # a model is shown what the server said
        except BaseException as error:
            self._tell_error(exchange, message, perf_counter() - began, error)
            raise
        else:
            exchange.waited_s = waited_s = result.waited_s
            self._tell(exchange, message, perf_counter() - began - waited_s)
            if waited_s:
                self._meters.on_wait(waited_s, woke=result.woke)
        if refused is not None:
            forget_frames(refused)
            result = await self._error_result(client, request, refused)
        if (
            request.as_task
            and result.era == client.era
            and (created := self._tasks.take_created(client, request.server, result))
        ):
            return created
        body = await self._answer(client, request, result)
        if not result.lost:
            return body
        told = state_told_to_model if request.by_result else state_told_in_meta
        return await self._bench.finish(len(body) // FITTED_COST, told, body, request.server, result.lost)

    def _tell_error(self, exchange: Exchange, message: CallServer, seconds: float, error: BaseException) -> None:
        """Tell of a request that ended with an error, if its server may have heard of it."""
        if isinstance(error, NOT_OVER):  # the server has answered, and asks something
            self._tell(exchange, message, seconds)
        elif isinstance(error, RemoteError):
            self._tell(exchange, message, seconds - error.waited_s, error_label(error), error.error.code)
        else:
            heard = not (isinstance(error, SupervisorError) and error.outcome == "not_sent")
            self._tell(exchange, message, seconds, error_label(error), heard=heard)

    def _tell(
        self,
        exchange: Exchange,
        message: CallServer,
        seconds: float,
        label: str = "",
        code: int = 0,
        *,
        heard: bool = True,
    ) -> None:
        """Tell of a request that is over; `heard`: its server may have heard of it."""
        if message.trace is not None:
            message.trace.end(label, code)
        if heard:
            trace_id = exchange.trace.trace_id if exchange.trace is not None else ""
            transport = "tcp" if self._deployment.value.is_remote(message.server) else "pipe"
            seconds = seconds if seconds > 0 else 0.0
            self._meters.on_answer(message.server, message.method, transport, seconds, label, trace_id)

    def _message(self, exchange: Exchange, request: ServerRequest) -> CallServer:
        client, rules, task = exchange.client, self._deployment.value.rules_of(request.server), request.task
        trace = exchange.trace
        everyone = rules.asks_everyone
        exchange.asked_by = request.server if request.labelled else ""
        exchange.elicitations = CallElicitations(
            self._elicitations,
            request.server,
            request.name,
            rules.question_timeout_s,
            everyone,
            client,
            tool=request.tool_name,
        )
        by = request.since + (rules.max_s if request.method == RESULT else rules.timeout_s)
        return CallServer(
            server=request.server,
            method=request.method,
            members=request.members,
            meta=travelling_meta(request.meta) if len(request.meta) > len(b"{}") else b"",
            name=request.name,
            interest=exchange.interest(request.meta, asked=rules.asks, everyone=everyone),
            exchange=exchange if task is None else TaskVoice(exchange, task),
            definition=digest(exchange.tool) if exchange.only_reads and exchange.tool is not None else b"",
            as_task=request.as_task,
            in_turn=exchange.asks_later and exchange.tool is not None and not seems_to_read(exchange.tool),
            by_requests=client.era == "legacy" and not (request.by_result and everyone),
            run=task.run if task is not None else "",
            trace=self._begin_trace(trace, request) if trace is not None else None,
            lasts=request.method == STREAM,
            deadline_s=max(0.0, by - trio.current_time()),
            principal=client.principal,
        )

    def _begin_trace(self, trace: RequestTrace, request: ServerRequest) -> CallTrace:
        remote = self._deployment.value.is_remote(request.server)
        return trace.begin_call(request.server, request.method, request.name, remote=remote)

    async def _error_result(self, client: Client, request: ServerRequest, refused: RemoteError) -> Result:
        """Return an error of a server as the result that its client takes it for. Raises it where that is an error."""
        written, hide = request.written, self._launches.mask(request.server, client.principal)
        error = await self._bench.finish(len(refused.error.data), mask_error, refused, hide)
        if written is not None and passes(error.error, client.era, written, client.capabilities):
            raise RemoteError(error.error, request.server)
        failed = as_tool_result(error, request.method)
        if failed is None:
            said = translate_error(error, request.method, client.era, request.uri, written).error
            raise RemoteError(said, request.server)
        return failed

    async def _answer(self, client: Client, request: ServerRequest, result: Result) -> bytes:
        definition = request.tool.definition if request.tool is not None else NO_DEFINITION
        shown, era, server = (
            Shown(request.method, client.version, definition),
            request.era or client.era,
            request.server,
        )
        small = len(result.body) <= REWRITTEN_COST * SMALL_BYTES
        try:
            if small or (cost := fitting_cost(result.body, shown)) <= SMALL_BYTES:
                return fit_result(fit(result, era, server), shown)
            return await self._bench.finish(cost, lambda: fit_result(fit(result, era, server), shown))
        except json.UnreadableJson:
            text = f"server {server!r} answered with a result that is nested too deeply to be passed on"
            raise ProtocolViolation(text, server=server, outcome="completed") from None


def check(members: bytes, meta: msgspec.Raw) -> None:
    """Raise `MalformedRequest` or `InvalidArguments` for what no server should get."""
    if len(meta) > MAX_META_BYTES:
        raise MalformedRequest(f"'_meta' has {len(meta)} bytes, {MAX_META_BYTES} are the most")
    if json.has_endless_integer(members):
        raise InvalidArguments("an integer of over 4,300 digits: no server can be expected to read it; send it as text")


def within_limits(error: RemoteError) -> RemoteError:
    """Return a server's error as it is, but for data, and the end of a text, with which hardly any client can do."""
    said = error.error
    passes = len(said.data) <= MAX_ERROR_BYTES and not json.has_endless_integer(bytes(said.data))
    if passes and len(said.message) <= MAX_ERROR_BYTES:
        return error
    data = said.data if passes else msgspec.Raw(b"")
    return RemoteError(ErrorObject(said.code, said.message[:MAX_ERROR_BYTES], data))


def mask_error(error: RemoteError, hide: Callable[[str], str]) -> RemoteError:
    """Return a server's error without its secrets: errors, unlike results, are shown and logged everywhere."""
    said = error.error
    message, before = hide(said.message), bytes(said.data).decode(errors="replace")
    after = hide(before)
    if message == said.message and after == before:
        return error
    if not json.is_json(after.encode()):  # the secret was no text in it, or there was none
        after = _masked_value(said.data, hide)
    return RemoteError(ErrorObject(said.code, message, msgspec.Raw(after.encode())))


def _masked_value(data: msgspec.Raw, hide: Callable[[str], str]) -> str:
    """Return JSON with its secrets hidden value by value; nothing for what is too large for that."""

    def masked_in(value: Any) -> Any:
        if isinstance(value, dict):
            return {hide(key): masked_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [masked_in(item) for item in value]
        text = value if isinstance(value, str) else str(value)
        shown = hide(text)
        return value if shown == text else shown

    value = plain(data)
    try:
        return "" if value is None else msgspec.json.encode(masked_in(value)).decode()
    except RecursionError:
        return ""


def fitting_cost(body: msgspec.Raw, to: Shown) -> int:
    """Return what it costs to fit a large result to its client, in bytes that a model wrote."""
    cost = len(body) // FITTED_COST
    rewritten = cost <= SMALL_BYTES and may_not_fit(bytes(body), to)
    return len(body) // REWRITTEN_COST if rewritten else cost
