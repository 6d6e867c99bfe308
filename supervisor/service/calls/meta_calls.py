"""`tools/call`: the meta-tools, and tools that are called by their own path.

What is wrong with the request itself is an error of the protocol. From there on a call that fails has a result that
says so, because that is what a model is shown; see `failures`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import trio

from actors.catalogue.names import MAX_PATH_CHARS, Unknown, clip
from actors.catalogue.snapshot import Catalogue
from actors.catalogue.views import only
from actors.errors import InvalidArguments, MalformedRequest, SupervisorError
from actors.kit import Latest
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, encode
from actors.search.text import squash
from supervisor.host.workbench import SMALL_BYTES, Workbench, beside
from supervisor.metatools import definitions, execution, inventory, needs, questions
from supervisor.metatools.arguments import Discover, ResourceQuery, discover, list_resources
from supervisor.metatools.discovery import (
    DiscoverySettings,
    Searched,
    build_answer,
    compared,
    cut,
    find_servers,
    likely_server,
    needs_of,
    no_server,
    search,
    weight,
)
from supervisor.metatools.execution import Execute
from supervisor.metatools.lean import MODEL_READS_STRUCTURED, lean
from supervisor.metatools.lenient_json import EMPTY
from supervisor.metatools.lists import resources_page
from supervisor.metatools.page import Context
from supervisor.metatools.servers import standings
from supervisor.metrics.meters import Meters
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import AskedByResult
from supervisor.service.calls import failures
from supervisor.service.calls.counting import BYTES_PER_TOKEN, CallCounter, PendingCall, kind_of, outcome_of, record_of
from supervisor.service.calls.side_by_side import side_by_side
from supervisor.service.calls.tool_calls import ToolCalls
from supervisor.service.client import Client
from supervisor.service.fitting.relay import is_whole
from supervisor.service.introduction import Introduction
from supervisor.service.lookup.visible import ClientView
from supervisor.service.request import NO_META
from supervisor.service.resources import Reading
from supervisor.service.results.keeper import BudgetShare
from supervisor.store import ToolUsage
from supervisor.tracing.context import RequestTrace
from supervisor.usage.merits import preference
from supervisor.usage.records import UNKNOWN, CallArguments

# Searches for tools, measured; none holds up the loop that takes longer than a few milliseconds.

SEARCH_COST: Final = 8
"""A character of a query costs as much as so many bytes that a model wrote."""
AT_ONCE, MAX_WAITING = 2, 256
"""Of searches by meaning: most of one is arithmetic in C, on one processor."""

UsedBy = Callable[[Principal], Mapping[tuple[str, str], ToolUsage]]
"""What one has used, by server and tool."""

Ahead = Callable[[Client, str, ServerStatus], None]
"""Told that a client will probably call a server next, as far as a search says."""

Sample = Callable[[Exchange, Catalogue], Awaitable[None]]
"""Asks the client of a search, which sees this, for what others are to find by later on. Never raises."""


class Searches:
    """Searches at `bench`, and where queries are compared by meaning at a bench of its own.

    `used_by` is asked only where the order of equals depends on it.
    """

    def __init__(
        self,
        bench: Workbench,
        deployment: Latest[Deployment],
        meters: Meters,
        used_by: UsedBy,
        ahead: Ahead,
        sample: Sample | None,
    ) -> None:
        self._bench = bench
        self._by_meaning = Workbench(MAX_WAITING, AT_ONCE)
        self._deployment = deployment
        self._meters = meters
        self._used_by = used_by
        self._ahead = ahead
        self.sample = sample

    def look_ahead(self, done: Sequence[Searched], client: Client, statuses: Mapping[str, ServerStatus]) -> None:
        """Tell `ahead` which servers are probably called next, and how they are doing. At once."""
        for server in dict.fromkeys(likely_server(each.ranking) for each in done):
            if (status := statuses.get(server)) is not None:
                self._ahead(client, server, status)

    async def search(
        self, seen: Catalogue, wanted: Discover, principal: Principal, trace: RequestTrace | None
    ) -> list[Searched]:
        """Search for each need, one after another: it takes its turn among others who search.

        Never on the loop where a query is embedded first, or there are several needs.
        """
        beside = bool(wanted.further)
        return [await self._measured(seen, need, principal, trace, beside=beside) for need in needs_of(wanted)]

    async def _measured(
        self, seen: Catalogue, wanted: Discover, principal: Principal, trace: RequestTrace | None, *, beside: bool
    ) -> Searched:
        end = trace.begin_search() if trace is not None else None
        started, hits = time.perf_counter(), 0
        try:
            done = await self._search(seen, wanted, principal, beside=beside)
            hits = len(done.ranking.hits) or int(done.tool is not None)
        finally:
            if end is not None:
                end(hits)
        self._meters.on_search(time.perf_counter() - started, hits=bool(hits))
        return done

    async def _search(self, seen: Catalogue, wanted: Discover, principal: Principal, *, beside: bool) -> Searched:
        deployment, cost = self._deployment.value, SEARCH_COST * len(wanted.query)
        prefer = preference(seen, self._used_by(principal)) if deployment.settings.rank_by_use else None
        given = seen, wanted, time.perf_counter, deployment.described, prefer
        cost += SMALL_BYTES + 1 if beside or needs.needs(wanted.query) else 0
        if seen.index.embedder is None:
            return await self._bench.run(cost, search, *given)
        return await self._by_meaning.run(cost + SMALL_BYTES + 1, search, *given)


ENVELOPE_COST = 16
"""So many bytes of an envelope cost as much as one that a model wrote: they are passed over."""
PAGE_COST = 8
"""So many bytes of definitions cost as much as a byte that a model wrote."""
_READING = definitions.SCHEMAS.keys() - {definitions.EXECUTE}
"""The meta-tools that call none of a server."""


class _Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = EMPTY
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_META)


_call = msgspec.json.Decoder(_Call)


class _Shown(NamedTuple):
    """A tool result, and the bytes of its text."""

    body: bytes
    text_bytes: int


class MetaCalls:
    """Performs `tools/call`. `own` fits a result that we made to the era of a client.

    `names` are those of the meta-tools, which are understood in any spelling: `discover-mcp-tools`, `executeMcpTool`.
    """

    def __init__(
        self,
        view: ClientView,
        tools: ToolCalls,
        reading: Reading,
        searches: Searches,
        introduction: Introduction,
        deployment: Latest[Deployment],
        own: Callable[[Client, bytes], bytes],
        calls: CallCounter,
        names: Collection[str] = definitions.SCHEMAS,
    ) -> None:
        self._names = names
        self._spelled = {squash(name): name for name in names}
        self._tells_reading = definitions.READ_ONLY in names
        self._own = own
        self._calls = calls
        self._deployment = deployment
        self._introduction = introduction
        self._view = view
        self._visible = view.visible
        self._tools = tools
        self._reading = reading
        self._bench = tools.bench
        self._searches = searches

    async def perform(self, exchange: Exchange) -> bytes:
        """Perform one call. Raises `MalformedRequest`, and what `failures` leaves to the client. A checkpoint."""
        params = exchange.params
        cost = len(params) // ENVELOPE_COST
        try:
            opened = partial(_open, params, self._names)
            call = opened() if cost <= SMALL_BYTES else await self._bench.run(cost, opened)
        except SupervisorError as error:
            self._calls.refuse(exchange, error)
            raise
        try:
            return await self._perform(exchange, call)
        except (SupervisorError, RemoteError) as error:
            if exchange.called in _READING:
                record = record_of(exchange, "", exchange.called, len(call.arguments))
                record.outcome, record.error = outcome_of(error), kind_of(error)
                self._calls.used(record, CallArguments(call.arguments))
            if failures.is_for_client(error):
                raise
            exchange.failed = True
            said = self._failed(error)
        return self._own(exchange.client, said)

    async def _perform(self, exchange: Exchange, call: _Call) -> bytes:
        client, given = exchange.client, call.arguments
        name = call.name if call.name in self._names else self._meant(client, call.name)
        exchange.called = name
        match name:
            case definitions.EXECUTE | definitions.READ_ONLY if name in self._names:
                exchange.only_reads = name == definitions.READ_ONLY
                return await self._execute(exchange, given, call.meta)
            case definitions.DISCOVER:
                shown = await self._show(exchange, name, given, self._discover(exchange, given, call.meta))
                if (sample := self._searches.sample) is not None:
                    await sample(exchange, self._visible.catalogue)
                return self._own(client, shown)
            case definitions.LIST_RESOURCES:
                return self._own(client, await self._show(exchange, name, given, self._list_for_model(client, given)))
            case definitions.READ_RESOURCE:
                return self._own(client, await self._reading.for_model(exchange, given, call.meta))
        direct, pending = execution.Execute(tool_path=clip(name), arguments=given), PendingCall(exchange, UNKNOWN)
        return await self._calls.count(exchange, pending, self._tools.call(exchange, pending, direct, call.meta))

    async def _show(self, exchange: Exchange, name: str, given: msgspec.Raw, answer: Awaitable[_Shown]) -> bytes:
        """Await what a meta-tool shows a model, and tell what that costs."""
        started, (body, text_bytes) = time.perf_counter(), await answer
        record = record_of(exchange, "", name, len(given))
        record.took_ms, record.bytes_out = (time.perf_counter() - started) * 1000, len(body)
        record.tokens_shown = text_bytes // BYTES_PER_TOKEN
        self._calls.used(record, CallArguments(given))
        return body

    async def _execute(self, exchange: Exchange, given: msgspec.Raw, meta: msgspec.Raw) -> bytes:
        """Call a tool, or several side by side."""
        read, cost = execution.asked_calls, len(given)
        try:
            asked = read(given) if cost <= SMALL_BYTES else await self._bench.run(cost, read, given)
        except (Exception, trio.Cancelled) as error:
            if exchange.only_reads and isinstance(error, InvalidArguments):
                # it takes what the other one takes, but that is not what was called
                error.message = error.message.replace(definitions.EXECUTE, exchange.called)
                error.details = {**(error.details or {}), "tool": exchange.called}
            self._calls.refuse(exchange, error, given)
            raise
        if len(asked.calls) == 1:
            try:
                return await self._make(exchange, asked.calls[0], None, meta)
            except AskedByResult as question:
                return self._own(exchange.client, await self._told(exchange, question))

        async def make(part: Exchange, wanted: Execute, share: BudgetShare) -> bytes:
            return await self._make(part, wanted, share, meta)

        head = self._own(exchange.client, b"{}")
        return await side_by_side(exchange, asked, make, self._told, self._failed, self._bench, head)

    def _failed(self, error: SupervisorError | RemoteError) -> bytes:
        return failures.result(error, self._deployment.value.unset(error.server or ""))

    async def _told(self, exchange: Exchange, asked: AskedByResult) -> bytes:
        """Return the result that tells a model what was asked, whose client cannot be asked in any other way."""
        cost = sum(len(each.request.params) for each in asked.questions.values())
        about = (asked.server, asked.questions, asked.state, asked.expires_s, asked.plugin, asked.confirms)
        return await self._bench.finish(cost, questions.question_result, *about, exchange.called)

    async def _make(self, exchange: Exchange, wanted: Execute, share: BudgetShare | None, meta: msgspec.Raw) -> bytes:
        """Call a tool, whose server may ask by a result."""
        pending = PendingCall(exchange, UNKNOWN)
        call = self._tools.call(exchange, pending, wanted, meta, by_result=True, share=share)
        try:
            return await self._calls.count(exchange, pending, call)
        except MalformedRequest as error:
            if wanted.continuation is None:
                raise
            said = error.message.replace("requestState", "continuation")
            raise InvalidArguments(said, outcome=error.outcome) from None

    def _meant(self, client: Client, name: str) -> str:
        """Return the meta-tool that a name is a spelling of, unless it names a server: then it is no other's."""
        own = self._spelled.get(squash(name[:MAX_PATH_CHARS]))
        if own is not None and isinstance(self._visible.catalogue.tool(name), Unknown):
            return own
        return name

    async def _discover(self, exchange: Exchange, arguments: msgspec.Raw, meta: msgspec.Raw) -> _Shown:
        client, configured = exchange.client, self._deployment.value.settings
        settings = msgspec.convert(configured, DiscoverySettings, from_attributes=True)
        most, confirms = settings.discover_limit_max, partial(self._view.confirms, client.principal)
        reads = partial(self._surely_reads, client.principal)
        wanted = cut(await self._bench.run(len(arguments), discover, arguments, most), settings)
        await self._visible.searchable(wanted.kinds)
        seen = await self._visible.wait_for_discovery(configured.first_discovery_wait_s)
        if (confirmed := wanted.requires_confirmation) is not None:
            seen = await beside(partial(only, seen, lambda server, tool: confirms(server, tool) is confirmed))
        done = await self._searches.search(seen, wanted, client.principal, exchange.trace)
        statuses = self._visible.statuses
        servers = self._introduction.servers
        answer = await self._bench.run(
            weight(seen, done) // PAGE_COST,
            partial(build_answer, seen, statuses, done, settings, trio.current_time(), servers, confirms, reads),
        )
        if is_whole(meta) and (told := compared(seen, done)) is not None:  # no model pays for it
            answer["compared"] = {**told, "rerank": configured.rerank}
        has_structured = configured.discover_structured != "never" and (
            configured.discover_structured == "always" or client.name not in MODEL_READS_STRUCTURED
        )
        text = lean(answer) if client.name else answer  # who does not say who it is asks by hand, or from a script
        shown = _content(text, answer if has_structured else None)
        self._searches.look_ahead(done, client, statuses)
        return shown

    async def _list_for_model(self, client: Client, arguments: msgspec.Raw) -> _Shown:
        asked = await self._bench.run(len(arguments), list_resources, arguments)
        seen = self._visible.catalogue
        heavy = inventory.weight(seen, "resources", "templates")
        return await self._bench.run(heavy, self._resources, seen, self._visible.statuses, asked)

    def _surely_reads(self, principal: Principal, server: str, tool: str) -> bool:
        return self._tells_reading and self._view.doubt(principal, server, tool) is None

    def _resources(self, seen: Catalogue, statuses: Mapping[str, ServerStatus], asked: ResourceQuery) -> _Shown:
        named, unknown = find_servers(seen, asked.servers)
        told = standings(named - seen.visible, statuses)
        remark = no_server(seen, unknown) if unknown else f"{told}; tell the user." if told else ""
        servers = seen.visible & named if asked.servers else seen.visible
        budget = self._deployment.value.settings.discover_token_budget
        context = Context(seen=seen, statuses=statuses, budget=budget, now=trio.current_time())
        answer = resources_page(context, asked, servers, remark)
        return _content(answer, answer)


def _open(params: msgspec.Raw, names: Collection[str]) -> _Call:
    try:
        return json.read(_call, params)
    except json.UnreadableJson:
        text = "tools/call: params need a 'name' and may have 'arguments'"
        raise MalformedRequest(text, details={"tools": list(names)}) from None


def _content(text: dict[str, Any], structured: dict[str, Any] | None) -> _Shown:
    """Return a tool result that carries an object as text, and one as structured content."""
    said = encode(text)
    content = b'{"content":[{"type":"text","text":' + encode(said.decode()) + b"}]"
    more = b"" if structured is None else b',"structuredContent":' + encode(structured)
    return _Shown(content + more + b"}", len(said))
