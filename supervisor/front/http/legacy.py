"""The legacy era over HTTP: sessions, requests with and without one, batches, the stream of notifications.

Rules of this file:
- A valid request is answered with HTTP 200 and its error inside; most clients lose the code with any other status.
- A request without a session id is served without a session: what a person with curl, or a stateless client, expects.
- A client that closes its connection has cancelled nothing (MCP 2025-11-25, basic/transports): the request runs to its
  end. Only `notifications/cancelled` of the same session cancels, only its requests, and the id's type counts.
- But a stream of events ends with its connection (SEP-3415, "Cancellation"): its client goes on from a cursor.
- A GET has the notifications of its session, one stream at a time, or the rest of an answer's stream ("Resumability and
  Redelivery").
- A request costs no task and no nursery.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Final

import trio

from actors.codes import REQUEST_CANCELLED
from actors.errors import InvalidArguments, UnknownMethod
from actors.principal import Principal
from actors.protocol.agreement.versions import BATCH_VERSION, LATEST_LEGACY
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire import jsonrpc
from supervisor.config import Settings
from supervisor.front.calls import STREAMS
from supervisor.front.edge.request import ClientGone, HttpRequest, Lines
from supervisor.front.edge.wire import Leaving
from supervisor.front.http.elsewhere import RequestNodes
from supervisor.front.http.heads import SESSION, Accepts, Head, legacy_version, refusal_of, refusal_of_message
from supervisor.front.http.sessions import HttpSession, Sessions
from supervisor.front.http.streams import PACE_S, EventStream, KeepAlive, Redelivery, Track, notify
from supervisor.front.listen import ChangePace, Watch, told_of
from supervisor.front.messages import (
    NO_BATCHES,
    NULL,
    Batch,
    Invalid,
    Key,
    LegacyMessage,
    Notification,
    Request,
    Response,
    read_cancelled,
    read_initialize,
    read_level,
)
from supervisor.service.asking.exchange import Exchange, SessionState, Voice
from supervisor.service.client import Client
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Answer, failure

_FIRST_PRIMED: Final = "2025-11-25"
"""Clients of earlier revisions may take an event without a message for a broken one."""
_NOT_KEPT: Final = "what was said after this event is not kept here any more; make the request anew"


class SessionStreams:
    """The streams of the sessions at one door."""

    def __init__(self, drain: RequestDrain, sessions: Sessions, settings: Settings, redelivery: Redelivery) -> None:
        self._drain = drain
        self._sessions = sessions
        self._settings = settings
        self._redelivery = redelivery

    def track(self, session: HttpSession, request: bytes) -> Track:
        primed = session.client.version >= _FIRST_PRIMED
        return self._redelivery.begin(session.digest, request, primed=primed)

    async def serve(self, session: HttpSession, event: bytes | None, request: HttpRequest) -> None:
        """Serve a GET; `event` is the last one that the client has of an answer's stream. A checkpoint."""
        if event is None:
            request.end_with_credential(None)
            await self._follow(session, EventStream(request), request.leaving)
        elif (told := self._redelivery.find(session.digest, event)) is not None:
            go_on, pause_s = partial(self._sessions.touch, session), self._settings.sse_keepalive_s
            await _go_on_with(*told, EventStream(request), request.leaving, go_on=go_on, keepalive_s=pause_s)
        else:
            raise refusal_of(400, _NOT_KEPT)

    async def _follow(self, session: HttpSession, stream: EventStream, leaving: Leaving) -> None:
        """Tell a client what changes until it is gone or its session over; an older stream of it ends."""
        if session.stream is not None:
            session.stream.cancel()
        # Set before anything waits, so that of two streams opened at once one ends the other.
        session.stream = scope = trio.CancelScope()
        try:
            await stream.open()
            with scope:
                await self._notify(session, stream, leaving)
        finally:
            if session.stream is scope:
                session.stream = None
        await stream.close()

    async def _notify(self, session: HttpSession, stream: EventStream, leaving: Leaving) -> None:
        settings = self._settings
        pace = ChangePace(settings.list_changed_min_interval_s, doubt_s=settings.tcp_user_timeout_s)
        watch = Watch(
            self._drain.service,
            told=session.told,
            updates=session.updates,
            pace=pace,
        )

        def go_on() -> bool:
            session.told = watch.delivery()
            return self._sessions.touch(session)

        await notify(
            stream,
            watch,
            leaving,
            message=told_of,
            go_on=go_on,
            closing=self._drain.closing,
            keepalive_s=settings.sse_keepalive_s,
        )


