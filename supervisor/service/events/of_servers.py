"""Events of servers: their types as they listed them, and topics followed by a stream, or else by polls.

- A server that pushes is asked for a stream; one that does not is polled as often as it says, and no more often than
  once a second. One that only sends to addresses has no types here, as there is none that is ours.
- What ends for any other reason than that its server says so is begun again from the last cursor, with pauses: a server
  that fell asleep, was restarted or is away for a while misses nothing that it can replay, and says what it cannot.
- The daemon itself is who asks: all who share a launch share its topics.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta, Struct

from actors.catalogue.names import split_resource
from actors.catalogue.offer import EventType as Offered
from actors.catalogue.snapshot import Catalogue, Entry
from actors.codes import INTERNAL_ERROR, INVALID_PARAMS
from actors.errors import CannotAsk, InvalidArguments, ProtocolViolation, SupervisorError, TooManyCalls, forget_frames
from actors.kit import Address, Latest, Pauses, Reply
from actors.launch import server_of
from actors.messages import CallServer, Note, Question
from actors.principal import LOCAL, ClientKey
from actors.protocol.agreement.capabilities import STREAM, final_code
from actors.protocol.agreement.versions import LATEST_MODERN, META_SUBSCRIPTION
from actors.protocol.changes import MAX_URI_CHARS, SUBSCRIBE, subscribable
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from actors.router import Message as RouterMessage
from supervisor.events.event import timestamp
from supervisor.host.workbench import Workbench
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.asking.exchange import Exchange, SessionState
from supervisor.service.client import Client, Updates
from supervisor.service.events.limits import FINAL, MAX_EVENT_BYTES, MAX_POLLED, REMOVED, TooManyEvents
from supervisor.service.events.sources import SEPARATOR, EventType, Origin, Terminated, Told, Viewpoint, event_name
from supervisor.service.forward import Forwarder, mask_error, within_limits
from supervisor.service.subscriptions import Subscriptions

POLL: Final = "events/poll"
TOLD: Final = "notifications/events/"
SILENT_S: Final = 60.0
"""Twice the time between two heartbeats: a stream on which nothing comes for so long is dead (SEP-3415)."""
FASTEST_S: Final = 1.0
SLOWEST_S: Final = 3600.0
MAX_DRAINS: Final = 20
"""So many answers in a row, each of which says that there is more, are fetched at once."""
LONGEST_PAUSE_S: Final = 60.0
STABLE_S: Final = 60.0
"""What went well for so long is begun again soon."""
_PARAMS_COST: Final = 64
"""So many bytes of an answer cost as much as one that a model wrote."""


class _Polled(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `events/poll`."""

    events: list[msgspec.Raw] = []
    cursor: str | None = None
    truncated: bool = False
    has_more: bool = False
    next_poll_ms: Annotated[float, msgspec.Meta(ge=0)] = 0


_polled: Final = msgspec.json.Decoder(_Polled)


