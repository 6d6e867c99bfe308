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

from actors import codes
from actors.errors import InsufficientScope, InvalidArguments, MailboxFull, ShuttingDown
from actors.kit.decoding import decode_in_thread
from actors.protocol.agreement.versions import BATCH_VERSION, META_VERSION
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire import jsonrpc
from actors.protocol.wire.weight import LARGE_BYTES
from supervisor.front.edge.budget import Budget, Share
from supervisor.front.mcp.calls import STREAMS, calls_a_tool
from supervisor.front.mcp.envelope import Key
from supervisor.front.mcp.messages import (
    NO_BATCHES,
    Batch,
    Invalid,
    InvalidNotification,
    Message,
    ModernRequest,
    Notification,
    Request,
    Response,
    read,
)
from supervisor.front.mcp.params import read_cancelled, read_initialize, read_level
from supervisor.front.websocket.listens import Listens
from supervisor.front.websocket.outgoing import OutgoingQueue
from supervisor.front.websocket.settings import WebSocketSettings
from supervisor.identity.requester import SCOPES
from supervisor.service.asking.exchange import Exchange, QuestionTable, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.drain import RequestDrain
from supervisor.service.events.limits import TooManyEvents
from supervisor.service.port import failure


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
            self._listens.follow_all(self._client.principal, self._updates)

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
