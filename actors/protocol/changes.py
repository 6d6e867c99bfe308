"""How a server tells of changes: by notifications, which a modern one sends on a subscription. Pure.

A subscription has no memory: what changes while there is none is never told. It may end at any time, by its result, by
a `notifications/cancelled` of the server, or with its stream; then it is asked for again. (MCP 2026-07-28,
basic/patterns/subscriptions.)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from actors import codes
from actors.protocol.agreement.versions import META_SUBSCRIPTION
from actors.protocol.facts import ListsChanged, ResourceUpdated
from actors.protocol.outbound import Tag
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.failure import Failure
from actors.protocol.wire.peer import Answered, Malformed, Refused

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
OF_RESOURCES: Final = frozenset({SUBSCRIBE, UNSUBSCRIBE})
"""Requests of the legacy era; in the modern one `subscriptions/listen` is in their place."""
CHANGES: Final = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
)
MAX_URI_CHARS: Final = 8192
"""Of a resource that clients are told of."""
_LISTS: Final = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}


class _Honoured(msgspec.Struct):
    toolsListChanged: bool = False
    resourcesListChanged: bool = False
    promptsListChanged: bool = False
    resourceSubscriptions: tuple[str, ...] | None = None


class _Meta(msgspec.Struct):
    subscription: msgspec.Raw = msgspec.field(name=META_SUBSCRIPTION, default=msgspec.Raw(b""))


class _Acknowledged(msgspec.Struct):
    notifications: _Honoured
    meta: _Meta = msgspec.field(name="_meta", default_factory=_Meta)


class _Updated(msgspec.Struct):
    uri: str


class _Resources(msgspec.Struct):
    subscribe: bool = False


class _Capabilities(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class Acknowledgement(msgspec.Struct, frozen=True):
    """What a server will tell of: `lists`, and which resources. `id`: JSON text of the request's, empty if unsaid."""

    id: bytes
    lists: bool
    uris: frozenset[str]


_acknowledged = msgspec.json.Decoder(_Acknowledged)
_updated = msgspec.json.Decoder(_Updated)
_capabilities = msgspec.json.Decoder(_Capabilities)


def listen_params(uris: Collection[str]) -> bytes:
    resources = {"resourceSubscriptions": list(uris)} if uris else {}
    return jsonrpc.encode({"notifications": {**_LISTS, **resources}})


def read_change(method: str, params: msgspec.Raw) -> ListsChanged | ResourceUpdated | None:
    """Return what a notification says of lists and resources, None if it is about something else."""
    if method in CHANGES:
        return ListsChanged()
    if method != UPDATED:
        return None
    try:
        uri = json.read(_updated, params).uri
    except json.UnreadableJson:
        return None
    return ResourceUpdated(uri) if len(uri) <= MAX_URI_CHARS else None


def acknowledgement(params: msgspec.Raw) -> Acknowledgement | None:
    """Return what a server acknowledges; None if that cannot be read."""
    if (said := json.read_or(_acknowledged, params, None)) is None:
        return None
    honoured = said.notifications
    lists = honoured.toolsListChanged or honoured.resourcesListChanged or honoured.promptsListChanged
    return Acknowledgement(bytes(said.meta.subscription), lists, frozenset(honoured.resourceSubscriptions or ()))


def is_supported(end: Answered[Tag] | Refused[Tag] | Malformed[Tag] | Failure | None) -> bool:
    """Say of the end of a subscription whether the server knows such a thing, so that it may be asked for again."""
    match end:
        case Refused(error=error) if error.code in (codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS):
            return False
        case Failure(cause="refused"):
            return False
        case _:
            return True


def subscribable(capabilities: msgspec.Raw) -> bool:
    """Say whether a server with these capabilities tells of changes of resources (MCP, server/resources)."""
    return json.read_or(_capabilities, capabilities, _Capabilities()).resources.subscribe
