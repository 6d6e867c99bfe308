"""The heads of requests to a server and of its answers (MCP 2025-11-25 and 2026-07-28, basic/transports). Pure."""

from __future__ import annotations

import base64
import re
from typing import Final

import msgspec

from actors.protocol.agreement.versions import MODERN_VERSIONS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import canonical
from actors.protocol.wire.mirrors import header_texts
from actors.protocol.wire.peer import Outgoing

SESSION: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
LAST_EVENT: Final = "last-event-id"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
ENCODING: Final = "gzip"
"""The one in which answers may come."""
MAX_SESSION_CHARS: Final = 1024
MAX_MIRRORED_CHARS: Final = 8 * 1024
"""Of all arguments that a head repeats: most servers take heads of 8 to 16 KiB."""
MAX_RETRY_AFTER_S: Final = 300.0
_VERSION_SINCE: Final = "2025-06-18"
"""The first revision whose requests say in a header which it is."""
_VISIBLE: Final = re.compile(r"[!-~]+")
_PLAIN: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
"""A field value that arrives as it was sent (RFC 9110 5.5): visible ASCII, with spaces inside."""
_ENCODED: Final = "=?base64?"


class _Error(msgspec.Struct):
    code: int = 0


class _Message(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"")
    method: str | None = None


class _Refusal(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"")
    error: _Error | None = None


_message = msgspec.json.Decoder(_Message)
_refusal = msgspec.json.Decoder(_Refusal)


def head_of(message: Outgoing, session: str) -> dict[str, str]:
    head = {"content-type": JSON, "accept": f"{JSON}, {EVENTS}", **head_of_session(message.version, session)}
    if message.version in MODERN_VERSIONS:
        head[METHOD] = message.method
        if message.name:
            head[NAME] = field_value(message.name)
    return head


def mirrored_fields(message: Outgoing, body: bytes) -> dict[str, str] | None:
    """Return the fields that repeat arguments of a call, whose text is `body`; None if they are too long for a head."""
    fields = {field: field_value(text) for field, text in header_texts(message.mirrors, body).items()}
    return fields if sum(map(len, fields.values())) <= MAX_MIRRORED_CHARS else None


def head_of_session(version: str, session: str) -> dict[str, str]:
    head = {SESSION: session} if session else {}
    if version >= _VERSION_SINCE:
        head[VERSION] = version
    return head


def field_value(text: str) -> str:
    """Return a text as the value of a field: encoded if it would not arrive as it is (2026-07-28, "Value Encoding")."""
    if _PLAIN.fullmatch(text) and not text.startswith(_ENCODED):
        return text
    return f"{_ENCODED}{base64.b64encode(text.encode(errors='surrogatepass')).decode()}?="


def session_of(value: str | None) -> str:
    """Return the id of a session as the server gave it; empty where it gave none, or none that may be sent back."""
    return value if value and len(value) <= MAX_SESSION_CHARS and _VISIBLE.fullmatch(value) else ""


def mark_of(id_: str) -> str:
    """Return the id of an event as it may be sent back, to go on after it; empty for one that no head can hold."""
    return id_ if len(id_) <= MAX_SESSION_CHARS and _PLAIN.fullmatch(id_) else ""


def pause_s(retry_ms: int, longest_s: float) -> float:
    """Return the seconds of a `retry` of an event stream, which may be any number."""
    return min(max(retry_ms, 100), int(longest_s * 1000)) / 1000


def answers(text: bytes, id_: bytes) -> bool:
    """Say whether a message is the answer to a request; `id_` is the JSON text of its id."""
    if (message := json.read_or(_message, text, None)) is None:
        return False
    return message.method is None and canonical(bytes(message.id)) == id_


def error_for(text: bytes, id_: bytes) -> int | None:
    """Return the code of the JSON-RPC error that a text holds for a request; None if it holds none for that."""
    refusal = json.read_or(_refusal, text, None)
    if refusal is None or refusal.error is None or bytes(refusal.id) != id_:
        return None
    return refusal.error.code


def media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def retry_after_s(value: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, at most five minutes; None for none, and for a date."""
    return min(float(value), MAX_RETRY_AFTER_S) if value is not None and value.isascii() and value.isdigit() else None
