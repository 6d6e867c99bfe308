"""`/api/events`: what happens, as it happens, and from where a reader has left off.

- As server-sent events, or for clients that only have WebSockets as messages: the data of an event is a message there.
- Every reader keeps a place of its own in the log of events, so a slow one makes nothing grow. One that is overtaken,
  or was there in an earlier life of the daemon, gets `reset`: it reads what it needs anew.
- A member hears of what is theirs (`supervisor/events/event.py`), by the configuration as it is now.
- A stream lasts as long as the credential that it was opened with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
import trio

from actors.errors import SupervisorError, TooManyCalls
from actors.kit import Shares
from supervisor.events.event import DaemonEvent, EventReader, encode, one_line, timestamp
from supervisor.front.dispatch import EVENTS_PATH
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import WebSocket
from supervisor.front.http.elsewhere import ForwardedRequest
from supervisor.front.http.streams import EventStream, cancel_when_set
from supervisor.front.pages.app import NO_PAGE, error_body
from supervisor.front.pages.event_frames import LINES, EventFrame, SendFrames, send_lines
from supervisor.front.pages.fleet_events import FleetEvents, OwnEvents
from supervisor.front.pages.rights import admits
from supervisor.front.pages.sockets import read_query, serve_socket
from supervisor.front.pages.view import View
from supervisor.service.events.own import Hearing

MEDIA_TYPE: Final = "text/event-stream"
RETRY_MS: Final = 2000
GATHER_S: Final = 0.05
"""What comes in this time is sent at once."""
MAX_AT_ONCE: Final = 100
"""Events that are looked at in a turn."""
_BUSY: Final = ((b"retry-after", b"5"),)
_LAST: Final = b"last-event-id"


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`after`: the id of the last event that the reader has, as `Last-Event-ID`, which goes before it.

    `brief`: nothing but the `id` and `type` of events, for whoever reads the rest elsewhere, as the dashboard does. Of
    those that come together the newest of each kind will do. `here`: of a fleet this node alone.
    """

    after: str = ""
    brief: bool = False
    here: bool = False


STREAMS: Final[Mapping[str, tuple[str, type[msgspec.Struct]]]] = {
    f"GET {EVENTS_PATH}": (
        "Tell every event as it happens, as server-sent events: see `docs/reference/events.md`.",
        EventsQuery,
    ),
    f"WS {EVENTS_PATH}": ("Tell the same over a WebSocket.", EventsQuery),
}
"""What there is, what it does, and its parameters."""


class EventStreams:
    """Serves the streams, so many at a time."""

    def __init__(self, view: View, keepalive_s: float, limit: int) -> None:
        self._view = view
        self._keepalive_s = keepalive_s
        self._places = Shares(limit)

    async def __call__(self, request: HttpRequest) -> None:
        method = "WS" if request.is_websocket else request.method
        if not admits(self._view.audit, request.requester, "WS" if request.is_websocket else "GET", EVENTS_PATH):
            await request.fail(404, NO_PAGE)
            return
        if method not in ("GET", "HEAD", "WS"):
            await request.fail(405, "this address is read with GET")
            return
        if method != "WS" and MEDIA_TYPE.encode() not in (request.fields.lines.get(b"accept") or b"").lower():
            await request.fail(406, f"this is a stream: ask for it with Accept: {MEDIA_TYPE}, or open a WebSocket")
            return
        try:
            wanted = read_query(request, EventsQuery)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        if method == "HEAD":
            await request.answer(200, lines=((b"content-type", MEDIA_TYPE.encode()),))
            return
        if not self._places.has_place(request.principal):
            full = TooManyCalls(self._places.why_not(request.principal, "event streams"))
            await request.refuse(503, error_body(full)[1], _BUSY)
            return
        self._places.add(request.principal)
        try:
            await self._serve(request, wanted)
        finally:
            self._places.remove(request.principal)

    async def _serve(self, request: HttpRequest, wanted: EventsQuery) -> None:
        after = (request.fields.lines.get(_LAST) or b"").decode("latin-1") or wanted.after
        telling: OwnEvents = _Telling(self._view, request, self._keepalive_s, wanted.brief)
        peers, is_forwarded = self._view.fleet.peers, isinstance(request, ForwardedRequest)  # another node reads it
        if peers is not None and not (wanted.here or is_forwarded):
            telling = FleetEvents(peers, request, EVENTS_PATH, telling, brief=wanted.brief)
        await telling.begin(after)  # before the client sees the stream, and thinks that it hears
        if request.is_websocket:
            await serve_socket(request, self._view.closing, lambda socket: telling.run(partial(_say, socket)))
            return
        async with trio.open_nursery() as nursery:
            request.end_with_credential(nursery.cancel_scope)
            nursery.start_soon(cancel_when_set, self._view.closing, nursery.cancel_scope)
            with request.leaving.ends(nursery.cancel_scope):
                if is_forwarded:
                    await request.start(200, LINES)
                    await telling.run(partial(send_lines, request))
                stream = EventStream(request)
                await stream.open()
                await request.send(b"retry: %d\n" % RETRY_MS)
                await telling.run(partial(_send, request, stream))
            nursery.cancel_scope.cancel()
        await request.end()


