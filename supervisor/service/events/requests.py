"""The methods of the Events extension (SEP-3415) at the doors of many servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any, Final, Protocol

import msgspec
import trio

from actors.catalogue.snapshot import Catalogue
from actors.errors import MalformedRequest, UnknownMethod
from actors.kit import Shares, Signal
from actors.principal import Principal
from actors.protocol.agreement.capabilities import SHUTDOWN, STREAM
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.changes import EVENTS_CHANGED
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.jsonrpc import RemoteError, encode
from supervisor.host.pauses import wakes
from supervisor.host.workbench import SMALL_BYTES, Workbench
from supervisor.identity.requester import ORIGIN
from supervisor.metatools.inventory import cursor_of
from supervisor.operations import Role
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.events.journal import Kept, Reading
from supervisor.service.events.limits import (
    HEARTBEAT_S,
    MAX_POLLED,
    MAX_STREAMS,
    REVOKED,
    STALLED_S,
    TooManyEvents,
    UnsupportedDelivery,
    members_of,
)
from supervisor.service.events.sources import KEPT, EventType, Viewpoint, list_result
from supervisor.service.events.topics import Topic, Topics
from supervisor.service.lookup.visible import Visible

LIST: Final = "events/list"
POLL: Final = "events/poll"
SUBSCRIBE: Final = "events/subscribe"
UNSUBSCRIBE: Final = "events/unsubscribe"
LISTED_COST: Final = 16
"""So many bytes of definitions cost as much as one that a model wrote."""
MAX_LISTS: Final = 256
"""Of principals at one door; mostly there is one."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0


class Webhooks(Protocol):
    """Sends events to addresses; see `webhooks`."""

    async def subscribe(self, at: Viewpoint, params: msgspec.Raw) -> dict[str, Any]:
        """Return the members of the result of `events/subscribe`. Raises as `Topics.hold` does, and for the address."""

    async def unsubscribe(self, at: Viewpoint, params: msgspec.Raw) -> dict[str, Any]:
        """Return the members of the result of `events/unsubscribe`."""


Fit = Callable[[Client, bytes], bytes]
"""Makes a result, a JSON object, one for a client."""


class Wanted(msgspec.Struct, frozen=True, rename="camel"):
    """The params that polls and streams have in common; see "Cursor Lifecycle"."""

    name: str
    arguments: msgspec.Raw = json.NO_RAW
    cursor: str | None = None
    max_age_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_events: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def begin(self, topic: Topic, now: float) -> tuple[int, float]:
        """Return behind which number to read, and from which moment on (unix s); `now` likewise."""
        position = topic.position(self.cursor)
        floor = now - self.max_age_ms / 1000 if self.max_age_ms is not None and self.cursor is not None else 0.0
        return (-1 if position is None else position), floor


_EVENT: Final = b'{"jsonrpc":"2.0","method":"notifications/events/event","params":'
_wanted: Final = msgspec.json.Decoder(Wanted)


