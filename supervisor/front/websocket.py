"""MCP over WebSocket: handshake, reader and writer, requests in flight, the legacy session, what a client is told
unasked.

MCP has no WebSocket transport of its own; this one follows the rules for custom transports (2026-07-28
basic/transports/index) and what clients of the field do: subprotocol `mcp`, one JSON-RPC message per text message.

Rules of this file:
- Reader and writer are separate tasks over one bounded queue. A client that reads, however slowly, gets everything: who
  makes answers waits for room, and so nothing more is read from it. One that does not read is closed with 1008 once
  nothing has left for a while although somebody waits for room. A send in progress is bounded by the connection's send
  deadline.
- Requests over the limit of those in flight wait for their turn, and when many wait nothing more is read. Until then a
  slow request does not hold up the cancellation behind it.
- Whatever waits is a task of the connection's nursery and ends with it, in both eras (the connection *is* the session).
- A request is registered before its task runs: a cancellation in the very next message finds it.
- Both eras may be spoken on one connection; only `initialize` makes state.
- Only answers queue. A change notification waits until the queue is empty and then tells the newest state.
- Close codes (RFC 6455 7.4.1): 1001 at shutdown, 1003 for a binary message, 1008 for a client that does not read, 1009
  for a message too big, 1011 for a bug of ours. Never 1000 from us: we have no reason to end a healthy connection.
- Tokens that clients hide in a subprotocol (`mcp.auth.*`) are never echoed.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import trio
from msgspec.structs import replace

from actors import codes
from actors.errors import InsufficientScope, InvalidArguments, MailboxFull, ShuttingDown, TooManyCalls, UnknownDoor
from actors.kit.decoding import decode_in_thread
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import BATCH_VERSION, LEGACY_VERSIONS, META_VERSION, MODERN_VERSIONS
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.weight import LARGE_BYTES
from supervisor.config import Settings
from supervisor.front.calls import STREAMS, calls_a_tool
from supervisor.front.edge.budget import Budget, Share
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import Handshake, WebSocket
from supervisor.front.listen import (
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
from supervisor.front.messages import (
    NO_BATCHES,
    Batch,
    Invalid,
    InvalidNotification,
    Key,
    Message,
    ModernRequest,
    Notification,
    Request,
    Response,
    read,
    read_cancelled,
    read_initialize,
    read_level,
)
from supervisor.identity.requester import SCOPES
from supervisor.service.asking.exchange import Exchange, QuestionTable, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.doors.addresses import chosen_by
from supervisor.service.drain import RequestDrain
from supervisor.service.events.limits import TooManyEvents
from supervisor.service.port import Doors, Service, failure

FAREWELL_S = 2.0
"""For the last answers to leave, once no call is in flight any more."""


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection; `max_in_flight` and `drain_s` are others than those of the daemon."""

    max_in_flight: int = 64
    max_waiting: int = 256
    """Requests that wait for their turn; while there are so many nothing more is read."""
    max_waiting_bytes: int = 4 * 1024 * 1024
    """The same for the bytes of all requests that are not answered."""
    max_listens: int = 32
    max_streams: int = 256
    """Streams of events; they are no requests that wait for their turn, nor have one."""
    max_queued_messages: int = 256
    max_queued_bytes: int = 1024 * 1024
    stall_s: float = 5.0
    """A client that takes nothing of a full queue for this time is closed."""
    list_changed_min_interval_s: float = 1.0
    drain_s: float = 2.0
    """At shutdown, for requests in flight to be answered and for the answers to leave."""
    principal: Principal = LOCAL
    read_only_at: str | None = None
    """The door at which the credential of the client is not for calls of tools; None: it is."""

    @classmethod
    def of(cls, settings: Settings) -> WebSocketSettings:
        """Return the bounds that are configured."""
        return cls(
            max_queued_messages=settings.max_sockets_queue,
            list_changed_min_interval_s=settings.list_changed_min_interval_s,
            stall_s=settings.websocket_stall_s,
            drain_s=settings.drain_within_s + FAREWELL_S / 2,  # before the sockets are closed under whoever is left
        )


