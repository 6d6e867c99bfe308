"""Subscriptions of clients to resources of servers: the first asks the server, the last one to leave tells it so.

- The server's own answer to the first is what that client gets; who comes later gets its result at once.
- A server that is asleep is woken to be asked. While anybody is subscribed it is not put to sleep for being idle.
- A new process is asked again by its actor, see `actors/server/parts/discovery.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import trio

from actors.catalogue.offer import Offer
from actors.errors import ActorStopped, InvalidArguments, MailboxFull, UnknownMethod
from actors.kit import Address
from actors.launch import server_of
from actors.messages import CallServer
from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.changes import EVENTS_CHANGED, MAX_URI_CHARS, SUBSCRIBE, UNSUBSCRIBE, subscribable
from actors.protocol.wire.jsonrpc import encode
from actors.router import Message as RouterMessage
from actors.subscribers import Subscribers
from supervisor.host.workbench import Workbench
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Updates
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.visible import Visible
from supervisor.service.request import NO_META, ServerRequest, named_params


class Subscriptions:
    """What all doors share of them, by launch.

    A name is what the client calls a resource, its URI what its server does.
    """

    def __init__(
        self,
        subscribers: Subscribers,
        router: Address[RouterMessage],
        forward: Forwarder,
        visible: Visible,
        bench: Workbench,
        launches: LaunchNames,
    ) -> None:
        self._launches = launches
        self._bench = bench
        self._subscribers = subscribers
        self._router = router
        self._forward = forward
        self._visible = visible
        self._held: set[tuple[str, str]] = set()
        self._leaving: dict[tuple[str, str], trio.Event] = {}

    async def perform(self, exchange: Exchange, subscribe: Callable[[Exchange, str], Awaitable[None]]) -> bytes:
        """Perform `resources/subscribe` or `resources/unsubscribe` of a session; return the result.

        `subscribe` begins a subscription to what has that name. Raises what it raises, and `InvalidArguments`.
        """
        _, name = await named_params(self._bench, exchange, "uri")
        updates = _updates_of(exchange)
        if exchange.method == UNSUBSCRIBE:
            updates.release(name)
        else:
            await subscribe(exchange, name)
        return b"{}"

    async def add(self, exchange: Exchange, name: str, server: str, uri: str, offer: Offer | None) -> None:
        """Subscribe a client to a resource of a server that has this offer, if it is known.

        Raises `SupervisorError`, and `RemoteError` with what the server says. A checkpoint, unless it is already.
        """
        if offer is not None and not subscribable(offer.capabilities, uri):
            what = "changes of its event types" if uri == EVENTS_CHANGED else "subscriptions to resources"
            raise UnknownMethod(f"server {server!r} does not offer {what}")
        updates = _updates_of(exchange)
        if len(uri) > MAX_URI_CHARS:
            raise InvalidArguments(f"a URI of {len(uri)} characters; {MAX_URI_CHARS} are the most")
        if name in updates:
            return
        tell, principal = partial(updates.note, name), exchange.client.principal
        launch = self._launches.of(server, principal)
        updates.hold(name, partial(self._release, principal, launch, uri, tell))
        try:
            self._subscribers.add(launch, uri, tell, exchange.client.program)
            await self._ask(exchange, server, launch, uri, offer.era if offer is not None else None)
        except BaseException:
            updates.release(name)
            raise
        if name in updates:
            updates.used = True
            self._held.add((launch, uri))
        else:  # the session ended meanwhile
            self._leave(principal, launch, uri)

    async def _ask(self, exchange: Exchange, server: str, launch: str, uri: str, era: Era | None) -> None:
        since = trio.current_time()
        if (leaving := self._leaving.get((launch, uri))) is not None:
            await leaving.wait()  # over HTTP the two would overtake one another
        if (launch, uri) in self._held and self._visible.is_awake(launch):
            return
        members = _members(uri)
        await self._forward.ask(
            exchange, ServerRequest(server, SUBSCRIBE, members, NO_META, name=uri, uri=uri, since=since, written=era)
        )

    def _release(self, principal: Principal, launch: str, uri: str, tell: Callable[[], None]) -> None:
        if self._subscribers.remove(launch, uri, tell) and (launch, uri) in self._held:
            self._held.discard((launch, uri))
            self._leave(principal, launch, uri)

    def _leave(self, principal: Principal, launch: str, uri: str) -> None:
        """Tell a server that nobody wants to hear of a resource any more. One that sleeps knows nothing of it."""
        if uri in self._subscribers.uris(launch) or not self._visible.is_awake(launch):
            return
        message = CallServer(
            server=launch,
            method=UNSUBSCRIBE,
            members=_members(uri),
            name=uri,
            deadline_s=self._forward.timeout_s(server_of(launch)),
            principal=principal,
        )
        with suppress(MailboxFull, ActorStopped):  # then it goes on telling, and nobody hears it
            reply = self._router.request(message)
            key, left = (launch, uri), trio.Event()
            self._leaving[key] = left
            reply.on_settled(partial(self._on_leave, key, left))

    def _on_leave(self, key: tuple[str, str], left: trio.Event) -> None:
        left.set()
        if self._leaving.get(key) is left:
            del self._leaving[key]


def _members(uri: str) -> bytes:
    return b'"uri":' + encode(uri)


def _updates_of(exchange: Exchange) -> Updates:
    if exchange.session.updates is None:
        raise UnknownMethod(f"{exchange.method} needs a session: without one there is nobody to tell of changes")
    return exchange.session.updates
