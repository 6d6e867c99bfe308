"""The GET of a legacy session over HTTP: its notifications, one stream at a time, or the rest of an answer's stream.

(MCP 2025-11-25, basic/transports, "Resumability and Redelivery".)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from supervisor.config import Settings
from supervisor.front.edge.leaving import Leaving
from supervisor.front.edge.request import HttpRequest
from supervisor.front.http.answer_stream import PACE_S
from supervisor.front.http.event_stream import EventStream
from supervisor.front.http.heads.refusal import refusal_of
from supervisor.front.http.redelivery import Redelivery, Track
from supervisor.front.http.sessions import HttpSession, Sessions
from supervisor.front.http.streams import notify
from supervisor.front.mcp.listen import ChangePace, Watch, told_of
from supervisor.service.drain import RequestDrain

FIRST_PRIMED: Final = "2025-11-25"
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
        primed = session.client.version >= FIRST_PRIMED
        return self._redelivery.begin(session.digest, request, primed=primed)

    async def serve(self, session: HttpSession, event: bytes | None, request: HttpRequest) -> None:
        """Serve a GET; `event` is the last one that the client has of an answer's stream. A checkpoint."""
        if event is None:
            request.end_with_credential(None)
            await self._follow(session, EventStream(request), request.leaving)
        elif (told := self._redelivery.find(session.digest, event)) is not None:
            go_on, pause_s = partial(self._sessions.touch, session), self._settings.sse_keepalive_s
            await go_on_with(*told, EventStream(request), request.leaving, go_on=go_on, keepalive_s=pause_s)
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
            session.client.principal,
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


async def go_on_with(
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
