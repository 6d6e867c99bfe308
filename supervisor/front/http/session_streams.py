"""The GET of a legacy session over HTTP: the stream of its notifications, one at a time."""

from __future__ import annotations

import trio

from supervisor.front.edge.asgi import Receive
from supervisor.front.http.exchange import EventStream
from supervisor.front.http.sessions import HttpSession, Sessions
from supervisor.front.http.settings import HttpSettings
from supervisor.front.http.streams import notify
from supervisor.front.mcp.listen import Watch, told_of
from supervisor.service.drain import RequestDrain


class SessionStreams:
    """The streams of the sessions at one door."""

    def __init__(self, drain: RequestDrain, sessions: Sessions, settings: HttpSettings) -> None:
        self._drain = drain
        self._sessions = sessions
        self._settings = settings

    async def serve(self, session: HttpSession, stream: EventStream, receive: Receive) -> None:
        """Tell a client what changes until it is gone or its session over; an older stream of it ends. A checkpoint."""
        if session.stream is not None:
            session.stream.cancel()
        # Set before anything waits, so that of two streams opened at once one ends the other.
        session.stream = scope = trio.CancelScope()
        try:
            await stream.open()
            with scope:
                await self._notify(session, stream, receive)
        finally:
            if session.stream is scope:
                session.stream = None
        await stream.close()

    async def _notify(self, session: HttpSession, stream: EventStream, receive: Receive) -> None:
        settings = self._settings
        watch = Watch(
            self._drain.service,
            session.client.principal,
            told=session.told,
            updates=session.updates,
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
            message=told_of,
            go_on=go_on,
            closing=self._drain.closing,
            keepalive_s=settings.sse_keepalive_s,
        )
