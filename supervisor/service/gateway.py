"""The service behind the front: the methods of MCP over the catalogue and the router.

Each answer is fitted to the era of the client that asked. Calls are passed through as bytes; only the envelope and the
name of the tool are read on the way.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import msgspec
import trio

from actors.catalogue.metadata import Traits
from actors.catalogue.offer import Item
from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments, UnknownMethod
from actors.kit import Address, Latest, Shares
from actors.messages import ServerStatus
from actors.principal import Principal
from actors.protocol.changes import EVENTS_CHANGED, OF_RESOURCES
from actors.protocol.listing import LISTED_BY, MEMBERS
from actors.protocol.wire.jsonrpc import encode
from actors.protocol.wire.mirrors import Mirror
from actors.router import Message as RouterMessage
from actors.subscribers import Subscribers
from supervisor.fleet.peers import DaemonLife
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.metatools import definitions, inventory
from supervisor.metrics.meters import Meters
from supervisor.plugins.hooks import PluginTable
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchNames
from supervisor.servers.safety import SafetyRules
from supervisor.service.asking.confirmations import Confirmations, Consents
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.round_trips import RoundTrips
from supervisor.service.asking.rounds import Parking
from supervisor.service.calls.counting import CallCounter, record_of
from supervisor.service.calls.meta_calls import Ahead, MetaCalls, Sample, Searches, UsedBy
from supervisor.service.calls.tool_calls import ToolCalls
from supervisor.service.client import Client
from supervisor.service.events.journal import Journal
from supervisor.service.events.limits import MAX_STREAMS
from supervisor.service.events.of_servers import ResourceUpdates, ServerEvents
from supervisor.service.events.requests import EventRequests, Webhooks
from supervisor.service.events.sources import Source, Viewpoint
from supervisor.service.events.topics import Topics
from supervisor.service.forward import Forwarder
from supervisor.service.introduction import FINDS, HOW, HOW_BY_EFFECT, Introduction, SelfDescription
from supervisor.service.lookup.lookup import Lookup, Naming
from supervisor.service.lookup.visible import ClientView, Visible
from supervisor.service.plugins import CallHooks, PluginQuestions
from supervisor.service.port import Revisions
from supervisor.service.request import unknown_method
from supervisor.service.resources import Reading
from supervisor.service.results.keeper import KeptResults
from supervisor.service.subscriptions import Subscriptions
from supervisor.service.tasks import HeldTasks
from supervisor.tokens.counting import META_TOKENS, META_TOKENS_BY_EFFECT
from supervisor.usage.records import Used

Handler = Callable[[Exchange], Awaitable[bytes]]
Define = Callable[[str, Item], dict[str, Any]]


class ServiceParts:
    """The parts that all doors share.

    `used` is told of each call that ended, `ahead` which server is probably called next; `subscribers` are those whom
    the servers' actors tell of changed resources; `key` seals the names of parked calls and tasks; `parking.run` has to
    run somewhere. `launches` say which launch a server's name means. `meters` count what is done. `sources` have events
    beside those of servers. `sample` asks the client of a search for sentences.
    """

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        statuses: Latest[Mapping[str, ServerStatus]],
        deployment: Latest[Deployment],
        *,
        used: Used,
        ahead: Ahead,
        subscribers: Subscribers,
        key: bytes,
        life: DaemonLife | None = None,
        elicitations: Elicitations,
        launches: LaunchNames | None = None,
        audit: Audit = NO_AUDIT,
        consents: Consents | None = None,
        plugins: PluginTable | None = None,
        meters: Meters | None = None,
        used_by: UsedBy = lambda principal: {},
        journal: Journal | None = None,
        sources: Sequence[Source] = (),
        sample: Sample | None = None,
    ) -> None:
        meters = meters or Meters()
        self.router = router
        self.launches = launches or LaunchNames(lambda launch: deployment.value.mask(launch))
        self.catalogue = catalogue
        self.deployment = deployment
        self.bench = Workbench()
        self.statuses = statuses
        self.searches = Searches(self.bench, deployment, meters, used_by, ahead, sample)
        self.safety = safety = SafetyRules(deployment, catalogue)
        self.view = ClientView.of(Visible(catalogue, statuses, deployment), router, safety)
        self.used = used
        self.audit = audit
        self.parking = Parking(key, life)
        self.results = KeptResults(deployment, self.bench, life)
        self.tasks = HeldTasks(deployment, key, life)
        confirmations = Confirmations(self.parking, self.bench, audit, consents or Consents(time.time))
        round_trips = RoundTrips(router, deployment, safety, self.bench, self.parking, self.launches, confirmations)
        asking = PluginQuestions(self.parking, deployment, elicitations, self.bench)

        def traits_of(principal: Principal, server: str, tool: str) -> Traits:
            return safety.traits(self.launches.of(server, principal), tool)

        self.plugin_table = plugins or PluginTable()
        hooks = CallHooks(self.plugin_table, deployment, self.bench, audit, asking, traits_of)
        self.forward = Forwarder(
            round_trips, deployment, self.bench, self.tasks, elicitations, self.launches, hooks, meters
        )
        self.subscriptions = Subscriptions(
            subscribers, router, self.forward, self.view.visible, self.bench, self.launches
        )
        kept = journal or Journal(time.time)
        of_servers = ServerEvents(router, catalogue, self.launches, self.forward.timeout_s, self.bench)
        resources = ResourceUpdates(self.subscriptions, catalogue, self.launches, self.forward, kept.clock)
        self.topics = Topics((of_servers, resources, *sources), kept)
        self.event_streams = Shares(MAX_STREAMS)
        self.webhooks: Webhooks | None = None

    def counter(self, view: ClientView) -> CallCounter:
        """Return what tells of calls by those who see this."""
        return CallCounter(self.used, self.audit, view.visible)


class ManyServers(ABC):
    """A door with many servers behind it: it speaks for itself, lists what can be seen, and knows its `methods`.

    `naming` says what its names mean.
    """

    MAX_PAGE_BYTES = inventory.MAX_BYTES

    def __init__(
        self,
        parts: ServiceParts,
        view: ClientView,
        of_ours: SelfDescription,
        naming: Naming,
        methods: Mapping[str, Handler],
    ) -> None:
        self.changes = view.visible.changes
        self.parts = parts
        self.view = view
        self._of_ours = of_ours
        self._naming = naming
        ours = {**dict.fromkeys(LISTED_BY, self._list), **dict.fromkeys(OF_RESOURCES, self._subscribe)}
        self._events = EventRequests(
            parts.topics,
            view.visible,
            of_ours.fit,
            parts.event_streams,
            parts.webhooks,
            parts.bench,
            self._arrive,
            self._discovery_s,
        )
        self._methods = {**ours, **self._events.methods, **methods}

    def has_events(self, principal: Principal) -> bool:
        """Say whether somebody sees any event type."""
        return self.parts.topics.has_types(Viewpoint(principal, self.view.visible))

    def _discovery_s(self) -> float:
        """Return how long a list of event types waits for servers that are new."""
        return self.parts.deployment.value.settings.first_discovery_wait_s

    def _tells(self) -> bool:
        """Say whether clients are told of changed lists here."""
        return True

    async def _arrive(self, server: str, principal: Principal, since: float) -> None:
        await self.view.arrival.of(server, principal, since + self.parts.forward.timeout_s(server))

    @property
    def revisions(self) -> Revisions:
        return self.view.visible.catalogue.revisions

    async def perform(self, exchange: Exchange) -> bytes:
        """Perform one request; see `Service.perform`. Each is a task of its own, which is all the fairness it needs."""
        if (handler := self._methods.get(exchange.method)) is not None:
            return await handler(exchange)
        if (said := self._of_ours.answer(exchange.client, exchange.method)) is not None:
            return said
        raise unknown_method(exchange)

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        """Subscribe a client to the resource that `name` means here. Raises what `Naming.resource` does."""
        if name == EVENTS_CHANGED:
            if not self._tells():
                raise UnknownMethod("clients are not told of changes of lists here")
            self._events.watch(exchange, self.changes)
            return
        client = exchange.client
        server, own = await self._naming.resource(client, name, trio.current_time())
        entry = self.view.visible.catalogue.entries.get(server)
        offer = entry.offer if entry is not None else None
        await self.parts.subscriptions.add(exchange, name, server, own, offer)

    async def _subscribe(self, exchange: Exchange) -> bytes:
        return await self.parts.subscriptions.perform(exchange, self.subscribe)

    async def _list(self, exchange: Exchange) -> bytes:
        client, kind = exchange.client, LISTED_BY[exchange.method]
        seen, define = await self._view(client)
        cursor, weight = inventory.cursor_of(exchange.params), inventory.weight(seen, kind)
        page, following = await self.parts.bench.run(
            weight, inventory.native_page, seen, kind, cursor, define, self.MAX_PAGE_BYTES
        )
        more = {} if following is None else {"nextCursor": following}
        body = await self.parts.bench.run(weight, encode, {MEMBERS[kind]: page, **more})
        return self._of_ours.fit(client, body, cacheable=True)

    @abstractmethod
    async def _view(self, client: Client) -> tuple[Catalogue, Define]:
        """Return what a client sees in lists, and how it is defined there."""


class MetaTools(msgspec.Struct, frozen=True, eq=False):
    """Those at one address, what they cost (cl100k), and what a model is told of how they are used."""

    definitions: Sequence[dict[str, Any]]
    tokens: int
    how: str


FOUR: Final = MetaTools(definitions.DEFINITIONS, META_TOKENS, HOW)
BY_EFFECT: Final = MetaTools(definitions.BY_EFFECT, META_TOKENS_BY_EFFECT, HOW_BY_EFFECT)
"""Where reading is apart from acting."""


@cache
def _listed(ours: MetaTools, *, hints: bool, bounded: bool) -> bytes:
    """Return the list of the meta-tools; see `definitions.hinted`."""
    return encode({"tools": definitions.hinted(ours.definitions, bounded=bounded) if hints else ours.definitions})


class Gateway(ManyServers):
    """Implements `supervisor.service.port.Service`: the door of the meta-tools.

    As long as it runs, what `introduction` says is kept up to date, and results that nobody reads are forgotten.
    """

    def __init__(self, parts: ServiceParts, view: ClientView, version: str, ours: MetaTools = FOUR) -> None:
        visible, lookup = view.visible, Lookup(view, parts.forward)
        tools = ToolCalls(view, parts.forward, lookup, parts.bench, parts.results)
        reading = Reading(visible, parts.forward, parts.bench, lookup, results=parts.results)
        self.introduction = introduction = Introduction(visible, parts.deployment, ours.how)
        of_ours = SelfDescription(visible, version, FINDS, introduction.text, self._tells, self.has_events)
        self._calls = calls = parts.counter(view)
        meta_calls = MetaCalls(
            view,
            tools,
            reading,
            parts.searches,
            introduction,
            parts.deployment,
            of_ours.fit,
            calls,
            [each["name"] for each in ours.definitions],
        )
        methods = {**reading.methods, "tools/list": self._list_tools, "tools/call": meta_calls.perform}
        super().__init__(parts, view, of_ours, lookup, methods)
        self._ours = ours

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.introduction.run)
            nursery.start_soon(self.parts.results.run)

    @property
    def revisions(self) -> Revisions:
        """Those of what is seen now; constant if the operator switched these notifications off."""
        return super().revisions if self._tells() else Revisions()

    def _tells(self) -> bool:
        return self.parts.deployment.value.settings.notify_catalogue_changes

    async def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        """Return none: the schemas of the meta-tools mark nothing."""
        del tool
        return ()

    async def _list_tools(self, exchange: Exchange) -> bytes:
        if inventory.cursor_of(exchange.params) is not None:
            raise InvalidArguments("'cursor' is not one that this list gave")
        record = record_of(exchange, "", exchange.method)
        record.tokens_shown = shown = self._ours.tokens
        record.tokens_saved = self.view.visible.catalogue.tokens - shown
        self._calls.used(record)
        settings = self.parts.deployment.value.settings
        hints = settings.client_hints and exchange.client.version >= definitions.META_SINCE
        listed = _listed(self._ours, hints=hints, bounded=settings.result_token_budget is not None)
        return self._of_ours.fit(exchange.client, listed, cacheable=True)

    async def _view(self, client: Client) -> tuple[Catalogue, Define]:
        seen = self.view.visible.catalogue
        return seen, partial(inventory.native_definition, seen)