_LEAST_BYTES_PER_S = 64 * 1024
"""A long message that is under way has the time that it takes at this rate besides."""


class OutgoingQueue:
    """Messages for the client, which `write` sends. `stalled` is called when it does not read. `run` has to run."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        max_messages: int,
        max_bytes: int,
        stall_s: float,
        stalled: Callable[[], None],
    ) -> None:
        """`stall_s`: how long a full queue may stand still, in seconds."""
        self._write = write
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._stall_s = stall_s
        self._stalled = stalled
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._sending = 0
        self._taken = 0
        self._room = trio.lowlevel.ParkingLot()
        self._queued = trio.lowlevel.ParkingLot()
        self._sent = trio.lowlevel.ParkingLot()  # another one: else each `tell` would wake `run` for nothing

    @property
    def _full(self) -> bool:
        return len(self._messages) >= self._max_messages or self._size >= self._max_bytes

    async def room(self) -> None:
        """Wait until there is room; one message of any size may be put then. A checkpoint if there is none."""
        while self._full:
            taken = self._taken
            with trio.move_on_after(self._stall_s + self._sending / _LEAST_BYTES_PER_S) as waiting:
                await self._room.park()
            if waiting.cancelled_caught and self._taken == taken:
                self._stalled()
                await trio.sleep_forever()  # whoever gave the client up cancels us
        if self._room:
            self._room.unpark()  # if there is still room after ours, it is for the next one, else that one waits on

    def put(self, message: bytes) -> None:
        """Queue a message, by somebody who has waited for room."""
        self._messages.append(message)
        self._size += len(message)
        if self._queued:
            self._queued.unpark_all()

    def say(self, message: bytes) -> bool:
        """Queue a message that nobody waits for; False if there is no room for it. See `Voice.say`."""
        if self._full:
            return False
        self.put(message)
        return True

    async def send(self, message: bytes) -> None:
        """Wait for room and queue a message."""
        if self._full or self._room:
            await self.room()
        self.put(message)

    async def tell(self, message: bytes) -> None:
        """Send a small message that nobody waits for, after all others: at once, as there are none most of the time."""
        while self._messages or self._sending:
            await self._sent.park()
        await self._send(message)

    async def run(self) -> None:
        """Send what is queued, for ever."""
        while True:
            while not self._messages:
                await self._queued.park()
            message = self._messages.popleft()
            self._size -= len(message)
            self._taken += 1
            if self._room:
                self._room.unpark()
            await self._send(message)
            await trio.lowlevel.checkpoint()

    async def _send(self, message: bytes) -> None:
        self._sending += len(message)
        try:
            await self._write(message)
        finally:
            self._sending -= len(message)
            if self._sent:
                self._sent.unpark_all()

    async def wait_sent(self) -> None:
        """Wait until everything was sent. A checkpoint if there is something to wait for."""
        while self._messages or self._sending:
            await self._sent.park()


_SHUTDOWN_REASON: Final = "the daemon is shutting down"


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
        watch = self._watch(subscription.kinds, Updates())
        self._nursery.start_soon(self._follow_listen, listen, watch)
        return None

    async def _subscribe(self, listen: _Listen, request: Request, client: Client) -> None:
        """Subscribe to resources, and acknowledge those that are told of; what changes meanwhile is told afterwards."""
        subscription, updates = listen.subscription, Updates()
        exchange = Exchange(client, request.id, request.method, request.params, session=SessionState(updates=updates))
        watch = self._watch(subscription.kinds, updates)
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
            self._outgoing.put(listen.subscription.cancellation(_SHUTDOWN_REASON))

    def follow_all(self, updates: Updates) -> None:
        """Tell a legacy client of every change of lists, and of the resources that it is subscribed to."""
        self._nursery.start_soon(self._follow, self._watch(KINDS, updates), told_of)

    def _watch(self, kinds: tuple[Kind, ...], updates: Updates) -> Watch:
        return Watch(
            self._service,
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


class _Unanswered(msgspec.Struct, eq=False):
    """A request that was registered but not answered."""

    request: Request
    exchange: Exchange
    scope: trio.CancelScope
    share: Share | None


class SocketSession:
    """The state of one connection. `nursery` is the connection's."""

    def __init__(
        self,
        drain: RequestDrain,
        settings: WebSocketSettings,
        outgoing: OutgoingQueue,
        budget: Budget,
        nursery: trio.Nursery,
    ) -> None:
        self._drain = drain
        self._settings = settings
        self._outgoing = outgoing
        self._budget = budget
        self._nursery = nursery
        self._client: Client | None = None
        self._initialized = False
        self._closing = False
        self._unanswered: set[_Unanswered] = set()
        self._unanswered_bytes = 0
        self._streams = 0
        self._in_flight = trio.Semaphore(settings.max_in_flight)
        self._ended = trio.lowlevel.ParkingLot()
        self._listens = Listens(drain.service, settings, outgoing, nursery)
        self._questions, self._updates = QuestionTable(), Updates()
        self._state = SessionState(self._questions, "", self._updates)
        self._of_modern = SessionState(self._questions)

    async def receive(self, text: bytes) -> None:
        """Act on one text message, once there is room for one more request and its answer."""
        settings = self._settings
        most = settings.max_in_flight + settings.max_waiting
        while len(self._unanswered) - self._streams >= most or self._unanswered_bytes >= settings.max_waiting_bytes:
            await self._ended.park()
        await self._outgoing.room()
        message = read(text) if len(text) < LARGE_BYTES else await decode_in_thread(partial(read, text))
        if isinstance(message, Batch) and self._batching:
            self._nursery.start_soon(self._perform_all, [self._begin(one) for one in message.messages])
            return
        begun = self._begin(message)
        if isinstance(begun, _Unanswered):
            self._nursery.start_soon(self._perform, begun, self._outgoing.send)
        elif begun is not None:
            self._outgoing.put(begun)

    async def wind_up(self) -> None:
        """End the listens with their results, wait for requests in flight and for the queue, both bounded."""
        self._closing = True
        self._listens.end()
        with trio.move_on_after(self._settings.drain_s):
            while self._unanswered:
                await self._ended.park()
            await self._outgoing.wait_sent()

    def end(self) -> None:
        """Nobody is told of anything any more."""
        self._updates.end()

    @property
    def _batching(self) -> bool:
        return self._client is not None and self._client.version == BATCH_VERSION

    def _begin(self, message: Message) -> _Unanswered | bytes | None:
        """Return what is still to be performed, or the answer, or None if there is none."""
        match message:
            case Request():
                return self._begin_request(message)
            case Notification():
                self._notice(message)
            case Response(key=key, result=result, error=error):
                self._questions.on_answer(key, result, error)
            case InvalidNotification():  # there is no other way to say so than an answer, which it must not have
                return None
            case Invalid():
                return message.answer()
            case Batch():
                return NO_BATCHES.answer()
        return None

    def _notice(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            self._cancel(*read_cancelled(message.params))
        elif message.method == PROGRESS:
            self._questions.on_progress(message.params)
        elif message.method == "notifications/initialized" and self._client is not None and not self._initialized:
            self._initialized = True
            self._listens.follow_all(self._updates)

    def _cancel(self, key: Key | None, reason: str) -> None:
        named = [unanswered for unanswered in self._unanswered if unanswered.request.key == key]
        for unanswered in named:
            unanswered.scope.cancel(reason=reason)
        if key is not None and not named:
            self._questions.on_cancelled(key)
        if key is not None:
            self._listens.cancel(key)

    def _begin_request(self, request: Request) -> _Unanswered | bytes | None:
        if self._closing:
            return failure(request.id, ShuttingDown()).body
        door = self._settings.read_only_at
        if door is not None and calls_a_tool(request, door):
            text = "the token was not issued for calls of tools: sign in again, and allow it"
            return failure(request.id, InsufficientScope(text, details={"scope": " ".join(SCOPES)})).body
        if isinstance(request, ModernRequest):
            client = request.client(self._settings.principal)
            if request.method == "subscriptions/listen":
                return self._listens.open(request, client)
            return self._register(request, client)
        match request.method:
            case "initialize":
                return self._initialize(request)
            case "ping":
                return jsonrpc.success(request.id, b"{}")
        if self._client is None:
            text = f"no session: send initialize first, or put {META_VERSION} into _meta"
            return jsonrpc.failure(request.id, codes.INVALID_REQUEST, text)
        match request.method:
            case "logging/setLevel":
                return self._set_log_level(request)
            case "subscriptions/listen":
                return jsonrpc.failure(request.id, codes.METHOD_NOT_FOUND, "not a method of this session's version")
        return self._register(request, self._client)

    def _set_log_level(self, request: Request) -> bytes:
        try:
            self._state.log_level = read_level(request.params)
        except InvalidArguments as error:
            return failure(request.id, error).body
        return jsonrpc.success(request.id, b"{}")

    def _register(self, request: Request, client: Client) -> _Unanswered | bytes:
        is_stream = request.method in STREAMS
        if is_stream and self._streams >= self._settings.max_streams:
            most = self._settings.max_streams
            text = f"the limit of {most} streams of events on one connection is reached"
            return failure(request.id, TooManyEvents(text, "streams", most)).body
        try:
            share = self._budget.hold(len(request.params))
        except MailboxFull as error:
            return failure(request.id, error).body
        exchange = Exchange(
            client,
            request.id,
            request.method,
            request.params,
            voice=self._outgoing,
            session=self._state if client.era == "legacy" else self._of_modern,
            retry=request.retry if isinstance(request, ModernRequest) else None,
            protocol="websocket",
        )
        unanswered = _Unanswered(request, exchange, trio.CancelScope(), share)
        self._unanswered.add(unanswered)
        self._streams += is_stream
        self._unanswered_bytes += len(request.params)
        return unanswered

    def _initialize(self, request: Request) -> _Unanswered | bytes:
        if self._client is not None:
            return jsonrpc.failure(request.id, codes.INVALID_REQUEST, "this connection's session is initialized")
        try:
            asked = read_initialize(request.params)
        except InvalidArguments as error:
            return failure(request.id, error).body
        client = asked.client(self._settings.principal, secrets.token_urlsafe(16))
        begun = self._register(request, client)
        if isinstance(begun, _Unanswered):
            self._client = client  # what follows it belongs to the session, unless that is refused
        return begun

    async def _perform_all(self, begun: Sequence[_Unanswered | bytes | None]) -> None:
        """Perform the requests of an array side by side and answer them together, in their order."""
        answers = [part if isinstance(part, bytes) else None for part in begun]

        async def fill(place: int, body: bytes) -> None:
            answers[place] = body

        async with trio.open_nursery() as nursery:
            for place, part in enumerate(begun):
                if isinstance(part, _Unanswered):
                    nursery.start_soon(self._perform, part, partial(fill, place))
        present = [body for body in answers if body is not None]
        if present:
            await self._outgoing.send(b"[" + b",".join(present) + b"]")

    async def _perform(self, unanswered: _Unanswered, give: Callable[[bytes], Awaitable[None]]) -> None:
        """Perform a request when it is its turn, which it holds until somebody has its answer."""
        request, scope = unanswered.request, unanswered.scope
        is_stream, good = request.method in STREAMS, False
        try:
            with scope:
                if not is_stream:
                    try:
                        self._in_flight.acquire_nowait()  # mostly there is room, and nothing to wait for
                    except trio.WouldBlock:
                        await self._in_flight.acquire()
                try:
                    answer = await self._drain.answer(scope, unanswered.exchange)
                    good = answer.good
                    await give(answer.body)
                finally:
                    if not is_stream:
                        self._in_flight.release()
            if scope.cancelled_caught and (last := self._drain.last_answer(scope, unanswered.exchange)) is not None:
                await give(last.body)
        finally:
            if request.method == "initialize" and not good:
                self._client = None
            if unanswered.share is not None:
                unanswered.share.close()
            self._unanswered.discard(unanswered)
            self._streams -= is_stream
            self._unanswered_bytes -= len(request.params)
            self._ended.unpark_all()


log = logging.getLogger(__name__)

_SUBPROTOCOL = "mcp"
_CLOSE_S = 5.0
"""For the close frame to leave."""

_VERSION_SUBPROTOCOLS = frozenset(f"mcp.version.{version}" for version in (*LEGACY_VERSIONS, *MODERN_VERSIONS))


def choose_subprotocol(offered: Sequence[str]) -> str | None:
    """Return which of the offered subprotocols we speak: `mcp` before `mcp.version.<v>`; None if none of them."""
    if _SUBPROTOCOL in offered:
        return _SUBPROTOCOL
    return next((name for name in offered if name in _VERSION_SUBPROTOCOLS), None)


class McpWebSocket:
    """Serves WebSockets. One per daemon; each connection has its own session."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings, doors: Doors) -> None:
        """`drain` performs the requests; when it begins, every connection winds up and closes with 1001.

        `doors` are those below the path of MCP, too.
        """
        self._doors = doors
        self._drain = drain
        self._settings = settings

    async def serve(self, name: str, request: HttpRequest) -> None:
        """Serve one connection at the door of this name until it is closed.

        Raises `HttpProtocolError` for a bad handshake.
        """
        try:
            door = await self._doors.find_for(request.requester.person, name, *chosen_by(request.target))
        except UnknownDoor as error:
            await request.refuse(error.http_status, failure(b"null", error).body)
            return
        handshake = Handshake(request)
        offered = handshake.subprotocols
        chosen = choose_subprotocol(offered)
        if offered and chosen is None:
            text = f'none of the offered subprotocols is spoken here; offer "{_SUBPROTOCOL}" or none'
            await request.refuse(400, jsonrpc.failure(b"null", codes.INVALID_REQUEST, text))
            return
        socket = await handshake.accept(chosen)
        read_only_at = name if request.lacking is not None else None
        settings = replace(self._settings, principal=request.principal, read_only_at=read_only_at)
        counters = request.counters
        counters.sockets += 1
        try:
            await McpSocket(self._drain.behind(door.service), settings, socket).run()
        finally:
            counters.sockets -= 1


class McpSocket:
    """The tasks of one accepted connection."""

    def __init__(self, drain: RequestDrain, settings: WebSocketSettings, socket: WebSocket) -> None:
        self._drain = drain
        self._settings = settings
        self._socket = socket
        self._scope = trio.CancelScope()
        self._close: tuple[int, str] | None = None

    async def run(self) -> None:
        settings, socket = self._settings, self._socket
        outgoing = OutgoingQueue(  # which knows us: as we do not know it, both are freed at once
            partial(_write, socket),
            settings.max_queued_messages,
            settings.max_queued_bytes,
            settings.stall_s,
            lambda: self._end(1008, "answers are waiting and nobody reads them"),
        )
        try:
            with self._scope, socket.leaving.ends(self._scope):
                async with trio.open_nursery() as nursery:
                    session = SocketSession(self._drain, settings, outgoing, socket.budget, nursery)
                    nursery.start_soon(outgoing.run)
                    nursery.start_soon(socket.pings)
                    nursery.start_soon(self._wind_up, session)
                    try:
                        await self._read(session)
                    finally:
                        session.end()
                    nursery.cancel_scope.cancel()
        except* Exception:  # the border: a bug costs this connection and is in the log
            log.exception("a bug in a WebSocket connection")
            self._close = (1011, "internal error")
        if self._close is not None:
            code, reason = self._close
            with trio.move_on_after(_CLOSE_S, shield=True):
                await socket.close(code, reason)

    def _end(self, code: int, reason: str) -> None:
        if self._close is None:
            self._close = (code, reason)
        self._scope.cancel()

    async def _read(self, session: SocketSession) -> None:
        while (message := await self._socket.receive()) is not None:
            if isinstance(message, bytes):
                self._end(1003, "text messages only")
                return
            await session.receive(message.encode())

    async def _wind_up(self, session: SocketSession) -> None:
        await self._drain.closing.wait()
        await session.wind_up()
        self._end(1001, "the daemon is shutting down")


async def _write(socket: WebSocket, message: bytes) -> None:
    await socket.send(message.decode())
