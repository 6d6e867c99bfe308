"""MCP over Streamable HTTP for clients of every revision.

Rules of this file:
- Nothing is known of a request's era before its body is read; what can be refused without the body is refused first
  (method, content type, `Accept`, announced length).
- The guard for `Host` and `Origin` runs before this, for every route of the daemon.
- A vanished client is no error, and bugs behind the service are answered by its border.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import trio

from actors.errors import SupervisorError, UnknownDoor
from actors.kit.decoding import decode_in_thread
from actors.protocol.wire.mirrors import Mirror
from actors.protocol.wire.weight import LARGE_BYTES
from supervisor.config import Settings
from supervisor.front.calls import calls_a_tool
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.request import BodyLimits, HttpRequest, Lines, TooLate
from supervisor.front.http.elsewhere import RequestNodes
from supervisor.front.http.heads import (
    Head,
    HttpRefusal,
    disagreement,
    is_modern,
    refusal,
    refusal_for_error,
    refusal_of,
    refusal_of_message,
    scan,
)
from supervisor.front.http.legacy import LegacyFront
from supervisor.front.http.modern import ModernFront
from supervisor.front.http.sessions import SWEEP_S, Sealer, SessionMemory, Sessions
from supervisor.front.http.streams import KeepAlive, Redelivery
from supervisor.front.listen import StreamLimit
from supervisor.front.messages import NULL, Invalid, Message, ModernRequest, Notification, Request, read
from supervisor.service.doors.addresses import chosen_by
from supervisor.service.drain import RequestDrain
from supervisor.service.port import Door, Doors, Service

_ALLOW: Final[Lines] = ((b"allow", b"GET, POST, DELETE"),)
_PAGES: Final = b"/ui"
"""Where a browser is sent that asks for an address of MCP."""
_ALLOW_POST: Final[Lines] = ((b"allow", b"POST"),)


class _Fronts(NamedTuple):
    """What serves one door."""

    service: Service
    legacy: LegacyFront
    modern: ModernFront


class McpHttp:
    """Serves the requests at every door. `run` has to run as long as it does."""

    def __init__(
        self,
        drain: RequestDrain,
        *,
        sealer: Sealer,
        doors: Doors,
        settings: Settings | None = None,
        now: Callable[[], float] = time.time,
        memory: SessionMemory | None = None,
        limit: StreamLimit | None = None,
    ) -> None:
        """`drain` performs the requests; all streams end gracefully when it begins. `now`: wall time in unix seconds,
        for session ids. `doors` are those below the path, too.

        `memory` is of sessions that have ended. `limit` counts subscriptions.
        """
        settings = settings or Settings()
        self._settings = settings
        self._body_limits = BodyLimits(settings.max_body_bytes, settings.body_timeout_s)
        self._keep_alive = KeepAlive(settings.sse_keepalive_s)
        self._redelivery = Redelivery(settings)
        memory = memory or SessionMemory()
        self.sessions = Sessions(sealer, settings, memory, now=now)
        peers = memory.peers
        self._nodes = None if peers is None else RequestNodes(peers, self.sessions, drain.closing)
        self._drain = drain
        self._limit = limit or StreamLimit()
        self._doors = doors
        self._fronts: WeakKeyDictionary[Door, _Fronts] = WeakKeyDictionary()

    async def run(self) -> None:
        """Keep late answers alive and end idle sessions, until cancelled. Without it, late ones stay silent."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._sweep)
            await self._keep_alive.run()

    async def _sweep(self) -> None:
        while True:
            await trio.sleep(SWEEP_S)
            self.sessions.sweep()
            self._redelivery.sweep()

    async def serve(self, name: str, request: HttpRequest) -> None:
        head, method = scan(request.fields), request.method
        try:
            fronts = await self._behind(name, request)
            if method == "POST":
                message = await self._read(head, request)
                if request.lacking is not None and calls_a_tool(message, name):
                    refused = request.lacking(message.id if isinstance(message, Request) else NULL)
                    raise HttpRefusal(refused.status, refused.body, refused.lines)
                if isinstance(message, Request):
                    client = message.name if isinstance(message, ModernRequest) else head.session
                    request.come_as(client)
                await self._serve(fronts, message, head, request)
            elif method not in {"GET", "DELETE"}:
                raise refusal_of(405, "use POST, GET or DELETE", lines=_ALLOW)
            elif request.has_body:
                raise refusal_of(400, f"a {method} has no body here")
            elif method == "GET" and head.session is None and b"text/html" in request.fields.lines.get(b"accept", b""):
                await request.answer(303, lines=((b"location", _PAGES),))  # a person with a browser
            elif head.session is None:
                stream = "a stream needs a session, and a client of HTTP+SSE `mcpvisor stdio`"
                missing = stream if method == "GET" else "there is no session to end"
                raise refusal_of(405, missing, lines=_ALLOW_POST)
            elif await self._is_elsewhere(fronts, head.session, request):
                pass
            elif method == "DELETE":
                await fronts.legacy.delete(head.session, request)
            elif not head.accepts.stream:
                raise refusal_of(406, "accept text/event-stream")
            else:
                await fronts.legacy.stream(head.session, head.last_event, request)
        except HttpRefusal as refusing:
            await request.answer(refusing.status, refusing.body, refusing.lines)

    async def _behind(self, name: str, request: HttpRequest) -> _Fronts:
        """Return what serves a door for whoever asks, made when it is used first."""
        try:
            door = await self._doors.find_for(request.requester.person, name, *chosen_by(request.target))
        except UnknownDoor as error:
            raise refusal_for_error(error) from None
        fronts = self._fronts.get(door)
        if fronts is None:
            drain, settings, alive = self._drain.behind(door.service), self._settings, self._keep_alive
            fronts = self._fronts[door] = _Fronts(
                door.service,
                self._legacy(drain, door.name),
                ModernFront(drain, settings=settings, keep_alive=alive, limit=self._limit, nodes=self._nodes),
            )
        return fronts

    def _legacy(self, drain: RequestDrain, door: str) -> LegacyFront:
        return LegacyFront(
            drain,
            self.sessions,
            settings=self._settings,
            keep_alive=self._keep_alive,
            redelivery=self._redelivery,
            nodes=self._nodes,
            door=door,
        )

    async def _is_elsewhere(self, fronts: _Fronts, token: bytes, request: HttpRequest, id_: bytes = NULL) -> bool:
        """Have the node of a session answer a request of it; False if that is this one. Raises `HttpRefusal`."""
        return self._nodes is not None and await self._nodes.answer_session(request, token, fronts.legacy.door, id_)

    async def _read(self, head: Head, request: HttpRequest) -> Message:
        if not head.is_json:
            raise refusal_of(415, "the body must be application/json")
        if not (head.accepts.json or head.accepts.stream):
            raise refusal_of(406, "accept application/json")
        try:
            body = await request.body(self._body_limits)
        except SupervisorError as error:
            raise refusal_for_error(error) from None
        except TooLate as error:
            raise refusal_of(408, str(error)) from None
        if self._nodes is not None:
            request.content = body
        return read(body) if len(body) < LARGE_BYTES else await decode_in_thread(partial(read, body))

    async def _serve(self, fronts: _Fronts, message: Message, head: Head, request: HttpRequest) -> None:
        if (wrong := refusal(head, message)) is not None:
            raise refusal_of_message(wrong)
        if isinstance(message, ModernRequest):
            if message.method == "tools/call" and message.named is not None:
                mirrors = await fronts.service.mirrors_of(message.named)
                if mirrors and (wrong := await _disagreement(mirrors, message, request.fields)) is not None:
                    raise refusal_of_message(wrong)
            await fronts.modern.serve(message, head.accepts, request)
        elif isinstance(message, Notification) and is_modern(head, message):
            await request.answer(202)
        else:
            assert not isinstance(message, Invalid), "what is invalid has its refusal"
            id_ = message.id if isinstance(message, Request) else NULL
            if head.session is not None and await self._is_elsewhere(fronts, head.session, request, id_):
                return
            await fronts.legacy.post(message, head, request)


async def _disagreement(mirrors: tuple[Mirror, ...], message: ModernRequest, fields: Fields) -> Invalid | None:
    if len(message.params) < LARGE_BYTES:
        return disagreement(mirrors, message, fields)
    return await decode_in_thread(partial(disagreement, mirrors, message, fields))
