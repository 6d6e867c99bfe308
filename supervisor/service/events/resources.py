"""A changed resource as an event: the type `SERVER:resources/updated` of each server that tells of changes (MCP,
server/resources, "Subscriptions"), for clients that want to be told by events alone, and to go on behind a cursor.

- A type of that name of the server's own goes before it: sources are asked in their order.
- The server is subscribed to once for all, as for clients that subscribe by `resources/subscribe`. It is not asked what
  changed before: where that is not known, as after its restart, it may have changed, and that is told.
- A resource that changes all the time is told of as often as in the other ways.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta, Struct

from actors.catalogue.names.naming import split_resource
from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import InvalidArguments
from actors.kit import Latest
from actors.launch import server_of
from actors.protocol.agreement.versions import LATEST_MODERN
from actors.protocol.changes import MAX_URI_CHARS, SUBSCRIBE, subscribable
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.events.event import timestamp
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.asking.exchange import Exchange, SessionState
from supervisor.service.client import Client
from supervisor.service.events.errors import REMOVED
from supervisor.service.events.sources import Origin, Terminated, Told
from supervisor.service.events.types import SEPARATOR, EventType, Viewpoint, event_name
from supervisor.service.forward import Forwarder
from supervisor.service.subscriptions import Subscriptions
from supervisor.service.updates import Updates

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
        entries = at.visible.now(at.principal).entries
        return [EventType(event_name(name, UPDATED), DEFINITION) for name, entry in entries.items() if _tells(entry)]

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        seen = at.visible.now(at.principal)
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
