"""Whether a message has a tool called, or asks for a stream. Pure."""

from __future__ import annotations

from typing import Final

from actors.protocol.agreement.capabilities import STREAM
from actors.protocol.wire import json
from supervisor.front.messages import Batch, Message, Request
from supervisor.metatools import definitions

_READING: Final = frozenset({definitions.DISCOVER, definitions.LIST_RESOURCES, definitions.READ_RESOURCE})
"""The meta-tools that call none. Another spelling of them is no reason to let a call through."""


STREAMS: Final = frozenset({STREAM})
"""Requests that are over when their client ends them: they hold no place among those in flight, and outlast no
credential (SEP-3415, "Concurrent streams")."""


def calls_a_tool(message: Message, door: str) -> bool:
    """Say whether a message calls a tool of a server, at the door of that name, where `""` has the meta-tools."""
    if isinstance(message, Batch):
        return any(calls_a_tool(part, door) for part in message.messages)
    if not isinstance(message, Request) or message.method != "tools/call":
        return False
    return door != "" or json.text_at(message.params, "name") not in _READING
