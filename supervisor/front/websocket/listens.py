"""What the client of one WebSocket is told of changes: by `subscriptions/listen`, or as a legacy client, unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import trio

from actors import codes
from actors.errors import InvalidArguments, TooManyCalls
from actors.principal import Principal
from actors.protocol.wire import jsonrpc
from supervisor.front.mcp.envelope import Key
from supervisor.front.mcp.listen import (
    KINDS,
    Change,
    ChangePace,
    Kind,
    Subscription,
    Watch,
    read_subscription,
    subscribe_all,
    told_of,
)
from supervisor.front.mcp.messages import Request
from supervisor.front.websocket.outgoing import OutgoingQueue
from supervisor.front.websocket.settings import WebSocketSettings
from supervisor.service.asking.exchange import Exchange, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.port import Service, failure

SHUTDOWN_REASON: Final = "the daemon is shutting down"


class _Listen(msgspec.Struct, eq=False):
    """An open `subscriptions/listen`."""

    subscription: Subscription
    scope: trio.CancelScope


class Listens:
    """The subscriptions of one connection; each is followed by a task of its nursery."""

    def __init__(
        self, service: Service, settings: WebSocketSettings, outgoing: OutgoingQueue, nursery: trio.Nursery
    ) -> None:
        self._service = service
        self._settings = settings
        self._outgoing = outgoing
        self._nursery = nursery
        self._open: dict[Key, _Listen] = {}

    def open(self, request: Request, client: Client) -> bytes | None:
        """Begin a subscription; return the answer to its request if it is over already."""
        try:
            subscription = read_subscription(request.id, request.params)
        except (InvalidArguments, TooManyCalls) as error:
            return failure(request.id, error).body
        if request.key in self._open:
            return jsonrpc.failure(request.id, codes.INVALID_REQUEST, "a listen with this id is open")
        if len(self._open) >= self._settings.max_listens:
            text = f"the limit of {self._settings.max_listens} open subscriptions on one connection is reached"
            return failure(request.id, TooManyCalls(text)).body
        listen = _Listen(subscription, trio.CancelScope())
        if subscription.uris:
            self._open[request.key] = listen
            self._nursery.start_soon(self._subscribe, listen, request, client)
            return None
        self._outgoing.put(subscription.acknowledge())
        if not subscription.kinds:
            return subscription.result()
        self._open[request.key] = listen
        watch = self._watch(client.principal, subscription.kinds, Updates())
        self._nursery.start_soon(self._follow_listen, listen, watch)
        return None

    async def _subscribe(self, listen: _Listen, request: Request, client: Client) -> None:
        """Subscribe to resources, and acknowledge those that are told of; what changes meanwhile is told afterwards."""
        subscription, updates = listen.subscription, Updates()
        exchange = Exchange(client, request.id, request.method, request.params, session=SessionState(updates=updates))
        watch = self._watch(client.principal, subscription.kinds, updates)
        try:
            with listen.scope:
                uris = await subscribe_all(self._service, exchange, subscription.uris)
                await self._outgoing.send(subscription.acknowledge(uris))
                if uris or subscription.kinds:
                    await self._follow(watch, subscription.notification)
                self._open.pop(request.key, None)
                await self._outgoing.send(subscription.result())
        finally:
            updates.end()

    def cancel(self, key: Key) -> None:
        if key in self._open:
            self._open.pop(key).scope.cancel()

    def end(self) -> None:
        for listen in self._open.values():
            listen.scope.cancel()
            self._outgoing.put(listen.subscription.result())
            self._outgoing.put(listen.subscription.cancellation(SHUTDOWN_REASON))

    def follow_all(self, principal: Principal, updates: Updates) -> None:
        """Tell a legacy client of every change of lists, and of the resources that it is subscribed to."""
        self._nursery.start_soon(self._follow, self._watch(principal, KINDS, updates), told_of)

    def _watch(self, principal: Principal, kinds: tuple[Kind, ...], updates: Updates) -> Watch:
        return Watch(
            self._service,
            principal,
            kinds,
            updates=updates,
            pace=ChangePace(self._settings.list_changed_min_interval_s),
        )

    async def _follow_listen(self, listen: _Listen, watch: Watch) -> None:
        with listen.scope:
            await self._follow(watch, listen.subscription.notification)

    async def _follow(self, watch: Watch, notification: Callable[[Change], bytes]) -> None:
        while True:
            for change in await watch.next():
                await self._outgoing.tell(notification(change))
