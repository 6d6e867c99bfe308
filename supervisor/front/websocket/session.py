"""One WebSocket connection as MCP sees it: requests in flight, the legacy session, the listens.

Rules of this file:
- Requests over the limit of those in flight wait for their turn, and when many wait nothing more is read: a client that
  reads its answers gets all of them. Until then a slow request does not hold up the cancellation behind it.
- Whatever waits is a task of the connection's nursery and ends with it, in both eras (the connection *is* the session).
- A request is registered before its task runs: a cancellation in the very next message finds it.
- Both eras may be spoken on one connection; only `initialize` makes state.
- Only answers queue, and whoever makes one waits for room first. A change notification waits until the queue is empty
  and then tells the newest state.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import trio

from actors.errors import InvalidArguments, MailboxFull, ShuttingDown, TooManyCalls
from actors.kit.decoding import decoded
from actors.principal import LOCAL, Principal
from actors.protocol import jsonrpc
from actors.protocol.versions import LATEST_LEGACY, LEGACY_VERSIONS, META_VERSION
from actors.protocol.weight import LARGE_BYTES
from supervisor.front.edge.budget import Budget, Share
from supervisor.front.mcp.envelope import MAX_CLIENT_NAME_CHARS
from supervisor.front.mcp.listen import KINDS, Kind, Subscription, Watch, list_changed, read_subscription
from supervisor.front.mcp.params import read_cancelled, read_initialize
from supervisor.front.mcp.verdict import Key
from supervisor.front.websocket import rules as rules
from supervisor.front.websocket.outgoing import Outgoing
from supervisor.service.drain import Drain
from supervisor.service.port import Client, failure

SHUTDOWN_REASON = "the daemon is shutting down"


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection. The daemon fills it from the configuration."""

    max_message_bytes: int = 1024 * 1024
    max_in_flight: int = 64
    max_waiting: int = 256
    """Requests that wait for their turn; while there are so many nothing more is read."""
    max_waiting_bytes: int = 4 * 1024 * 1024
    """The same for the bytes of all requests that are not answered."""
    max_listens: int = 32
    max_queued_messages: int = 256
    max_queued_bytes: int = 1024 * 1024
    stall_s: float = 5.0
    """A client that takes nothing of a full queue for this time is closed."""
    list_changed_min_interval_s: float = 1.0
    list_changed_debounce_s: float = 0.25
    drain_s: float = 2.0
    """At shutdown, for requests in flight to be answered and for the answers to leave."""
    principal: Principal = LOCAL


class _Exchange(msgspec.Struct, eq=False):
    """A request that was registered but not answered."""

    request: rules.Request
    client: Client
    scope: trio.CancelScope
    share: Share | None


class _Listen(msgspec.Struct, eq=False):
    """An open `subscriptions/listen`."""

    subscription: Subscription
    scope: trio.CancelScope


class Session:
    """The state of one connection. `nursery` is the connection's."""

    def __init__(
        self, drain: Drain, settings: WebSocketSettings, outgoing: Outgoing, budget: Budget, nursery: trio.Nursery
    ) -> None:
        self._drain = drain
        self._service = drain.service
        self._settings = settings
        self._outgoing = outgoing
        self._budget = budget
        self._nursery = nursery
        self._client: Client | None = None
        self._initialized = False
        self._closing = False
        self._unanswered: set[_Exchange] = set()
        self._unanswered_bytes = 0
        self._in_flight = trio.Semaphore(settings.max_in_flight)
        self._ended = trio.lowlevel.ParkingLot()
        self._listens: dict[Key, _Listen] = {}

    async def receive(self, text: bytes) -> None:
        """Act on one text message, once there is room for one more request and its answer."""
        settings = self._settings
        most = settings.max_in_flight + settings.max_waiting
        while len(self._unanswered) >= most or self._unanswered_bytes >= settings.max_waiting_bytes:
            await self._ended.park()
        await self._outgoing.room()
        batching = self._client is not None and self._client.version == rules.BATCHING_VERSION
        if len(text) < LARGE_BYTES:
            found = rules.read(text, batching=batching)
        else:
            found = await decoded(partial(rules.read, text, batching=batching))
        if isinstance(found, list):
            self._nursery.start_soon(self._perform_all, [self._begin(message) for message in found])
            return
        begun = self._begin(found)
        if isinstance(begun, _Exchange):
            self._nursery.start_soon(self._perform, begun, self._outgoing.send)
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
            while self._unanswered:
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
        for exchange in self._unanswered:
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
        try:
            share = self._budget.hold(len(request.params))
        except MailboxFull as error:
            return failure(request.id, error).body
        exchange = _Exchange(request, client, trio.CancelScope(), share)
        self._unanswered.add(exchange)
        self._unanswered_bytes += len(request.params)
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
        return jsonrpc.success(request.id, self._service.initialize(self._client.version, self._client.principal))

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

    def _watch(self, principal: Principal, kinds: tuple[Kind, ...]) -> Watch:
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
                await self._outgoing.send(notification(kind))

    async def _perform_all(self, begun: Sequence[_Exchange | bytes | None]) -> None:
        """Perform the requests of an array side by side and answer them together, in their order."""
        answers = [part if isinstance(part, bytes) else None for part in begun]

        async def fill(place: int, found: bytes) -> None:
            answers[place] = found

        async with trio.open_nursery() as nursery:
            for place, part in enumerate(begun):
                if isinstance(part, _Exchange):
                    nursery.start_soon(self._perform, part, partial(fill, place))
        present = [found for found in answers if found is not None]
        if present:
            await self._outgoing.send(b"[" + b",".join(present) + b"]")

    async def _perform(self, exchange: _Exchange, give: Callable[[bytes], Awaitable[None]]) -> None:
        """Perform a request when it is its turn, which it holds until somebody has its answer."""
        request, scope = exchange.request, exchange.scope
        try:
            with scope:
                try:
                    self._in_flight.acquire_nowait()  # mostly there is room, and nothing to wait for
                except trio.WouldBlock:
                    await self._in_flight.acquire()
                try:
                    found = await self._drain.answer(scope, exchange.client, request.id, request.method, request.params)
                    await give(found.body)
                finally:
                    self._in_flight.release()
            if scope.cancelled_caught and (last := self._drain.last_answer(scope, request.id)) is not None:
                await give(last.body)
        finally:
            if exchange.share is not None:
                exchange.share.close()
            self._unanswered.discard(exchange)
            self._unanswered_bytes -= len(request.params)
            self._ended.unpark_all()