async def _send(request: HttpRequest, stream: EventStream, frames: Sequence[EventFrame]) -> None:
    if not frames:
        await stream.comment()
        return
    await request.send(b"".join([frame.lines for frame in frames]))


async def _say(socket: WebSocket, frames: Sequence[EventFrame]) -> None:
    await trio.lowlevel.checkpoint()
    for frame in frames:  # pings say that we are there
        await socket.send(frame.data.decode())


class _Telling:
    """One stream."""

    def __init__(self, view: View, request: HttpRequest, keepalive_s: float, brief: bool) -> None:
        self._view = view
        self._log = view.events.log
        self._keepalive_s = keepalive_s
        self._brief = brief
        self._person = request.requester.person
        self._member = None if self._person.may("auditor") else request.principal
        self._number = 0
        self._is_known = True
        self._hearing = Hearing(view.deployment, view.launches.people_of)

    async def begin(self, after: str) -> None:
        """Note that we tell what follows an event, or what happens from now on if `after` is empty."""
        self._view.events.settle()  # calls that have ended are before it
        known = self._view.events.places.read(after, self._member) if after else self._log.newest.value
        self._is_known = known is not None and self._log.has_after(known)
        self._number = known if self._is_known and known is not None else self._log.newest.value
        if self._member is not None:
            await self._view.seen_by(self._person)  # so that it is known who has which launch
        self._reader()

    async def run(self, send: SendFrames) -> None:
        """Tell for ever."""
        await send([self._frame("hello", self._hello()), *([] if self._is_known else [self._reset()])])
        while True:
            await self._tell(send)

    def _hello(self) -> dict[str, object]:
        view, places = self._view, self._view.events.places
        revision = {} if self._member is not None else {"revision": view.catalogue.value.revision}
        start = {"start": places.start, "timestamp": timestamp(view.clock())}
        return {"version": view.version, **start, **revision}

    async def _tell(self, send: SendFrames) -> None:
        """Send what there is, or wait for it; say that we are there, if there is nothing for long."""
        with trio.move_on_after(self._keepalive_s) as quiet:
            await self._log.wait_after(self._number)
            if self._log.newest.value < self._number + MAX_AT_ONCE:
                await trio.sleep(GATHER_S)
        if quiet.cancelled_caught:
            await send([])
        if not self._log.has_after(self._number):
            self._number = self._log.newest.value
            await send([self._reset()])
            return
        if self._brief and self._member is None:
            events = self._log.newest_of_each_kind(self._number)
            self._number = self._log.newest.value
        else:
            events = self._log.after(self._number, MAX_AT_ONCE)
            self._number += len(events)
        if frames := [*self._frames(events)]:
            await send(frames)

    def _frames(self, events: Sequence[DaemonEvent]) -> Iterator[EventFrame]:
        places, reader = self._view.events.places, self._reader()
        for event in events:
            data = None if reader is None else reader.hears(event)
            if reader is None or data is not None:
                id_ = places.show(event.number, self._member)
                told = one_line({"id": id_, "type": event.type}) if self._brief else encode(event, id_, data)
                yield EventFrame(id_, event.type, told)

    def _reset(self) -> EventFrame:
        return self._frame("reset", {"start": self._view.events.places.start})

    def _frame(self, name: str, data: dict[str, object]) -> EventFrame:
        """Return a frame that is about the stream itself: a reader goes on behind the event of its id."""
        id_ = self._view.events.places.show(self._number, self._member)
        return EventFrame(id_, name, one_line({"id": id_, "type": name, **data}))

    def _reader(self) -> EventReader | None:
        """Return what decides what a member hears now; None for those who hear everything."""
        if self._member is None:
            return None
        return self._hearing.reader(self._person)