async def _go_on_with(
    track: Track,
    place: int,
    stream: EventStream,
    leaving: Leaving,
    *,
    go_on: Callable[[], bool],
    keepalive_s: float,
) -> None:
    """Send what was said after the event of this number, and what is said from now on, up to the answer. A checkpoint.

    It ends early when the client is gone, when somebody else resumes the stream, or when `go_on` says so.
    """
    with trio.CancelScope() as scope:
        track.take(scope)
        await stream.open()
        with leaving.ends(scope):
            await _speak(track, place, stream, go_on, keepalive_s)
    await stream.close()


async def _speak(track: Track, place: int, stream: EventStream, go_on: Callable[[], bool], keepalive_s: float) -> None:
    while go_on():
        said = track.after(place)
        if said:
            await stream.events([message for _, message in said], [track.id(number) for number, _ in said])
            place = said[-1][0]
            await trio.sleep(PACE_S)
        elif track.over:
            return
        else:
            with trio.move_on_after(keepalive_s) as quiet:
                await track.more()
            if quiet.cancelled_caught:
                await stream.comment()


_HERE: Final = frozenset({"ping", "subscriptions/listen", "initialize", "logging/setLevel"})


class LegacyFront:
    """Serves legacy messages, and GET and DELETE of sessions."""

    def __init__(
        self,
        drain: RequestDrain,
        sessions: Sessions,
        *,
        settings: Settings,
        keep_alive: KeepAlive,
        redelivery: Redelivery,
        nodes: RequestNodes | None = None,
        door: str = "",
    ) -> None:
        """`redelivery` keeps what was said, for clients whose connection breaks.

        `door` is the name of the one whose requests `drain` performs; `nodes` are those of a fleet.
        """
        self._nodes = nodes
        self.door = door
        self._drain = drain
        self._service = drain.service
        self._sessions = sessions
        self._streams = SessionStreams(drain, sessions, settings, redelivery)
        self._keep_alive = keep_alive

    async def post(self, message: LegacyMessage | Batch, head: Head, http: HttpRequest) -> None:
        accepts = head.accepts
        if isinstance(message, Request) and message.method == "initialize":
            await self._open_session(message, accepts, http)
            return
        id_ = message.id if isinstance(message, Request) else NULL
        session = None if head.session is None else self._find(head.session, http, id_)
        if isinstance(message, Request):
            client = _sessionless(http.principal, head) if session is None else session.client
            await self._request(message, client, session, accepts, http)
        elif isinstance(message, Batch):
            await self._batch(message, session, accepts, http)
        else:
            if session is not None:
                _take(session, message)
            await http.answer(202)

    async def stream(self, token: bytes, event: bytes | None, http: HttpRequest) -> None:
        """Serve the GET of a session: its stream of notifications, or the rest of an answer's. A checkpoint."""
        await self._streams.serve(self._find(token, http), event, http)

    async def delete(self, token: bytes, http: HttpRequest) -> None:
        self._sessions.end(self._find(token, http))
        await self._sessions.kept()  # who is told that it is over must not find it alive again, whatever ends us
        await http.answer(204)

    def _find(self, token: bytes, http: HttpRequest, id_: bytes = NULL) -> HttpSession:
        session = self._sessions.find(token, http.principal, self.door)
        if session is None:
            raise refusal_of(404, "Session not found", id_)
        return session

    async def _open_session(self, request: Request, accepts: Accepts, http: HttpRequest) -> None:
        """Answer `initialize`; a session begins only with a result."""
        try:
            asked = read_initialize(request.params)
        except InvalidArguments as error:
            await _respond(http, accepts, failure(request.id, error).body)
            return
        principal = http.principal
        client = asked.client(principal)
        answer = await self._answer(_exchange(request, client, None, None), request.key, None)
        if not answer.good:
            await _respond(http, accepts, answer.body)
            return
        session = self._sessions.open(
            principal=principal,
            version=client.version,
            client_name=client.name,
            client_version=asked.client_info.version,
            capabilities=client.capabilities,
            told=self._service.revisions,
            door=self.door,
        )
        await _respond(http, accepts, answer.body, ((SESSION, session.token),))

    async def _request(
        self,
        request: Request,
        client: Client,
        session: HttpSession | None,
        accepts: Accepts,
        http: HttpRequest,
    ) -> None:
        if request.method in _HERE:
            await _respond(http, accepts, _answer_here(request, session))
            return
        if is_stream := request.method in STREAMS:
            http.end_with_credential(None)
        late = self._keep_alive.add(http) if accepts.stream_named else None
        if late is not None and session is not None and not is_stream:
            late.tracked = partial(self._streams.track, session, request.id)
        try:
            exchange = _exchange(request, client, session, late)
            exchange.lines = http.fields.lines
            answer = await self._answer(exchange, request.key, session, http.leaving if is_stream else None)
        finally:
            if late is not None:
                self._keep_alive.remove(late)
        if is_stream and http.leaving.is_set:
            raise ClientGone
        if late is not None and late.committed:
            await late.finish(answer.body)
        elif self._nodes is None or not await self._nodes.answer_elsewhere(answer.life, http, request.id):
            await _respond(http, accepts, answer.body)

    async def _answer(
        self, exchange: Exchange, key: Key, session: HttpSession | None, leaving: Leaving | None = None
    ) -> Answer:
        """`leaving`: the request is cancelled when its client leaves."""
        # Of two requests with the same id, the newer one is the one that can be cancelled; both are answered.
        with trio.CancelScope() as scope, nullcontext() if leaving is None else leaving.ends(scope):
            if session is not None:
                session.in_flight[key] = scope
            try:
                return await self._drain.answer(scope, exchange)
            finally:
                if session is not None:
                    if session.in_flight.get(key) is scope:
                        del session.in_flight[key]
                    self._sessions.touch(session)
        cancelled = Answer(jsonrpc.failure(exchange.id, REQUEST_CANCELLED, "the request was cancelled"), good=False)
        return self._drain.last_answer(scope, exchange) or cancelled

    async def _batch(self, batch: Batch, session: HttpSession | None, accepts: Accepts, http: HttpRequest) -> None:
        if session is None or session.client.version != BATCH_VERSION:
            raise refusal_of_message(NO_BATCHES)
        answers = [b""] * len(batch.messages)
        async with trio.open_nursery() as nursery:
            for place, message in enumerate(batch.messages):
                nursery.start_soon(self._answer_part, message, session, answers, place)
        bodies = [body for body in answers if body]
        if bodies:
            await _respond(http, accepts, b"[" + b",".join(bodies) + b"]")
        else:
            await http.answer(202)

    async def _answer_part(
        self, message: LegacyMessage | Invalid, session: HttpSession, answers: list[bytes], place: int
    ) -> None:
        if isinstance(message, Invalid):
            answers[place] = message.answer()
        elif not isinstance(message, Request):
            _take(session, message)
        else:
            if message.method in _HERE:
                answers[place] = _answer_here(message, session)
            else:
                exchange = _exchange(message, session.client, session, None)
                answers[place] = (await self._answer(exchange, message.key, session)).body


