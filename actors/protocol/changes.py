"""How a server tells of changed lists: by notifications, which a modern one sends on a subscription. Pure.

A subscription has no memory: what changes while there is none is never told. It may end at any time, by its result, by
a `notifications/cancelled` of the server, or with its stream; then it is asked for again. (MCP 2026-07-28,
basic/patterns/subscriptions.)
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol import jsonrpc
from actors.protocol.facts import ListenEnded, Listening, ListsChanged
from actors.protocol.failure import Failure
from actors.protocol.outbound import Tag
from actors.protocol.peer import Answered, Malformed, Refused

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
CHANGES: Final = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
)
WANTED: Final = jsonrpc.encode(
    {"notifications": {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}}
)
"""The parameters of `subscriptions/listen`."""


class _Honoured(msgspec.Struct):
    toolsListChanged: bool = False
    resourcesListChanged: bool = False
    promptsListChanged: bool = False


class _Acknowledged(msgspec.Struct):
    notifications: _Honoured


_acknowledged = msgspec.json.Decoder(_Acknowledged)


def told(method: str, params: msgspec.Raw) -> ListsChanged | Listening | None:
    """Return what a notification says of the lists, None if it is about something else."""
    if method in CHANGES:
        return ListsChanged()
    if method != ACKNOWLEDGED:
        return None
    try:
        honoured = _acknowledged.decode(params).notifications
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Listening()  # it says that it listens, and not clearly to what
    return Listening(honoured.toolsListChanged or honoured.resourcesListChanged or honoured.promptsListChanged)


def over(event: Answered[Tag] | Refused[Tag] | Malformed[Tag] | Failure) -> ListenEnded | None:
    """Return that a subscription has ended; None if the server does not know such a thing."""
    match event:
        case Refused(error=error) if error.code in (jsonrpc.METHOD_NOT_FOUND, jsonrpc.INVALID_PARAMS):
            return None
        case Failure(cause="refused"):
            return None
        case _:
            return ListenEnded()
