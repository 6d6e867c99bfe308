"""Where servers say that they have events. Pure.

The extension has it among the `extensions` (SEP-3415, "Capability Negotiation"), its sketch had it at the top level.
Servers, and clients such as ChatGPT and the AI SDK up to 2.0.99, know one place only.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol.wire import json

EVENTS: Final = "io.modelcontextprotocol/events"
SKETCHED: Final = "events"
"""What it was called in the sketch."""
STREAM: Final = "events/stream"
"""The one request of the extension that lasts until somebody ends it."""


def events_declared(capabilities: msgspec.Raw | json.Members) -> msgspec.Raw:
    """Return what is declared of events, in either place; `NO_RAW` if nothing is."""
    declared = json.members(capabilities) if isinstance(capabilities, msgspec.Raw) else capabilities
    return json.at(declared.get("extensions"), EVENTS) or json.at(declared.get(SKETCHED))
