"""What MCP calls things on the wire: codes of errors, methods of one era only, what names a request. Pure.

Codes of our own stand with the failure that each means (`actors/errors.py`).
"""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
"""The five of JSON-RPC 2.0, section 5.1."""
REQUEST_CANCELLED: Final = -32800
"""What the official SDK answers to a request that its client has cancelled; nobody waits for it."""
RESOURCE_NOT_FOUND: Final = -32002
"""Up to 2025-11-25; the newest revision says `INVALID_PARAMS`."""
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
"""These three since 2026-07-28 (basic/index, "Error Codes")."""
EVENT_NOT_FOUND: Final = -32023
FORBIDDEN: Final = -32024
RESOURCE_EXHAUSTED: Final = -32025
UNSUPPORTED: Final = -32026
CALLBACK_ENDPOINT: Final = -32027
"""These five of the Events extension (SEP-3415, "Error Handling")."""
URL_ELICITATION_REQUIRED: Final = -32042
"""Of 2025-11-25: addresses are to be opened before the call is made again."""
NO_CODE: Final = 0
"""What the Python SDK 1.x writes for any exception."""

REMOVED: Final = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods of the legacy era only (MCP 2026-07-28, changelog)."""
ADDED: Final = frozenset({"server/discover"})
"""Methods of the modern era only, of those that a service performs."""
HANDSHAKES: Final = frozenset({"initialize", "server/discover"})

NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""By method, which parameter says what a request is about; `Mcp-Name` repeats it (MCP 2026-07-28, streamable-http,
"Request Metadata"; SEP-2663 for tasks)."""
MAY_BE_NAMED_BY: Final = {
    "events/poll": "name",
    "events/stream": "name",
    "events/subscribe": "name",
    "events/unsubscribe": "name",
}
"""Likewise, where many clients send no `Mcp-Name`: its repeating is younger than the methods (SEP-3415)."""