class EventRequests:
    """Answers them. `visible` is what is seen at the door, `webhooks` None where nothing is sent to addresses.

    `streams` are those of all doors together. `arrive` waits for a server of which nothing is known; `discovery_s` says
    for how long a list waits for servers that are discovered for the first time.
    """

    def __init__(
        self,
        topics: Topics,
        visible: Visible,
        fit: Fit,
        streams: Shares,
        webhooks: Webhooks | None,
        bench: Workbench,
        arrive: Callable[[str, Principal, float], Awaitable[None]],
        discovery_s: Callable[[], float],
    ) -> None:
        self._bench = bench
        self._arrive = arrive
        self._discovery_s = discovery_s
        self._topics = topics
        self._visible = visible
        self._fit = fit
        self._streams = streams
        self._webhooks = webhooks
        self._lists: dict[tuple[Principal, Role], tuple[Catalogue, list[EventType]]] = {}
        self.methods: dict[str, Callable[[Exchange], Awaitable[bytes]]] = {
            LIST: self._list,
            POLL: self._poll,
            STREAM: self._stream,
            SUBSCRIBE: self._webhook,
            UNSUBSCRIBE: self._webhook,
        }

    def _at(self, exchange: Exchange) -> Viewpoint:
        origin = ORIGIN.get()
        role = origin.requester.person.role if origin is not None and origin.requester is not None else "member"
        return Viewpoint(exchange.client.principal, self._visible, role)

    def watch(self, exchange: Exchange, changes: Signal) -> None:
        """Tell a client from now on when what it sees of event types has changed, which `changes` may say.

        Raises `UnknownMethod` where nobody would be told, and what `Updates.hold` does.
        """
        updates, at = exchange.session.updates, self._at(exchange)
        if updates is None:
            raise UnknownMethod("without a session there is nobody to tell of changes")
        if EVENTS_CHANGED in updates:
            return
        seen = self._seen(at)

        def look() -> None:
            nonlocal seen
            before, seen = seen, self._seen(at)
            if seen is not before and seen != before and EVENTS_CHANGED in updates:
                updates.note(EVENTS_CHANGED)

        told = ExitStack()
        updates.hold(EVENTS_CHANGED, told.close)
        updates.used = True
        told.enter_context(changes.on_set(partial(wakes().soon, look)))

    def _seen(self, at: Viewpoint) -> list[EventType]:
        """Return the types that somebody sees: the same list, as long as it has the same in it."""
        catalogue, who = at.visible.catalogue, (at.principal, at.role)
        known = self._lists.get(who)
        if known is None or known[0] is not catalogue:
            if known is None and len(self._lists) >= MAX_LISTS:
                self._lists.clear()
            types = [*self._topics.types(at)]
            known = self._lists[who] = catalogue, known[1] if known is not None and known[1] == types else types
        return known[1]

    async def _list(self, exchange: Exchange) -> bytes:
        at, cursor = self._at(exchange), cursor_of(exchange.params)
        await self._visible.wait_for_discovery(self._discovery_s())
        types = [*self._topics.types(at)]
        size = sum(len(each.definition) for each in types) // LISTED_COST
        modes = KEPT if self._webhooks is None else at.modes
        body = await self._bench.run(size, list_result, types, modes, cursor)
        return self._fit(exchange.client, body)

    async def _webhook(self, exchange: Exchange) -> bytes:
        webhooks = self._webhooks
        if webhooks is None:
            raise UnsupportedDelivery("events are sent to no address here", feature="deliveryMode", value="webhook")
        perform = webhooks.subscribe if exchange.method == SUBSCRIBE else webhooks.unsubscribe
        return self._fit(exchange.client, encode(await perform(self._at(exchange), exchange.params)))

    async def _poll(self, exchange: Exchange) -> bytes:
        wanted = await self._read(exchange)
        async with self._topics.hold(self._at(exchange), wanted.name, wanted.arguments) as topic:
            number, floor = wanted.begin(topic, self._topics.journal.clock())
            reading = topic.after(number, min(wanted.max_events or MAX_POLLED, MAX_POLLED), floor)
            if topic.failing is not None and not reading.events and not reading.truncated:
                raise RemoteError(topic.failing)  # that nothing happened is not known
            return self._fit(exchange.client, _polled(topic, reading))

    async def _stream(self, exchange: Exchange) -> bytes:
        wanted, principal = await self._read(exchange), exchange.client.principal
        if exchange.voice is None:
            raise UnsupportedDelivery("a stream needs Accept: text/event-stream", feature="deliveryMode", value="push")
        if not self._streams.has_place(principal):
            raise TooManyEvents(self._streams.why_not(principal, "streams"), "streams", MAX_STREAMS)
        self._streams.add(principal)
        try:
            at = self._at(exchange)
            async with self._topics.hold(at, wanted.name, wanted.arguments) as topic:
                await EventStream(exchange, topic, self._topics, at).run(wanted)
                ends = {SHUTDOWN: True} if topic.closed and self._topics.ending else {}
        finally:
            self._streams.remove(principal)
        return self._fit(exchange.client, encode({"_meta": {META_SUBSCRIPTION: msgspec.Raw(exchange.id), **ends}}))

    async def _read(self, exchange: Exchange) -> Wanted:
        """Return what a poll or a stream wants; a server of which nothing is known yet is waited for.

        Raises `MalformedRequest`, `HeldElsewhere` for a cursor of another node, and why a server does not come.
        """
        since, principal = trio.current_time(), exchange.client.principal
        try:
            wanted = json.read(_wanted, exchange.params)
        except json.UnreadableJson as error:
            raise MalformedRequest(f"{exchange.method}: {error}") from None
        if wanted.cursor is not None:
            self._topics.journal.check_here(wanted.cursor)
        seen = self._visible.catalogue
        server = seen.names.literal(wanted.name.partition(":")[0])
        if server is not None and server not in seen.entries:
            await self._arrive(server, principal, since)
        return wanted