class ServerEvents:
    """Implements `Source`. `timeout_s` says how long a server may take to answer; `catalogue` is the whole one."""

    def __init__(
        self,
        router: Address[RouterMessage],
        catalogue: Latest[Catalogue],
        launches: LaunchNames,
        timeout_s: Callable[[str], float],
        bench: Workbench,
    ) -> None:
        self._router = router
        self._catalogue = catalogue
        self._launches = launches
        self._timeout_s = timeout_s
        self._bench = bench

    def types(self, at: Viewpoint) -> Iterator[EventType]:
        for server, entry in at.visible.catalogue.entries.items():
            for each in entry.event_types.values():
                yield EventType(event_name(server, each.name), each.definition)

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        seen = at.visible.catalogue
        called, _, own = name.partition(SEPARATOR)
        server = seen.names.literal(called)
        entry = seen.entries.get(server) if server is not None else None
        if entry is None or own not in entry.event_types:
            return None
        launch = self._launches.of(entry.server, at.principal)
        return Origin(event_name(entry.server, own), launch, own, arguments, self._timeout_s(entry.server))

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        over: list[Exception] = []

        async def watch(scope: trio.CancelScope) -> None:
            while self._is_there(origin):
                await self._catalogue.wait_newer(self._catalogue.version)
            over.append(Terminated(REMOVED))
            scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, nursery.cancel_scope)
                try:
                    await self._follow(_Following(origin, cursor, told))
                except (Terminated, RemoteError, SupervisorError) as error:
                    over.append(error)
                nursery.cancel_scope.cancel()
        finally:
            self._launches.leave(_identity(origin))
        raise over[0]

    async def _follow(self, following: _Following) -> None:
        pauses = Pauses(FASTEST_S, LONGEST_PAUSE_S)
        while True:
            began, following.confirmed = trio.current_time(), False
            try:
                if self._pushes(following.origin):
                    await self._stream(following)
                    if following.confirmed:  # some hosts end every answer after half a minute
                        pauses.reset()
                else:
                    await self._poll(following)
            except RemoteError as refused:
                forget_frames(refused)
                if refused.error.code == INVALID_PARAMS and following.cursor is not None:
                    following.cursor = None  # some servers refuse a cursor that they do not know any more
                    continue
                if not following.opened:
                    raise
                if refused.error.code in FINAL:
                    raise Terminated(refused.error) from None
                following.told.error(refused.error)
            except SupervisorError as error:
                forget_frames(error)
                if not following.opened:
                    raise
                data = {**error.data(), "outcome": "not_sent", "retryable": True}  # who asks again asks for later
                following.told.error(ErrorObject(error.code, error.message, msgspec.Raw(encode(data))))
            if following.confirmed and trio.current_time() - began > STABLE_S:
                pauses.reset()
            await trio.sleep(pauses.next())

    def _entry(self, launch: str) -> Entry | None:
        return self._catalogue.value.of_launch(launch)

    def _is_there(self, origin: Origin) -> bool:
        """Say whether the server still has the type; of one that is not known now it is not known that it has not."""
        entry = self._entry(origin.launch)
        if entry is None:
            return server_of(origin.launch) in self._catalogue.value.names.servers
        return origin.own in entry.event_types

    def _pushes(self, origin: Origin) -> bool:
        entry = self._entry(origin.launch)
        known: Offered | None = entry.event_types.get(origin.own) if entry is not None else None
        return known is None or "push" in known.delivery

    async def _stream(self, following: _Following) -> None:
        """Follow one stream until it ends. Raises `Terminated`, and what a call raises. A checkpoint."""
        deadline_s = max(SILENT_S, following.origin.timeout_s)
        stream = _Stream(following)
        reply = self._router.request(self._call(following, STREAM, deadline_s, exchange=stream, lasts=True))
        stream.end = partial(reply.abandon, "the subscription is over")
        try:
            await reply.wait()
        except RemoteError as error:
            raise self._shown(error, following.origin) from None
        except TooManyCalls as full:
            raise TooManyEvents(full.message, "streams") from None
        except SupervisorError:
            if stream.terminated is None:
                raise
        if stream.terminated is not None:
            raise Terminated(self._shown(RemoteError(stream.terminated), following.origin).error)
        if not following.opened:
            text = f"server {server_of(following.origin.launch)!r} ended a stream of events that it had not confirmed"
            raise ProtocolViolation(text, server=server_of(following.origin.launch), outcome="completed")

    async def _poll(self, following: _Following) -> None:
        """Poll for ever. Raises what a call raises. A checkpoint."""
        origin, told, drains = following.origin, following.told, 0
        while True:
            try:
                call = self._call(following, POLL, origin.timeout_s, exchange=_Stream(following), maxEvents=MAX_POLLED)
                result = await self._router.ask(call)
            except RemoteError as error:
                raise self._shown(error, origin) from None
            polled = await self._bench.finish(len(result.body) // _PARAMS_COST, _read_polled, origin, result.body)
            every_s = min(SLOWEST_S, max(FASTEST_S, polled.next_poll_ms / 1000))
            told.asked_every(round(every_s * 1000))
            if not following.opened or polled.truncated:
                before = following.cursor if following.cursor is not None and polled.events else polled.cursor
                following.active(before, truncated=polled.truncated)
            for event in polled.events:
                told.event(event, following.cursor)
            following.checked(polled.cursor)
            drains = drains + 1 if polled.has_more and polled.events else 0
            await trio.sleep(every_s if not drains else 0 if drains <= MAX_DRAINS else FASTEST_S)

    def _call(
        self,
        following: _Following,
        method: str,
        deadline_s: float,
        *,
        exchange: _Stream,
        lasts: bool = False,
        **more: int,
    ) -> CallServer:
        origin = following.origin
        params = {"name": origin.own, "arguments": msgspec.Raw(origin.arguments), "cursor": following.cursor, **more}
        return CallServer(
            server=origin.launch,
            method=method,
            members=encode(params)[1:-1],
            name=origin.own,
            exchange=exchange,
            lasts=lasts,
            deadline_s=deadline_s,
            principal=LOCAL,
        )

    def _shown(self, error: RemoteError, origin: Origin) -> RemoteError:
        """Return an error of a server as clients may see it, in the codes of the extension."""
        hide, entry = self._launches.mask(origin.launch, LOCAL), self._entry(origin.launch)
        said = mask_error(within_limits(error), hide).error
        code = said.code if entry is None else final_code(said.code, entry.own.capabilities)
        return RemoteError(msgspec.structs.replace(said, code=code), server_of(origin.launch))


class _Following:
    """How far a topic was followed, by the `cursor` of the server.

    `opened`: it was confirmed; `confirmed`: it was when it was asked for last, too.
    """

    def __init__(self, origin: Origin, cursor: str | None, told: Told) -> None:
        self.origin = origin
        self.cursor = cursor
        self.told = told
        self.opened = self.confirmed = False

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        self.opened = self.confirmed = True
        self.cursor = cursor
        self.told.active(cursor, truncated=truncated)

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        self.cursor = cursor
        self.told.event(occurrence, cursor)

    def checked(self, cursor: str | None) -> None:
        self.confirmed, self.cursor = True, cursor
        self.told.checked(cursor)


class _Stream:
    """Hears what a server says to one request of ours, as it does where that is a stream; implements `Caller`.

    `end` gives it up.
    """

    def __init__(self, following: _Following) -> None:
        self._following = following
        self.terminated: ErrorObject | None = None
        self.end: Callable[[], None] = lambda: None

    @property
    def identity(self) -> ClientKey:
        return _identity(self._following.origin)

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        """Nobody is there to be asked."""
        reply: Reply[msgspec.Raw] = Reply()
        reply.fail(CannotAsk(f"{question.method}: nobody can be asked on a stream of events"))
        return reply

    def visitor(self, question: Question | None = None) -> None:
        del question

    def note(self, note: Note) -> bool:
        following, what = self._following, note.method.removeprefix(TOLD)
        if len(note.params) > 2 * MAX_EVENT_BYTES:
            following.told.error(ErrorObject(INTERNAL_ERROR, f"an event of over {MAX_EVENT_BYTES} bytes was dropped"))
            return True
        params = json.members(note.params)
        cursor = json.read_or(json.STRING, params.get("cursor", b""), None)
        match what:
            case "active":
                following.active(cursor, truncated=bytes(params.get("truncated", b"")) == b"true")
            case "event" if following.opened:
                occurrence = json.with_meta(note.params, META_SUBSCRIPTION, b"")
                following.event(msgspec.Raw(occurrence), cursor)
            case "heartbeat" if following.opened:
                following.checked(cursor)
            case "error":
                following.told.error(_error_of(params))
            case "terminated":
                self.terminated = _error_of(params)
                self.end()
        return True


def _identity(origin: Origin) -> ClientKey:
    """Return who hears of a topic: a client by itself, where servers tell clients apart."""
    return LOCAL, f"{TOLD}{origin.id}"


def _error_of(params: json.Members) -> ErrorObject:
    try:
        return within_limits(RemoteError(jsonrpc.decode_error(params.get("error", json.NO_RAW)))).error
    except ProtocolViolation:
        return ErrorObject(INTERNAL_ERROR, "the server told of an error that cannot be read")


def _read_polled(origin: Origin, body: msgspec.Raw) -> _Polled:
    try:
        return json.read(_polled, body)
    except json.UnreadableJson as error:
        server = server_of(origin.launch)
        text = f"server {server!r} answered a poll for events with what is none: {error}"
        raise ProtocolViolation(text, server=server, outcome="completed") from None


# A changed resource as an event: the type `SERVER:resources/updated` of each server that tells of changes (MCP,
# server/resources, "Subscriptions"), for clients that want to be told by events alone, and to go on behind a cursor.
#
# - A type of that name of the server's own goes before it: sources are asked in their order.
# - The server is subscribed to once for all, as for clients that subscribe by `resources/subscribe`. It is not asked
#   what changed before: where that is not known, as after its restart, it may have changed, and that is told.
# - A resource that changes all the time is told of as often as in the other ways.

UPDATED: Final = "resources/updated"
INTERVAL_S: Final = 0.25
"""Between two events about one resource."""
_URI: Final = {"type": "string", "minLength": 1, "maxLength": MAX_URI_CHARS}
DEFINITION: Final = msgspec.Raw(
    encode(
        {
            "description": "A resource has changed, or may have: read it anew",
            "inputSchema": {
                "type": "object",
                "properties": {"uri": {**_URI, "description": "Which one, by the URI that lists here have of it"}},
                "required": ["uri"],
                "additionalProperties": False,
            },
            "payloadSchema": {
                "type": "object",
                "properties": {"uri": {"type": "string", "description": "The resource, as it was asked for"}},
                "required": ["uri"],
            },
        }
    )
)
ID_BYTES: Final = 12
EXCHANGE_ID: Final = b'"events"'
"""Of a request that no client has made."""


class ResourceArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Which resource: its URI as the server has it, or as lists at these doors have it."""

    uri: Annotated[str, Meta(min_length=1, max_length=MAX_URI_CHARS)]


_arguments: Final = msgspec.json.Decoder(ResourceArguments)


class ResourceUpdates:
    """Implements `Source`. `catalogue` is the whole one, `clock` gives unix seconds."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        catalogue: Latest[Catalogue],
        launches: LaunchNames,
        forward: Forwarder,
        clock: Callable[[], float],
    ) -> None:
        self._subscriptions = subscriptions
        self._catalogue = catalogue
        self._launches = launches
        self._forward = forward
        self._clock = clock

    def types(self, at: Viewpoint) -> Iterable[EventType]:
        entries = at.visible.catalogue.entries
        return [EventType(event_name(name, UPDATED), DEFINITION) for name, entry in entries.items() if _tells(entry)]

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        seen = at.visible.catalogue
        called, _, own = name.partition(SEPARATOR)
        server = seen.names.literal(called)
        entry = seen.entries.get(server) if server is not None else None
        if own != UPDATED or entry is None or not _tells(entry):
            return None
        _read(arguments)
        launch, timeout_s = self._launches.of(entry.server, at.principal), self._forward.timeout_s(entry.server)
        return Origin(event_name(entry.server, UPDATED), launch, UPDATED, arguments, timeout_s, at.principal)

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        del cursor
        uri, server = _read(origin.arguments), server_of(origin.launch)
        named = split_resource(uri)
        own = named[1] if named is not None and named[0] == server else uri
        updates, changed = Updates(), trio.Event()
        updates.resume(lambda: changed.set())
        client = Client(principal=origin.opener, era="modern", version=LATEST_MODERN)
        session = SessionState(updates=updates)
        exchange = Exchange(client=client, id=EXCHANGE_ID, method=SUBSCRIBE, params=json.NO_RAW, session=session)
        try:
            await self._subscriptions.add(exchange, own, server, own, None)
            told.active(None, truncated=False)
            with self._catalogue.on_set(lambda: changed.set()):
                while self._is_there(origin):
                    await changed.wait()
                    changed = trio.Event()
                    if updates.take():
                        told.event(self._occurrence(origin.name, uri), None)
                        await trio.sleep(INTERVAL_S)
            raise Terminated(REMOVED)
        finally:
            updates.end()

    def _is_there(self, origin: Origin) -> bool:
        """Say whether the server still tells of changes. Of one of which nothing is known now that is not known."""
        whole = self._catalogue.value
        entry = whole.of_launch(origin.launch)
        return server_of(origin.launch) in whole.names.servers if entry is None else _tells(entry)

    def _occurrence(self, name: str, uri: str) -> msgspec.Raw:
        said = {"name": name, "timestamp": timestamp(self._clock()), "data": {"uri": uri}}
        return msgspec.Raw(encode({"eventId": secrets.token_urlsafe(ID_BYTES), **said}))


def _tells(entry: Entry) -> bool:
    return subscribable(entry.offer.capabilities)


def _read(arguments: bytes) -> str:
    try:
        return json.read(_arguments, arguments).uri
    except json.UnreadableJson as error:
        raise InvalidArguments(f"the arguments: {error}") from None
