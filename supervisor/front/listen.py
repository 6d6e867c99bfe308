"""What a stream is owed when lists and resources change: shared by HTTP streams, `subscriptions/listen`, WebSockets.

Rules of this file:
- Nothing is queued. A stream remembers the revisions it was told of and compares them with what there is now; however
  often a list changes, a stream owes one notification per kind.
- The last change is never lost: the version of the cell is read before the revisions are.
- At most one notification per kind and interval.
- A resource that changed is told of at once, then at most once per `_UPDATES_INTERVAL_S` with all others.
- A subscription is known by the id of its request, with its type; the acknowledgement goes first, only kinds that were
  asked for follow, each stamped with the id (MCP 2026-07-28, basic/patterns/subscriptions).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Literal

import msgspec
import trio

from actors.errors import InvalidArguments, SupervisorError, TooManyCalls
from actors.kit import Shares
from actors.principal import Principal
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.asking.questions import COMPLETE
from actors.protocol.changes import EVENTS_CHANGED, MAX_URI_CHARS, UPDATED
from actors.protocol.wire import json, jsonrpc
from supervisor.host.pauses import Bell
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import MAX_SUBSCRIBED, Updates
from supervisor.service.port import Revisions, Service

Kind = Literal["tools", "resources", "prompts"]
KINDS: Final[tuple[Kind, ...]] = ("tools", "resources", "prompts")
_MAX_SUBSCRIPTIONS: Final = 1024
_UPDATES_INTERVAL_S: Final = 0.25
_AT_ONCE: Final = 64
"""So many resources of one request are subscribed to at a time."""

NOTHING_TOLD: Final = Revisions(tools=-1, resources=-1, prompts=-1)
"""Differs from whatever there is: every kind is owed."""

_FIELDS: Final[dict[Kind, str]] = {
    "tools": "toolsListChanged",
    "resources": "resourcesListChanged",
    "prompts": "promptsListChanged",
}


class Updated(msgspec.Struct, frozen=True):
    """A resource changed; `uri` is the one that the client is subscribed to."""

    uri: str


class Visited(msgspec.Struct, frozen=True):
    """A person is done at an address; `id` is the one that its server gave to that."""

    id: str


Change = Kind | Updated | Visited


def told_of(change: Change, meta: bytes = b"{") -> bytes:
    """Return the bytes of one notification; `meta` is the beginning of its params, an object."""
    if isinstance(change, Updated) and change.uri == EVENTS_CHANGED:
        return jsonrpc.notification(EVENTS_CHANGED, meta + b"}" if len(meta) > 1 else None)
    if isinstance(change, Updated):
        separator = b"," if len(meta) > 1 else b""
        params = meta + separator + b'"uri":' + jsonrpc.encode(change.uri) + b"}"
        return jsonrpc.notification(UPDATED, params)
    if isinstance(change, Visited):  # only legacy sessions hear of it, whose streams have no ids
        return jsonrpc.notification(COMPLETE, jsonrpc.encode({"elicitationId": change.id}))
    return jsonrpc.notification(f"notifications/{change}/list_changed", meta + b"}" if len(meta) > 1 else None)


class ChangePace(msgspec.Struct, frozen=True):
    """How soon, and how often, a client is told of changes; in seconds."""

    min_interval_s: float = 1.0
    """Between two notifications about the same list."""
    doubt_s: float = 0.0
    """So long after it was sent, something has arrived, or the stream is over."""


_USUAL: Final = ChangePace()


class Watch:
    """Waits for changes of the lists that are seen by a service, and of resources, on behalf of one stream."""

    def __init__(
        self,
        service: Service,
        kinds: tuple[Kind, ...] = KINDS,
        *,
        told: Revisions | None = None,
        updates: Updates | None = None,
        pace: ChangePace = _USUAL,
    ) -> None:
        """`told`: the revisions the client knows of already; without it, what there is now counts as known.

        `updates`: which resources changed.
        """
        self._service = service
        self._kinds = kinds
        self._pace = pace
        self._updates = updates or Updates()
        self._bell = Bell()
        self._updates.resume(self._bell.ring)
        self._updates_from = trio.current_time()
        self._not_before: dict[Kind, float] = {}
        self.told = service.revisions if told is None else told
        self._sent: deque[tuple[float, Revisions]] = deque([(-math.inf, self.told)])

    async def next(self, by: float = math.inf) -> tuple[Change, ...]:
        """Wait until notifications are owed and due; return of what, which counts as told from now on.

        Nothing is due if it is `by`, in seconds of the trio clock. A checkpoint. Cancelling it loses nothing.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        waited = False
        while True:
            revisions = self._service.revisions
            if revisions == self.told and not self._updates.owed and (by == math.inf or trio.current_time() < by):
                waited = True
                with self._service.changes.on_set(self._bell.ring):
                    await self._bell.rings(by)
                continue
            due = self._due(revisions)
            now = trio.current_time()
            kinds = tuple(kind for kind, moment in due.items() if moment <= now)
            resources = self._updates.owed and self._updates_from <= now
            if (kinds or resources or now >= by) and not waited:
                await trio.lowlevel.checkpoint()
                waited = True
                continue
            if kinds or resources:
                self._tell(kinds, revisions, now)
                return (*kinds, *(self._take_updates(now) if resources else ()))
            if now >= by:
                return ()
            waited = True
            moments = [*due.values(), *([self._updates_from] if self._updates.owed else ())]
            if moments:
                # Not woken by further changes: a storm of them costs a quiet stream one look per interval.
                await self._bell.rings(min(by, *moments))
            else:  # other kinds have changed
                with self._service.changes.on_set(self._bell.ring):
                    await self._bell.rings(by)

    def delivery(self) -> Revisions:
        """Return the revisions that the client knows of for certain; everything that was due until now was sent."""
        now = trio.current_time()
        by = now - self._pace.doubt_s
        self._updates.mark_sent(now, by)
        if self._sent[-1][1] != self.told:
            self._sent.append((now, self.told))
        while len(self._sent) > 1 and self._sent[1][0] <= by:
            self._sent.popleft()
        return self._sent[0][1]

    def _take_updates(self, now: float) -> tuple[Change, ...]:
        self._updates_from = now + _UPDATES_INTERVAL_S
        return (*map(Visited, self._updates.take_visited()), *map(Updated, self._updates.take()))

    def _due(self, revisions: Revisions) -> dict[Kind, float]:
        """Return for each owed kind the moment (trio clock) from which it may be told."""
        if revisions == self.told:
            return {}
        changed = (kind for kind in self._kinds if getattr(revisions, kind) != getattr(self.told, kind))
        return {kind: self._not_before.get(kind, -math.inf) for kind in changed}

    def _tell(self, kinds: tuple[Kind, ...], revisions: Revisions, now: float) -> None:
        self.told = msgspec.structs.replace(self.told, **{kind: getattr(revisions, kind) for kind in kinds})
        for kind in kinds:
            self._not_before[kind] = now + self._pace.min_interval_s


