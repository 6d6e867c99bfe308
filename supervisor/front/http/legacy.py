"""The legacy era over HTTP: sessions, requests with and without one, batches, the stream of notifications.

Rules of this file:
- A valid request is answered with HTTP 200 and its error inside; most clients lose the code with any other status.
- A request without a session id is served without a session: what a person with curl, or a stateless client, expects.
- A client that closes its connection has cancelled nothing (MCP 2025-11-25, basic/transports): the request runs to its
  end. Only `notifications/cancelled` of the same session cancels, only its requests, and the id's type counts.
- A request costs no task and no nursery.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import trio

from actors.errors import InvalidArguments, ProtocolViolation, UnknownMethod
from actors.principal import Principal
from actors.protocol import jsonrpc
from actors.protocol.jsonrpc import INVALID_REQUEST
from actors.protocol.versions import ASSUMED_LEGACY, BATCH_VERSION, LATEST_LEGACY, LEGACY_VERSIONS
from supervisor.front.edge.asgi import Receive, Send
from supervisor.front.http.classify import legacy_message, legacy_version
from supervisor.front.http.exchange import EventStream, Headers, KeepAlive, reply
from supervisor.front.http.head import Accepts, Head
from supervisor.front.http.sessions import Session, Sessions
from supervisor.front.http.settings import HttpSettings
from supervisor.front.http.streams import notify
from supervisor.front.mcp.listen import Watch, list_changed
from supervisor.front.mcp.params import read_cancelled, read_initialize
from supervisor.front.mcp.verdict import NULL, Batch, LegacyMessage, Notification, Refused, Request, refuse
from supervisor.service.drain import Drain
from supervisor.service.port import Client, failure

SESSION_HEADER: Final = b"mcp-session-id"
"""The one revision that has batches."""

CANCELLED: Final = -32800
"""What the official SDK answers to a request that its client has cancelled; nobody waits for it."""

_HERE: Final = frozenset({"ping", "subscriptions/listen", "initialize"})


class LegacyFront:
    """Serves classified legacy messages, and GET and DELETE of sessions."""

    def __init__(
        self,
        drain: Drain,
        sessions: Sessions,
        *,
        settings: HttpSettings,
        keep_alive: KeepAlive,
        kept: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint,
    ) -> None:
        """`kept` waits until what was ended would survive the end of the daemon, or as long as is sensible."""
        self._kept = kept
        self._drain = drain
        self._service = drain.service
        self._sessions = sessions
        self._settings = settings
        self._keep_alive = keep_alive

    async def post(
        self,
        message: LegacyMessage | Batch,
        head: Head,
        accepts: Accepts,
        principal: Principal,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one POST. A checkpoint."""
        if isinstance(message, Request) and message.method == "initialize":
            await self._open_session(message, accepts, principal, send)
            return
        session = None
        if head.session is not None:
            session = self._sessions.find(head.session, principal)
            if session is None:
                await _no_session(send, message.id if isinstance(message, Request) else NULL)
                return
        if isinstance(message, Request):
            client = _sessionless(principal, head) if session is None else session.client
            await self._request(message, client, session, accepts, receive, send)
        elif isinstance(message, Batch):
            await self._batch(message, session, accepts, send)
        else:
            if session is not None and isinstance(message, Notification):
                _notified(session, message)
            await reply(send, 202, b"")

    async def stream(self, head: Head, principal: Principal, receive: Receive, send: Send) -> None:
        """Serve the GET of a session: its stream of notifications; an older one ends. A checkpoint."""
        session = self._sessions.find(head.session or b"", principal)
        if session is None:
            await _no_session(send, NULL)
            return
        if session.stream is not None:
            session.stream.cancel()
        # Set before anything waits, so that of two streams opened at once one ends the other.
        session.stream = scope = trio.CancelScope()
        stream = EventStream(send)
        try:
            await stream.open()
            with scope:
                await self._notify(session, stream, receive)
        finally:
            if session.stream is scope:
                session.stream = None
        await stream.close()

    async def delete(self, head: Head, principal: Principal, send: Send) -> None:
        """Serve the DELETE of a session. A checkpoint."""
        session = self._sessions.find(head.session or b"", principal)
        if session is None:
            await _no_session(send, NULL)
            return
        self._sessions.end(session)
        await self._kept()  # who is told that it is over must not find it alive again, whatever ends us
        await reply(send, 204, b"")

    async def _notify(self, session: Session, stream: EventStream, receive: Receive) -> None:
        settings = self._settings
        watch = Watch(
            self._service,
            session.client.principal,
            told=session.told,
            min_interval_s=settings.list_changed_min_interval_s,
            debounce_s=settings.list_changed_debounce_s,
        )

        def go_on() -> bool:
            session.told = watch.told
            return self._sessions.touch(session)

        await notify(
            stream,
            watch,
            receive,
            message=list_changed,
            go_on=go_on,
            closing=self._drain.closing,
            keepalive_s=settings.sse_keepalive_s,
        )

    async def _open_session(self, request: Request, accepts: Accepts, principal: Principal, send: Send) -> None:
        try:
            asked = read_initialize(request.params)
        except InvalidArguments as error:
            await _respond(send, accepts, failure(request.id, error).body)
            return
        version = asked.protocol_version if asked.protocol_version in LEGACY_VERSIONS else LATEST_LEGACY
        session = self._sessions.open(
            principal=principal,
            version=version,
            client_name=asked.client_info.name,
            client_version=asked.client_info.version,
            capabilities=asked.capabilities,
            told=self._service.revisions(principal),
        )
        body = jsonrpc.success(request.id, self._service.initialize(version, principal))
        await _respond(send, accepts, body, ((SESSION_HEADER, session.token),))

    async def _request(
        self,
        request: Request,
        client: Client,
        session: Session | None,
        accepts: Accepts,
        receive: Receive,
        send: Send,
    ) -> None:
        if request.method in _HERE:
            await _respond(send, accepts, self._answer_here(request))
            return
        late = self._keep_alive.add(send, receive) if accepts.stream_named else None
        try:
            body = await self._answer(request, client, session)
        finally:
            if late is not None:
                self._keep_alive.remove(late)
        if late is not None and late.committed:
            await late.finish(body)
        else:
            await _respond(send, accepts, body)

    async def _answer(self, request: Request, client: Client, session: Session | None) -> bytes:
        # Of two requests with the same id, the newer one is the one that can be cancelled; both are answered.
        with trio.CancelScope() as scope:
            if session is not None:
                session.in_flight[request.key] = scope
            try:
                return (await self._drain.answer(scope, client, request.id, request.method, request.params)).body
            finally:
                if session is not None:
                    if session.in_flight.get(request.key) is scope:
                        del session.in_flight[request.key]
                    self._sessions.touch(session)
        last = self._drain.last_answer(scope, request.id)
        return last.body if last else jsonrpc.failure(request.id, CANCELLED, "the request was cancelled")

    def _answer_here(self, request: Request) -> bytes:
        """Answer what belongs to the transport, or is not there in this era."""
        if request.method == "ping":
            return jsonrpc.success(request.id, b"{}")
        return failure(request.id, UnknownMethod(f"{request.method} is not possible here")).body

    async def _batch(self, batch: Batch, session: Session | None, accepts: Accepts, send: Send) -> None:
        if session is None or session.client.version != BATCH_VERSION:
            refused = refuse(400, NULL, INVALID_REQUEST, "this revision of the protocol has no batches")
            await reply(send, refused.status, refused.body)
            return
        answers = [b""] * len(batch.messages)
        async with trio.open_nursery() as nursery:
            for place, raw in enumerate(batch.messages):
                nursery.start_soon(self._batched, raw, session, answers, place)
        bodies = [body for body in answers if body]
        if bodies:
            await _respond(send, accepts, b"[" + b",".join(bodies) + b"]")
        else:
            await reply(send, 202, b"")

    async def _batched(self, raw: msgspec.Raw, session: Session, answers: list[bytes], place: int) -> None:
        try:
            message = legacy_message(jsonrpc.decode(bytes(raw)))
        except ProtocolViolation:
            message = refuse(400, NULL, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
        if isinstance(message, Refused):
            answers[place] = message.body
        elif isinstance(message, Notification):
            _notified(session, message)
        elif isinstance(message, Request):
            if message.method in _HERE:
                answers[place] = self._answer_here(message)
            else:
                answers[place] = await self._answer(message, session.client, session)


def _sessionless(principal: Principal, head: Head) -> Client:
    return Client(principal=principal, version=legacy_version(head) or ASSUMED_LEGACY)


def _notified(session: Session, message: Notification) -> None:
    if message.method != "notifications/cancelled":
        return
    key = read_cancelled(message.params)
    if key is not None:
        session.cancel(key)


async def _no_session(send: Send, id_: bytes) -> None:
    refused = refuse(404, id_, INVALID_REQUEST, "Session not found")
    await reply(send, refused.status, refused.body)


async def _respond(send: Send, accepts: Accepts, body: bytes, headers: Headers = ()) -> None:
    if accepts.json:
        await reply(send, 200, body, headers)
    else:
        await EventStream(send).answer(body, headers)