class EventStream:
    """One stream to a client: tells it of a topic until that ends, or the client has no right to it any more."""

    def __init__(self, exchange: Exchange, topic: Topic, topics: Topics, at: Viewpoint) -> None:
        self._exchange = exchange
        self._topic = topic
        self._topics = topics
        self._at = at
        self._meta = {META_SUBSCRIPTION: msgspec.Raw(exchange.id)}

    async def run(self, wanted: Wanted) -> None:
        topic = self._topic
        number, floor = wanted.begin(topic, self._topics.journal.clock())
        reading, failures = topic.after(number, MAX_POLLED, floor), topic.failures
        begun = reading.events[0].number - 1 if reading.events else reading.head
        await self._say("active", cursor=topic.cursor(begun), truncated=reading.truncated)
        reading = msgspec.structs.replace(reading, truncated=False)
        beat_at = trio.current_time() + HEARTBEAT_S
        while True:
            if not self._topics.allowed(self._at, topic):
                if topic.ended is not None or not self._topics.moved(self._at, topic):
                    await self._say("terminated", error=members_of(topic.ended or REVOKED))
                return
            await self._deliver(reading)
            if topic.failures > failures and topic.failure is not None:
                failures = topic.failures
                await self._say("error", error=members_of(topic.failure))
            if not reading.more and topic.over:
                if topic.ended is not None:
                    await self._say("terminated", error=members_of(topic.ended))
                return
            head = reading.head
            if not reading.more:
                with trio.move_on_at(beat_at):
                    await topic.wait_after(head, failures)
            if trio.current_time() >= beat_at:
                await self._say("heartbeat", cursor=topic.cursor(head))
                beat_at = trio.current_time() + HEARTBEAT_S
            reading = topic.after(head, MAX_POLLED)

    async def _deliver(self, reading: Reading) -> None:
        topic = self._topic
        if reading.truncated:
            begun = reading.events[0].number - 1 if reading.events else reading.head
            await self._say("active", cursor=topic.cursor(begun), truncated=True)
        for kept in reading.events:
            if len(kept.body) <= SMALL_BYTES:
                await self._send(self._event(kept))
                continue
            async with self._topics.large:  # one of all readers in each pass of the loop: copies take their time
                await trio.lowlevel.checkpoint()
                message = self._event(kept)
            await self._send(message)

    def _event(self, kept: Kept) -> bytes:
        """Return a notification of what is kept, which is copied once, unless it has a `_meta`."""
        more: dict[str, Any] = {"cursor": self._topic.cursor(kept.number), "_meta": self._meta}
        if b'"_meta"' not in kept.body:
            return b"".join([_EVENT, memoryview(kept.body)[:-1], b",", encode(more)[1:], b"}"])
        members = json.MEMBERS.decode(kept.body)
        meta = {**json.members(members.get("_meta")), **self._meta}
        return b"".join([_EVENT, encode({**members, **more, "_meta": meta}), b"}"])

    async def _say(self, what: str, **said: Any) -> None:
        params = encode({**said, "_meta": self._meta})
        await self._send(jsonrpc.notification(f"notifications/events/{what}", params))

    async def _send(self, message: bytes) -> None:
        """Send it, once there is room. Raises `TooManyEvents` if there is none for long."""
        voice = self._exchange.voice
        assert voice is not None, "there is one where a stream begins"
        pause_s, by = _FIRST_PAUSE_S, trio.current_time() + STALLED_S
        while not voice.say(message):
            if trio.current_time() >= by:
                text = "more was said on this stream than you have read; read it faster, and go on from the last cursor"
                raise TooManyEvents(text, "unread")
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _polled(topic: Topic, reading: Reading) -> bytes:
    return encode(
        {
            "events": [msgspec.Raw(kept.body) for kept in reading.events],
            "cursor": topic.cursor(reading.head),
            "truncated": reading.truncated,
            "hasMore": reading.more,
            "nextPollMs": topic.next_poll_ms,
        }
    )
