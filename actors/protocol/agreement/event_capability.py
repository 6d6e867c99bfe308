"""Where servers say that they have events. Pure.

The extension has it among the `extensions` (SEP-3415, "Capability Negotiation"), its sketch had it at the top level.
Servers, and clients such as ChatGPT and the AI SDK up to 2.0.99, know one place only.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import CALLBACK_ENDPOINT, EVENT_NOT_FOUND, FORBIDDEN, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.protocol.wire import json

EVENTS: Final = "io.modelcontextprotocol/events"
SKETCHED: Final = "events"
"""What it was called in the sketch."""
STREAM: Final = "events/stream"
"""The one request of the extension that lasts until somebody ends it."""
SHUTDOWN: Final = "mcpvisor/shutdown"
"""In the `_meta` of the result of a stream, true: it ends as the daemon does, and can be had of the next one."""
SKETCHED_CODES: Final = {
    -32011: EVENT_NOT_FOUND,
    -32012: FORBIDDEN,
    -32013: RESOURCE_EXHAUSTED,
    -32014: UNSUPPORTED,
    -32015: CALLBACK_ENDPOINT,
}
"""What the sketch had for errors, and ChatGPT still reads."""


def events_declared(capabilities: msgspec.Raw | json.Members) -> msgspec.Raw:
    """Return what is declared of events, in either place; `NO_RAW` if nothing is."""
    declared = json.members(capabilities) if isinstance(capabilities, msgspec.Raw) else capabilities
    return json.at(declared.get("extensions"), EVENTS) or json.at(declared.get(SKETCHED))


def final_code(code: int, capabilities: msgspec.Raw) -> int:
    """Return the code of the extension for one of a server that has, by its capabilities, events of the sketch, too.

    Of any other server the codes of the sketch mean whatever it likes.
    """
    return SKETCHED_CODES.get(code, code) if SKETCHED in json.members(capabilities) else code
