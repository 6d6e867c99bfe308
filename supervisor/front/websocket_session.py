"""One WebSocket connection as MCP sees it: requests in flight, the legacy session, the listens.

Rules of this file:
- `receive` is a plain function: it never waits, so a slow request cannot hold up the cancellation behind it. Whatever
  waits is a task of the connection's nursery and ends with it, in both eras (the connection *is* the session).
- A request is registered before its task runs: a cancellation in the very next message finds it.
- Both eras may be spoken on one connection; only `initialize` makes state.
- Only answers queue. A change notification waits until the queue is empty and then tells the newest state.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import trio

from actors.errors import InvalidArguments, ShuttingDown, TooManyCalls
from actors.protocol import jsonrpc
from actors.protocol.versions import LATEST_LEGACY, LEGACY_VERSIONS, META_VERSION
from supervisor.front import websocket_rules as rules
from supervisor.front.classify import MAX_CLIENT_NAME_CHARS
from supervisor.front.listen import KINDS, Kind, Subscription, Watch, list_changed, read_subscription
from supervisor.front.params import read_cancelled, read_initialize
from supervisor.front.service import LOCAL, Client, Service, answer, failure
from supervisor.front.verdict import Key

SHUTDOWN_REASON = "the daemon is shutting down"


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection. The daemon fills it from the configuration."""

    max_message_bytes: int = 1024 * 1024
    max_in_flight: int = 64
    max_listens: int = 32
    max_queued_messages: int = 256
    max_queued_bytes: int = 1024 * 1024
    list_changed_min_interval_s: float = 1.0
    list_changed_debounce_s: float = 0.25
    drain_s: float = 2.0
    """At shutdown, for requests in flight to end and for answers to leave."""
    principal: str = LOCAL


class Outgoing:
    """Messages on their way to the client. Bounded; `overflow` is called when one does not fit."""

    def __init__(self, max_messages: int, max_bytes: int, overflow: Callable[[], None]) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._overflow = overflow
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._sending = False
        self._changed = trio.lowlevel.ParkingLot()

    def put(self, message: bytes) -> None:
        """Queue a message; one of any size fits into an empty queue."""
        full = len(self._messages) >= self._max_messages or self._size + len(message) > self._max_bytes
        if self._messages and full:
            self._overflow()
            return
        self._messages.append(message)
        self._size += len(message)
        self._changed.unpark_all()

    async def next(self) -> bytes:
        """Wait for the next message and take it; asking again says that it was sent. A checkpoint."""
        self._sending = False
        self._changed.unpark_all()
        await trio.lowlevel.checkpoint()
        while not self._messages:
            await self._changed.park()
        self._sending = True
        message = self._messages.popleft()
        self._size -= len(message)
        return message

    async def drained(self) -> None:
        """Wait until everything was sent. A checkpoint if there is something to wait for."""
        while self._messages or self._sending:
            await self._changed.park()


class _Exchange(msgspec.Struct, eq=False):
    """A request that was registered but not answered."""

    request: rules.Request
    client: Client
    scope: trio.CancelScope


class _Listen(msgspec.Struct, eq=False):
    """An open `subscriptions/listen`."""

    subscription: Subscription
    scope: trio.CancelScope


