"""`GET /api/events` as server-sent events: what happens, as it happens, and from where a reader has left off.

- Every reader keeps a place of its own in the log of events, so a slow one makes nothing grow. One that is overtaken,
  or was there in an earlier life of the daemon, gets `reset`: it reads what it needs anew.
- A member hears of what is theirs (`supervisor/events/audience.py`), by the configuration as it is now.
- A stream lasts as long as the credential that it was opened with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

import msgspec
import trio

from actors.errors import SupervisorError, TooManyCalls
from actors.kit import Shares
from actors.launch import is_own
from supervisor.events.audience import EventReader
from supervisor.events.event import DaemonEvent, encode, one_line, timestamp
from supervisor.front.dispatch import EVENTS_PATH
from supervisor.front.edge.request import HttpRequest
from supervisor.front.http.event_stream import EventStream, cancel_when_set
from supervisor.front.pages.api import View
from supervisor.front.pages.app import NO_PAGE, error_body
from supervisor.front.pages.requests import decode
from supervisor.front.pages.rights import admits
from supervisor.servers.deployment import Deployment
from supervisor.service.realms import launches_of, servers_by

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

    `brief`: nothing but the `id` and `type` of each event, for whoever reads the rest elsewhere, as the dashboard does.
    """

    after: str = ""
    brief: bool = False


STREAMS: Final[Mapping[str, tuple[str, type[msgspec.Struct]]]] = {
    EVENTS_PATH: (
        "Tell every event as it happens, as server-sent events: see `docs/reference/events.md`.",
        EventsQuery,
    )
}
"""Where they are, what they do, and their parameters."""


class EventStreams:
    """Serves the streams, so many at a time."""

    def __init__(self, view: View, keepalive_s: float, limit: int) -> None:
        self._view = view
        self._keepalive_s = keepalive_s
        self._places = Shares(limit)

    async def __call__(self, request: HttpRequest) -> None:
        if not admits(self._view.audit, request.requester, "GET", EVENTS_PATH):
            await request.fail(404, NO_PAGE)
            return
        if request.method not in ("GET", "HEAD"):
            await request.fail(405, "this address is read with GET")
            return
        if MEDIA_TYPE.encode() not in (request.fields.lines.get(b"accept") or b"").lower():
            await request.fail(406, f"this is a stream: ask for it with Accept: {MEDIA_TYPE}, or open a WebSocket")
            return
        try:
            wanted = decode(parse_qsl(request.target.decode("ascii").partition("?")[2]), EventsQuery)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        if request.method == "HEAD":
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
        request.end_with_credential()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_set, self._view.closing, nursery.cancel_scope)
            with request.leaving.ends(nursery.cancel_scope):
                await _Telling(self._view, request, self._keepalive_s, wanted.brief).run(after)
            nursery.cancel_scope.cancel()
        await request.end()


class _Telling:
    """One stream."""

    def __init__(self, view: View, request: HttpRequest, keepalive_s: float, brief: bool) -> None:
        self._view = view
        self._log = view.events.log
        self._request = request
        self._stream = EventStream(request)
        self._keepalive_s = keepalive_s
        self._brief = brief
        self._person = request.requester.person
        self._member = None if self._person.may("auditor") else request.principal
        self._number = 0
        self._seen: Deployment | None = None
        self._servers = frozenset[str]()
        self._had = frozenset[str]()
        """Servers that the member has, or had until they were removed."""

    async def run(self, after: str) -> None:
        known = self._view.events.places.read(after, self._member) if after else self._log.newest.value
        is_good = known is not None and self._log.has_after(known)
        self._number = known if is_good and known is not None else self._log.newest.value
        if self._member is not None:
            await self._view.seen_by(self._person)  # so that it is known who has which launch
        self._reader()
        await self._stream.open()
        await self._request.send(b"retry: %d\n%s" % (RETRY_MS, self._frame("hello", self._hello())))
        if not is_good:
            await self._reset()
        while True:
            await self._tell()

    def _hello(self) -> dict[str, object]:
        view, places = self._view, self._view.events.places
        revision = {} if self._member is not None else {"revision": view.catalogue.value.revision}
        start = {"start": places.start, "timestamp": timestamp(view.clock())}
        return {"version": view.version, **start, **revision}

    async def _tell(self) -> None:
        """Send what there is, or wait for it; say that we are there, if there is nothing for long."""
        with trio.move_on_after(self._keepalive_s) as quiet:
            await self._log.wait_after(self._number)
            if self._log.newest.value < self._number + MAX_AT_ONCE:
                await trio.sleep(GATHER_S)
        if quiet.cancelled_caught:
            await self._stream.comment()
        if not self._log.has_after(self._number):
            self._number = self._log.newest.value
            await self._reset()
            return
        events = self._log.after(self._number, MAX_AT_ONCE)
        frames = b"".join(self._frames(events))
        self._number += len(events)
        if frames:
            await self._request.send(frames)

    def _frames(self, events: Sequence[DaemonEvent]) -> Iterator[bytes]:
        places, reader = self._view.events.places, self._reader()
        for event in events:
            data = None if reader is None else reader.hears(event)
            if reader is None or data is not None:
                id_ = places.show(event.number, self._member)
                told = one_line({"id": id_, "type": event.type}) if self._brief else encode(event, id_, data)
                yield b"id: %s\nevent: %s\ndata: %s\n\n" % (id_.encode(), event.type.encode(), told)

    async def _reset(self) -> None:
        await self._request.send(self._frame("reset", {"start": self._view.events.places.start}))

    def _frame(self, name: str, data: dict[str, object]) -> bytes:
        """Return a frame that is about the stream itself: a reader goes on behind the event of its id."""
        id_ = self._view.events.places.show(self._number, self._member)
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (id_.encode(), name.encode(), one_line(data))

    def _reader(self) -> EventReader | None:
        """Return what decides what a member hears now; None for those who hear everything."""
        if self._member is None:
            return None
        person, view, deployment = self._person, self._view, self._view.deployment.value
        if self._seen is not deployment:
            self._seen, self._servers = deployment, servers_by(person.rights, deployment)
            self._had = (self._had | self._servers) - (deployment.server_names - self._servers)
        return EventReader(
            principal=self._member,
            user=person.user,
            servers=self._servers,
            gone=self._had - self._servers,
            launches=launches_of(person.rights),
            is_alone=lambda launch: is_own(launch) and view.launches.people_of(launch) == [person.user],
        )
