"""Failed calls as tool results: what a model reads, and what a program reads of the same. Pure.

Clients show results to the model and mostly keep JSON-RPC errors to themselves. So a call that was understood and
failed is a result with `isError: true` (MCP 2025-11-25, SEP-1303): its text says what is wrong, whose fault it is and
what to do; `structuredContent.error` has what a JSON-RPC error would have had, code and data.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.errors import MailboxFull, MalformedRequest, ShuttingDown, Starved, SupervisorError
from actors.protocol.jsonrpc import RemoteError, encode
from supervisor.relay import URL_ELICITATION_REQUIRED
from supervisor.schemas import MAX_WORKED_BYTES, slim
from supervisor.shown import clean

_OF_THE_DAEMON = (MailboxFull, Starved, ShuttingDown)
"""The daemon has no room for the request now. Those of one server that is busy or being stopped are not meant."""
SCHEMA_CHARS = 4000
"""A schema with more characters is not part of a text."""
MAX_TEXT_CHARS = 10_000
"""Of a server's message that a model is shown; `structuredContent` has all of it."""

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_for_client(error: SupervisorError | RemoteError) -> bool:
    """Say whether a failed call is the client's matter, not the model's: a JSON-RPC error it acts on, or may retry."""
    if isinstance(error, RemoteError):
        return error.error.code == URL_ELICITATION_REQUIRED
    return isinstance(error, MalformedRequest) or (isinstance(error, _OF_THE_DAEMON) and error.server is None)


def result(error: SupervisorError | RemoteError) -> bytes:
    """Return the result of a call that failed."""
    text, found = _remote(error) if isinstance(error, RemoteError) else _own(error)
    block = {"type": "text", "text": text}
    return encode({"content": [block], "structuredContent": {"error": found}, "isError": True})


def _own(error: SupervisorError) -> tuple[str, dict[str, Any]]:
    """Return text and data. A schema is in the text alone: most models are shown that, some are shown both."""
    data = error.data()
    schema = data.pop("schema", None)
    text = f"{error.message}{advice(error)}"
    if schema is not None:
        text += _with_schema(schema, str(data.get("tool_path") or ""))
    return text, {"code": error.code, "message": error.message, **data}


def _remote(error: RemoteError) -> tuple[str, dict[str, Any]]:
    found = error.error
    message = clean(found.message[:MAX_TEXT_CHARS])
    text = f"{clean(error.server)}: {message}" if error.server else message
    data: dict[str, Any] = {"code": found.code, "message": found.message}
    if not error.server:  # it is ours, in the codes of the client's era
        return text, data | _members(found.data)
    data |= {"type": "server_error", "outcome": "completed", "retryable": False, "server": error.server}
    return text, data | ({"data": found.data} if bytes(found.data) else {})


def _members(data: msgspec.Raw) -> dict[str, msgspec.Raw]:
    try:
        return _object.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def advice(error: SupervisorError) -> str:
    """Return what to do about an error whose message does not say it; empty if that is plain."""
    wait = error.retry_after_s
    if error.outcome == "unknown":
        return "; whether the tool ran is not known: look before you call it again"
    if error.outcome == "completed":
        return "; the tool has run"
    if error.retryable:
        return f"; try again in {max(1.0, wait):.0f} s" if wait is not None else "; try again"
    if error.kind not in _LASTING or "tell the user" in error.message:
        return ""
    within = f" within {wait:.0f} s" if wait else ""
    return f"; calling it again{within} will not help: tell the user"


_LASTING = frozenset({"unavailable", "disabled"})


def _with_schema(schema: Any, path: str) -> str:
    """Return a schema as the end of a text, shortened if need be, never cut."""
    text = encode(schema).decode()
    if SCHEMA_CHARS < len(text) <= MAX_WORKED_BYTES:
        text = encode(slim(schema)).decode()
    if len(text) <= SCHEMA_CHARS:
        return f". inputSchema: {text}"
    return f". Its inputSchema is long: discover_mcp_tools with the query {path!r} gives it" if path else ""
