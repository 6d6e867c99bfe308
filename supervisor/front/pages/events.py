"""Events for operators: as they happen (`/api/events`), and those that a sink has kept in the store
(`/api/events/kept`).

- As server-sent events, or for clients that only have WebSockets as messages: the data of an event is a message there.
- Every reader keeps a place of its own in the log of events, so a slow one makes nothing grow. One that is overtaken,
  or was there in an earlier life of the daemon, gets `reset`: it reads what it needs anew.
- A member hears of what is theirs (`supervisor/events/event.py`), by the configuration as it is now.
- A stream lasts as long as the credential that it was opened with.
- Of a fleet the events of all nodes are one stream, which can be taken up again at any of them. Each node numbers its
  own events; the id of one in the stream has the place in those of each node: `a=ID,b=ID`. So whoever comes back with
  it, to whichever node, gets from each what followed. Where a node has come or gone there may have been events that
  nobody can tell any more: then `reset` says so. From node to node they go in lines of JSON.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode

import msgspec
import trio

from actors.errors import SupervisorError, TooManyCalls
from actors.kit import Pauses, Shares
from supervisor import operations
from supervisor.events.event import DaemonEvent, EventReader, encode, one_line, timestamp
from supervisor.fleet.engine import Node
from supervisor.fleet.links.requests import SentRequest
from supervisor.fleet.peers import Peers
from supervisor.front.admission import TICKET
from supervisor.front.dispatch import EVENTS_PATH
from supervisor.front.edge.request import HttpRequest
from supervisor.front.edge.websocket import Handshake, WebSocket
from supervisor.front.http.elsewhere import ForwardedRequest, head_of
from supervisor.front.http.streams import EventStream, cancel_when_set
from supervisor.front.pages.app import NO_PAGE, error_body
from supervisor.front.pages.performing import performs
from supervisor.front.pages.requests import S, admits, decode
from supervisor.front.pages.view import View
from supervisor.front.websocket import choose_subprotocol
from supervisor.host.workbench import beside
from supervisor.service.events.own import Hearing

_LINES: Final = ((b"content-type", b"application/x-ndjson"),)
_MAX_LINE_BYTES: Final = 16_777_216
"""Of one event of another node."""
_LINE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT: Final = msgspec.json.Decoder(str)


class EventFrame(NamedTuple):
    """One event as it is sent: `data` is a JSON object in one line, which has its `id` and its type, the `name`."""

    id: str
    name: str
    data: bytes

    @property
    def lines(self) -> bytes:
        """It as a server-sent event."""
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (self.id.encode(), self.name.encode(), self.data)

    def at_node(self, node: str, id_: str, **members: object) -> EventFrame:
        """Return it as an event of a fleet, with an id of that, and more members."""
        own = {name: value for name, value in _LINE.decode(self.data).items() if name not in ("id", "type")}
        return EventFrame(id_, self.name, one_line({"id": id_, "type": self.name, "node": node, **own, **members}))


SendFrames = Callable[[Sequence[EventFrame]], Awaitable[None]]
"""Sends some; none says that we are there. A checkpoint."""


async def _send_lines(request: HttpRequest, frames: Sequence[EventFrame]) -> None:
    """Send events to the node that asks for them. A line without any says that we are there."""
    await request.send(b"".join([frame.data + b"\n" for frame in frames]) or b"\n")


async def read_lines(sent: SentRequest, take: SendFrames) -> None:
    """Hand over the events of another node until there are no more of them.

    Raises what `SentRequest` raises, and `ValueError` or `MsgspecError` for what are no events.
    """
    rest = b""
    while (part := await sent.next()) is not None:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > _MAX_LINE_BYTES:
            raise ValueError("an event of another node is too large")
        if frames := [_frame_of(line) for line in lines if line]:
            await take(frames)


def _frame_of(line: bytes) -> EventFrame:
    told = _LINE.decode(line)
    try:
        return EventFrame(_TEXT.decode(told["id"]), _TEXT.decode(told["type"]), line)
    except KeyError:
        raise ValueError("an event of another node has no id") from None


_HELLO_S: Final = 2.0
"""For so long a stream waits at its beginning for nodes that do not answer."""
_LOOK_S: Final = 0.5
"""How soon it is seen that a node has come or gone."""
_MAX_NODES: Final = 32
"""Whose events are in one stream; of a larger fleet each reader hears so many nodes."""
_HELLO: Final = "hello"
_ACCEPT: Final = [(b"accept", b"text/event-stream")]
_OF_NODE: Final = "="
_NEXT: Final = ","


class OwnEvents(Protocol):
    """The stream of this node alone."""

    async def begin(self, after: str) -> None:
        """Note that it tells what follows an event, or what happens from now on if `after` is empty."""

    async def run(self, send: SendFrames) -> None:
        """Tell for ever, a `hello` first."""


class FleetEvents:
    """Implements `OwnEvents` for a whole fleet. `request` is whose stream it is, at the address `path`."""

    def __init__(self, peers: Peers, request: HttpRequest, path: str, own: OwnEvents, *, brief: bool) -> None:
        self._peers = peers
        self._request = request
        self._path = path
        self._own = own
        self._brief = brief
        self._places: dict[str, str] = {}
        self._reading: dict[str, trio.CancelScope] = {}
        self._lives: dict[str, str] = {}
        self._greeted = trio.Event()
        self._turn = trio.Lock()
        self._incomplete = False
        self._send: SendFrames
        self._nursery: trio.Nursery

    async def begin(self, after: str) -> None:
        name = self._peers.name
        self._places = _read(after) if _OF_NODE in after else {name: after} if after else {}
        self._incomplete = bool(after) and self._places.keys() != {name, *self._others()}
        for gone in self._places.keys() - {name, *self._others()}:
            del self._places[gone]
        await self._own.begin(self._places.get(name, ""))

    async def run(self, send: SendFrames) -> None:
        self._send = send
        async with trio.open_nursery() as self._nursery:
            begun = [self._follow(node) for node in self._others().values()]
            with trio.move_on_after(_HELLO_S):
                for each in begun:
                    await each.wait()
            self._nursery.start_soon(self._look_for_nodes)
            await self._own.run(self._tell_own)

    def _others(self) -> dict[str, Node]:
        """Return the other nodes by their names."""
        nodes = sorted(self._peers.others(), key=lambda node: node.name)
        return {node.name: node for node in nodes[: _MAX_NODES - 1]}

    def _follow(self, node: Node) -> trio.Event:
        """Begin to read what another node tells; return what is set when it has answered."""
        begun, scope = trio.Event(), trio.CancelScope()
        self._reading[node.name], self._lives[node.name] = scope, node.life
        self._nursery.start_soon(self._read_for_ever, node, scope, begun)
        return begun

    async def _look_for_nodes(self) -> None:
        while True:
            await trio.sleep(_LOOK_S)
            others = self._others()
            for name in [name for name, life in self._lives.items() if name not in others or others[name].life != life]:
                self._reading.pop(name).cancel()
                del self._lives[name]
            gone = self._places.keys() - {self._peers.name, *others}
            for name in gone:
                del self._places[name]
            fresh = others.keys() - self._places.keys() - self._lives.keys()
            begun = [self._follow(node) for name, node in others.items() if name not in self._lives]
            with trio.move_on_after(_HELLO_S):
                for each in begun:
                    await each.wait()
            if gone or fresh:  # one that was started again says so itself
                await self._say_incomplete()

    async def _read_for_ever(self, node: Node, scope: trio.CancelScope, begun: trio.Event) -> None:
        pauses = Pauses()
        with scope:
            while True:
                with suppress(SupervisorError, ValueError, msgspec.MsgspecError):
                    await self._read(node, begun)
                    pauses.reset()
                await trio.sleep(pauses.next())

    async def _read(self, node: Node, begun: trio.Event) -> None:
        query = {"after": self._places.get(node.name, ""), "brief": "true" if self._brief else "false"}
        head = head_of(self._request, f"{self._path}?{urlencode(query)}".encode(), _ACCEPT)
        sent = await self._peers.request(node, head, b"")
        try:
            if (await sent.read_head()).status == 200:
                await read_lines(sent, partial(self._tell_theirs, node.name, begun))
        finally:
            sent.leave()

    # What is told ----------------------------------------------------------------------------------------------------

    async def _tell_own(self, frames: Sequence[EventFrame]) -> None:
        if not frames:
            await self._send([])
            return
        await self._tell(self._peers.name, frames)
        if not self._greeted.is_set():
            self._greeted.set()
            if self._incomplete:
                await self._say_incomplete()

    async def _tell_theirs(self, name: str, begun: trio.Event, frames: Sequence[EventFrame]) -> None:
        for frame in frames:
            if frame.name == _HELLO:
                self._places.setdefault(name, frame.id)
                begun.set()
        await self._greeted.wait()  # it is said first which nodes are told of
        await self._tell(name, [frame for frame in frames if frame.name != _HELLO])

    async def _tell(self, name: str, frames: Sequence[EventFrame]) -> None:
        """Send events of one node. Whoever has the last of them has all that were sent before."""
        async with self._turn:
            told = []
            for frame in frames:
                self._places[name] = frame.id
                more = {"nodes": sorted(self._places)} if frame.name == _HELLO else {}
                told.append(frame.at_node(name, self._id(), **more))
            if told:
                await self._send(told)

    async def _say_incomplete(self) -> None:
        async with self._turn:
            id_ = self._id()
            await self._send([EventFrame(id_, "reset", one_line({"id": id_, "type": "reset"}))])

    def _id(self) -> str:
        return _NEXT.join(f"{name}{_OF_NODE}{place}" for name, place in sorted(self._places.items()))


def _read(id_: str) -> dict[str, str]:
    """Return the places by the names of nodes."""
    pairs = (part.partition(_OF_NODE) for part in id_.split(_NEXT)[:_MAX_NODES])
    return {name: place for name, _, place in pairs}


_MEDIA_TYPE: Final = "text/event-stream"
_RETRY_MS: Final = 2000
_GATHER_S: Final = 0.05
"""What comes in this time is sent at once."""
_MAX_AT_ONCE: Final = 100
"""Events that are looked at in a turn."""
_BUSY: Final = ((b"retry-after", b"5"),)
_LAST: Final = b"last-event-id"


_GOING_AWAY: Final = 1001
"""RFC 6455 section 7.4.1."""
_Tell = Callable[[WebSocket], Awaitable[None]]


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


def read_query(request: HttpRequest, type_: type[S]) -> S:
    """Return the parameters of a request; a ticket that has opened a WebSocket is none. Raises `InvalidArguments`."""
    pairs = parse_qsl(request.target.decode("ascii").partition("?")[2], keep_blank_values=True)
    return decode([pair for pair in pairs if not (request.is_websocket and pair[0] == TICKET)], type_)


async def serve_socket(request: HttpRequest, closing: trio.Event, tell: _Tell) -> None:
    """Accept a WebSocket and tell until the client leaves or `closing` is set. Raises `HttpProtocolError`.

    A browser that offers subprotocols, as a page does to show a token, takes no answer without one of them.
    """
    handshake = Handshake(request)
    socket = await handshake.accept(choose_subprotocol(handshake.subprotocols))
    with trio.CancelScope() as scope, socket.leaving.ends(scope):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_set, closing, scope)
            nursery.start_soon(_end_after, scope, socket)
            nursery.start_soon(socket.pings)
            await tell(socket)
    if closing.is_set():
        await socket.close(_GOING_AWAY, "the daemon is shutting down")


async def _end_after(scope: trio.CancelScope, socket: WebSocket) -> None:
    while await socket.receive() is not None:
        pass
    scope.cancel()


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
        if method != "WS" and _MEDIA_TYPE.encode() not in (request.fields.lines.get(b"accept") or b"").lower():
            await request.fail(406, f"this is a stream: ask for it with Accept: {_MEDIA_TYPE}, or open a WebSocket")
            return
        try:
            wanted = read_query(request, EventsQuery)
        except SupervisorError as error:
            await request.refuse(*error_body(error))
            return
        if method == "HEAD":
            await request.answer(200, lines=((b"content-type", _MEDIA_TYPE.encode()),))
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
            await serve_socket(request, self._view.closing, lambda socket: telling.run(partial(_say_frames, socket)))
            return
        async with trio.open_nursery() as nursery:
            request.end_with_credential(nursery.cancel_scope)
            nursery.start_soon(cancel_when_set, self._view.closing, nursery.cancel_scope)
            with request.leaving.ends(nursery.cancel_scope):
                if is_forwarded:
                    await request.start(200, _LINES)
                    await telling.run(partial(_send_lines, request))
                stream = EventStream(request)
                await stream.open()
                await request.send(b"retry: %d\n" % _RETRY_MS)
                await telling.run(partial(_send, request, stream))
            nursery.cancel_scope.cancel()
        await request.end()


async def _send(request: HttpRequest, stream: EventStream, frames: Sequence[EventFrame]) -> None:
    if not frames:
        await stream.comment()
        return
    await request.send(b"".join([frame.lines for frame in frames]))


async def _say_frames(socket: WebSocket, frames: Sequence[EventFrame]) -> None:
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
            if self._log.newest.value < self._number + _MAX_AT_ONCE:
                await trio.sleep(_GATHER_S)
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
            events = self._log.after(self._number, _MAX_AT_ONCE)
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


_MAX_EVENTS: Final = 500
"""Of one page."""
_MAX_CHARS: Final = 200


class KeptEventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events: of a `type`, which may have a `*`, or of a launch of a `server`. `before` is the `next` of the
    page before.
    """

    type: Annotated[str, msgspec.Meta(max_length=_MAX_CHARS)] = ""
    server: Annotated[str, msgspec.Meta(max_length=_MAX_CHARS)] = ""
    before: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_EVENTS)] = 100


@performs(operations.KEPT_EVENTS)
async def kept_events(view: View, query: KeptEventsQuery) -> bytes:
    """Show the events that a sink has kept in the store, the newest first, and the `next` to go on before."""
    rows = await view.kept_events(query.limit + 1, query.before, query.type, query.server)
    shown = rows[: query.limit]
    following = shown[-1][0] if len(rows) > query.limit else None
    text = await beside(lambda: b",".join([payload for _, payload in shown]))
    return b'{"events":[%s],"next":%s}' % (text, msgspec.json.encode(following))