class Subscription(msgspec.Struct, frozen=True):
    """One `subscriptions/listen`: the id of its request as JSON text, the kinds that are honoured, and `uris`.

    Among these may be `EVENTS_CHANGED`, see there.
    """

    id: bytes
    kinds: tuple[Kind, ...]
    uris: tuple[str, ...] = ()

    def acknowledge(self, uris: Collection[str] = ()) -> bytes:
        """Return the bytes of the first message of the stream; `uris` are the resources that it tells of."""
        kinds = {_FIELDS[kind]: True for kind in self.kinds}
        events = {"eventsListChanged": True} if EVENTS_CHANGED in uris else {}
        named = [uri for uri in uris if uri != EVENTS_CHANGED]
        honoured = jsonrpc.encode({**kinds, **events, **({"resourceSubscriptions": named} if named else {})})
        params = self._meta() + b',"notifications":' + honoured + b"}"
        return jsonrpc.notification("notifications/subscriptions/acknowledged", params)

    def notification(self, change: Change) -> bytes:
        return told_of(change, self._meta())

    def result(self) -> bytes:
        return jsonrpc.success(self.id, self._meta() + b',"resultType":"complete"}')

    def cancellation(self, reason: str) -> bytes:
        """Return what follows the result where we end it (MCP 2026-07-28, basic/patterns/cancellation)."""
        params = {"requestId": msgspec.Raw(self.id), "reason": reason}
        return jsonrpc.notification("notifications/cancelled", jsonrpc.encode(params))

    def _meta(self) -> bytes:
        return b'{"_meta":{"' + META_SUBSCRIPTION.encode() + b'":' + self.id + b"}"


class _Wishes(msgspec.Struct, frozen=True, rename="camel"):
    tools_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    events_list_changed: bool | None = None
    resource_subscriptions: tuple[str, ...] | None = None


class _ListenParams(msgspec.Struct, frozen=True):
    notifications: _Wishes


_listen_params = msgspec.json.Decoder(_ListenParams)


def read_subscription(id_: bytes, params: msgspec.Raw) -> Subscription:
    """Return what a listen request asks for; kinds we do not have are left out.

    Raises `InvalidArguments`, and `TooManyCalls` for too many resources.
    """
    try:
        wishes = json.read(_listen_params, params).notifications
    except json.UnreadableJson:
        raise InvalidArguments('"params.notifications" must be an object of booleans, and a list of URIs') from None
    uris = tuple(dict.fromkeys(wishes.resource_subscriptions or ()))
    if len(uris) > MAX_SUBSCRIBED:
        raise TooManyCalls(f"{len(uris)} resources are asked for; {MAX_SUBSCRIBED} are the most")
    if any(len(uri) > MAX_URI_CHARS for uri in uris):
        raise InvalidArguments(f"a URI has at most {MAX_URI_CHARS} characters")
    events = (EVENTS_CHANGED,) if wishes.events_list_changed else ()
    kinds = tuple(kind for kind in KINDS if getattr(wishes, f"{kind}_list_changed"))
    return Subscription(id_, kinds, (*events, *(uri for uri in uris if uri != EVENTS_CHANGED)))


async def subscribe_all(service: Service, exchange: Exchange, uris: Sequence[str]) -> tuple[str, ...]:
    """Subscribe a client to resources, a few at a time; return those of which it will be told. A checkpoint."""
    honoured: set[str] = set()
    room = trio.CapacityLimiter(_AT_ONCE)

    async def subscribe(uri: str) -> None:
        async with room:
            with suppress(SupervisorError, jsonrpc.RemoteError):  # it is left out of the acknowledgement
                await service.subscribe(exchange, uri)
                honoured.add(uri)

    async with trio.open_nursery() as nursery:
        for uri in uris:
            nursery.start_soon(subscribe, uri)
    return tuple(uri for uri in uris if uri in honoured)


class StreamLimit:
    """Counts the open subscriptions over HTTP; those of a WebSocket are bounded by connection."""

    def __init__(self, limit: int = _MAX_SUBSCRIPTIONS) -> None:
        self._shares = Shares(limit)

    @property
    def open(self) -> int:
        return self._shares.used

    @contextmanager
    def place(self, principal: Principal) -> Iterator[None]:
        """Hold one place for the block. Raises `TooManyCalls` if there is none."""
        if not self._shares.has_place(principal):
            raise TooManyCalls(self._shares.why_not(principal, "subscriptions"))
        self._shares.add(principal)
        try:
            yield
        finally:
            self._shares.remove(principal)