class Session:
    """The state of one connection. `nursery` is the connection's."""

    def __init__(
        self, service: Service, settings: WebSocketSettings, outgoing: Outgoing, nursery: trio.Nursery
    ) -> None:
        self._service = service
        self._settings = settings
        self._outgoing = outgoing
        self._nursery = nursery
        self._client: Client | None = None
        self._initialized = False
        self._closing = False
        self._in_flight: set[_Exchange] = set()
        self._ended = trio.lowlevel.ParkingLot()
        self._listens: dict[Key, _Listen] = {}

    def receive(self, text: bytes) -> None:
        """Act on one text message."""
        batching = self._client is not None and self._client.version == rules.BATCHING_VERSION
        found = rules.read(text, batching=batching)
        if isinstance(found, list):
            self._nursery.start_soon(self._perform_all, [self._begin(message) for message in found])
            return
        begun = self._begin(found)
        if isinstance(begun, _Exchange):
            self._nursery.start_soon(self._perform_one, begun)
        elif begun is not None:
            self._outgoing.put(begun)

    async def wind_up(self) -> None:
        """End the listens with their results, wait for requests in flight and for the queue, both bounded."""
        self._closing = True
        for listen in self._listens.values():
            listen.scope.cancel()
            self._outgoing.put(listen.subscription.complete())
            self._outgoing.put(rules.listen_cancelled(listen.subscription.id, SHUTDOWN_REASON))
        with trio.move_on_after(self._settings.drain_s):
            while self._in_flight:
                await self._ended.park()
            await self._outgoing.drained()

    def _begin(self, message: rules.Message) -> _Exchange | bytes | None:
        """Return what is still to be performed, or the answer, or None if there is none."""
        match message:
            case rules.Invalid(answer=found):
                return found
            case rules.Request():
                return self._begin_request(message)
            case rules.Notification():
                self._notice(message)
        return None

    def _notice(self, message: rules.Notification) -> None:
        if message.method == "notifications/cancelled":
            self._cancel(read_cancelled(message.params))
        elif message.method == "notifications/initialized" and self._client is not None and not self._initialized:
            self._initialized = True
            watch = self._watch(self._client.principal, KINDS)
            self._nursery.start_soon(self._follow, watch, list_changed)

    def _cancel(self, key: Key | None) -> None:
        for exchange in self._in_flight:
            if exchange.request.key == key:
                exchange.scope.cancel()
        if key is not None and key in self._listens:
            self._listens.pop(key).scope.cancel()

    def _begin_request(self, request: rules.Request) -> _Exchange | bytes | None:
        if self._closing:
            return failure(request.id, ShuttingDown()).body
        if request.modern is not None:
            client = msgspec.structs.replace(request.modern, principal=self._settings.principal)
            if request.method == "subscriptions/listen":
                return self._listen(request, client)
            return self._register(request, client)
        match request.method:
            case "initialize":
                return self._initialize(request)
            case "ping":
                return jsonrpc.success(request.id, b"{}")
        if self._client is None:
            text = f"no session: send initialize first, or put {META_VERSION} into _meta"
            return jsonrpc.failure(request.id, jsonrpc.INVALID_REQUEST, text)
        match request.method:
            case "subscriptions/listen":
                return jsonrpc.failure(request.id, jsonrpc.METHOD_NOT_FOUND, "not a method of this session's version")
        return self._register(request, self._client)

    def _register(self, request: rules.Request, client: Client) -> _Exchange | bytes:
        if len(self._in_flight) >= self._settings.max_in_flight:
            text = f"more than {self._settings.max_in_flight} requests are in flight on this connection"
            return failure(request.id, TooManyCalls(text)).body
        exchange = _Exchange(request, client, trio.CancelScope())
        self._in_flight.add(exchange)
        return exchange

    def _initialize(self, request: rules.Request) -> bytes:
        if self._client is not None:
            return jsonrpc.failure(request.id, jsonrpc.INVALID_REQUEST, "this connection's session is initialized")
        try:
            asked = read_initialize(request.params)
        except InvalidArguments as error:
            return failure(request.id, error).body
        # A version we do not speak is answered with our newest (2025-11-25 basic/lifecycle, "Version Negotiation").
        self._client = Client(
            principal=self._settings.principal,
            era="legacy",
            version=asked.protocol_version if asked.protocol_version in LEGACY_VERSIONS else LATEST_LEGACY,
            name=asked.client_info.name[:MAX_CLIENT_NAME_CHARS],
            capabilities=msgspec.Raw(bytes(asked.capabilities)),
            session=secrets.token_urlsafe(16),
        )
        return jsonrpc.success(request.id, self._service.initialize(self._client.version))

    def _listen(self, request: rules.Request, client: Client) -> bytes | None:
        try:
            subscription = read_subscription(request.id, request.params)
        except InvalidArguments as error:
            return failure(request.id, error).body
        if request.key in self._listens:
            return jsonrpc.failure(request.id, jsonrpc.INVALID_REQUEST, "a listen with this id is open")
        if len(self._listens) >= self._settings.max_listens:
            text = f"the limit of {self._settings.max_listens} open subscriptions on one connection is reached"
            return failure(request.id, TooManyCalls(text)).body
        self._outgoing.put(subscription.acknowledged())
        if not subscription.kinds:
            return subscription.complete()
        listen = _Listen(subscription, trio.CancelScope())
        self._listens[request.key] = listen
        watch = self._watch(client.principal, subscription.kinds)
        self._nursery.start_soon(self._follow_listen, listen, watch)
        return None

    def _watch(self, principal: str, kinds: tuple[Kind, ...]) -> Watch:
        return Watch(
            self._service,
            principal,
            kinds,
            min_interval_s=self._settings.list_changed_min_interval_s,
            debounce_s=self._settings.list_changed_debounce_s,
        )

    async def _follow_listen(self, listen: _Listen, watch: Watch) -> None:
        with listen.scope:
            await self._follow(watch, listen.subscription.changed)

    async def _follow(self, watch: Watch, notification: Callable[[Kind], bytes]) -> None:
        while True:
            for kind in await watch.next():
                await self._outgoing.drained()
                self._outgoing.put(notification(kind))

    async def _perform_one(self, exchange: _Exchange) -> None:
        found = await self._perform(exchange)
        if found is not None:
            self._outgoing.put(found)

    async def _perform_all(self, begun: Sequence[_Exchange | bytes | None]) -> None:
        """Perform the requests of an array side by side and answer them together, in their order."""
        answers = [part if isinstance(part, bytes) else None for part in begun]

        async def fill(place: int, exchange: _Exchange) -> None:
            answers[place] = await self._perform(exchange)

        async with trio.open_nursery() as nursery:
            for place, part in enumerate(begun):
                if isinstance(part, _Exchange):
                    nursery.start_soon(fill, place, part)
        present = [found for found in answers if found is not None]
        if present:
            self._outgoing.put(b"[" + b",".join(present) + b"]")

    async def _perform(self, exchange: _Exchange) -> bytes | None:
        request = exchange.request
        try:
            with exchange.scope:
                found = await answer(self._service, exchange.client, request.id, request.method, request.params)
                return found.body
            return None
        finally:
            self._in_flight.discard(exchange)
            self._ended.unpark_all()