def _exchange(request: Request, client: Client, session: HttpSession | None, voice: Voice | None) -> Exchange:
    state = SessionState() if session is None else session.state
    return Exchange(client, request.id, request.method, request.params, voice=voice, session=state)


def _answer_here(request: Request, session: HttpSession | None) -> bytes:
    """Answer what belongs to the transport, or is not there in this era."""
    if request.method == "ping":
        return jsonrpc.success(request.id, b"{}")
    if request.method != "logging/setLevel" or session is None:
        return failure(request.id, UnknownMethod(f"{request.method} is not possible here")).body
    try:
        session.state.log_level = read_level(request.params)
    except InvalidArguments as error:
        return failure(request.id, error).body
    return jsonrpc.success(request.id, b"{}")


def _sessionless(principal: Principal, head: Head) -> Client:
    """Return who asks without a session. Whoever does not say a revision has agreed on none: a script, a shell.

    The specification would assume 2025-03-26, whose strict parsers want results cut down for them; those always have a
    session.
    """
    return Client(principal=principal, version=legacy_version(head) or LATEST_LEGACY)


def _take(session: HttpSession, message: Notification | Response) -> None:
    if isinstance(message, Response):
        session.questions.on_answer(message.key, message.result, message.error)
        return
    if message.method == PROGRESS:
        session.questions.on_progress(message.params)
    if message.method != "notifications/cancelled":
        return
    key, reason = read_cancelled(message.params)
    if key is not None and not session.cancel(key, reason):
        session.questions.on_cancelled(key)


async def _respond(http: HttpRequest, accepts: Accepts, body: bytes, lines: Lines = ()) -> None:
    if accepts.json:
        await http.answer(200, body, lines)
    else:
        await EventStream(http).answer(body, lines)
