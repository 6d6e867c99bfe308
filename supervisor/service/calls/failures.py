"""Failed calls as tool results: what a model reads, and what a program reads of the same. Pure.

Clients show results to the model and mostly keep JSON-RPC errors to themselves. So a call that was understood and
failed is a result with `isError: true` (MCP 2025-11-25, SEP-1303): its text says what is wrong, whose fault it is and
what to do; `structuredContent.error` has what a JSON-RPC error would have had, code and data.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from typing import Any

from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import (
    AnswerFirst,
    MailboxFull,
    MalformedRequest,
    ShuttingDown,
    Starved,
    SupervisorError,
    forget_frames,
)
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, encode
from supervisor.metatools.schemas import MAX_WORKED_BYTES, slim
from supervisor.metatools.texts import clean
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import CapabilityRequired
from supervisor.service.fitting.relay import with_member

_OF_THE_DAEMON = (MailboxFull, Starved, ShuttingDown)
"""The daemon has no room for the request now. Those of one server that is busy or being stopped are not meant."""
SCHEMA_CHARS = 4000
"""A schema with more characters is not part of a text."""
MAX_TEXT_CHARS = 10_000
"""Of a server's message that a model is shown; `structuredContent` has all of it."""

REPEATED_CHARS = 80
"""A line of a server's message with so many characters is shown once, if it differs in numbers only."""
MAX_UNSET_NAMED = 5

_TRACE = re.compile(
    r"[ \t\n]at (?:async )?(?:[^\n()]{0,120} \()?(?:file://|node:|/|[A-Za-z]:\\)[^\n]{1,300}?:\d+:\d+"
    r"|Traceback \(most recent call last\):"
    r'|[ \t\n]File "[^"\n]{1,300}", line \d+'
)
"""Where Node's or Python's list of calls begins: it has paths of this machine, and nothing for a model."""
_DIGITS = re.compile(r"[0-9]+")
_UNREACHED = re.compile(
    r"fetch failed|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|getaddrinfo|connection refused|network is unreachable"
    r"|name resolution|^401\b|\b(?:status|http|code|error)[ :=]{1,3}401\b|unauthori[sz]ed|unauthenticated"
    r"|\b(?:bad|invalid|missing|expired) (?:credentials|(?:api|auth|access|bearer)?[ _-]?(?:token|key))\b",
    re.IGNORECASE,
)
_NO_WAY_OUT = (
    "; the server could not reach its service; retrying will not help until its network or credentials are right; "
    "tell the user"
)


def is_for_client(error: SupervisorError | RemoteError) -> bool:
    """Say whether a failed call is the client's matter, not the model's: a JSON-RPC error it acts on, or may retry."""
    if isinstance(error, RemoteError):
        return error.error.code == URL_ELICITATION_REQUIRED
    if isinstance(error, CapabilityRequired):
        return True
    return isinstance(error, MalformedRequest) or (isinstance(error, _OF_THE_DAEMON) and error.server is None)


def result(error: SupervisorError | RemoteError, unset: Sequence[str] = ()) -> bytes:
    """Return the result of a call that failed.

    `unset`: the variables of the server's environment whose values are placeholders, as its configuration has them.
    """
    forget_frames(error)
    text, structured = _remote(error, unset) if isinstance(error, RemoteError) else _own(error)
    block = {"type": "text", "text": text}
    return encode({"content": [block], "structuredContent": {"error": structured}, "isError": True})


async def run_shown(deployment: Deployment, exchange: Exchange, call: Awaitable[bytes]) -> bytes:
    """Return the result of a call of a tool at a door where what a server answers passes as it is.

    Raises what is the client's matter, and errors of servers.
    """
    try:
        return await call
    except SupervisorError as error:
        if is_for_client(error):
            raise
        said = result(error, deployment.unset(error.server or ""))
    return said if exchange.client.era == "legacy" else with_member(said, b'"resultType":"complete"')


def _own(error: SupervisorError) -> tuple[str, dict[str, Any]]:
    """Return text and data. A schema is in the text alone: most models are shown that, some are shown both."""
    data = error.data()
    schema = data.pop("schema", None)
    text = f"{error.message}{advice(error)}"
    if schema is not None:
        text += _with_schema(schema, str(data.get("tool_path") or ""))
    return text, {"code": error.code, "message": error.message, **data}


def _remote(error: RemoteError, unset: Sequence[str]) -> tuple[str, dict[str, Any]]:
    said = error.error
    message = clean(said.message[:MAX_TEXT_CHARS])
    data: dict[str, Any] = {"code": said.code, "message": said.message}
    if not error.server:  # it is ours, in the codes of the client's era
        return message, data | json.members(said.data)
    message = _without_repeats(_without_trace(message))
    text = f"{message} (said by the server {clean(error.server)!r}){_way_out(message, unset)}"
    data |= {"type": "server_error", "outcome": "completed", "retryable": False, "server": error.server}
    return text, data | ({"data": said.data} if bytes(said.data) else {})


def _without_trace(message: str) -> str:
    """Return a message without the calls that led to it; of Python's, what was raised stands behind them."""
    trace = _TRACE.search(message)
    if trace is None:
        return message
    before, traced = message[: trace.start()].strip(), message[trace.start() :].strip()
    last = traced.rpartition("\n")[2]
    raised = last if 'File "' in traced and last[:1].strip() and _TRACE.search(f" {last}") is None else ""
    return ": ".join(part for part in (before.removesuffix(":"), raised) if part) or "an error without a message"


def _without_repeats(message: str) -> str:
    """Return a message with each long line once; those of a log that says the same again differ in numbers only."""
    seen: set[str] = set()
    kept = []
    for line in message.split("\n"):
        told = _DIGITS.sub("", line)
        if len(line) < REPEATED_CHARS or told not in seen:
            kept.append(line)
        seen.add(told)
    return "\n".join(kept)


def _way_out(message: str, unset: Sequence[str]) -> str:
    """Return what to do where a server reads as if it could not reach what it is for, or was not let in."""
    if _UNREACHED.search(message) is None:
        return ""
    names = ", ".join(clean(name)[:64] for name in unset[:MAX_UNSET_NAMED])
    return _NO_WAY_OUT + (f" that its configuration has a placeholder for {names}" if names else "")


def advice(error: SupervisorError) -> str:
    """Return what to do about an error whose message does not say it; empty if that is plain."""
    wait = error.retry_after_s
    if isinstance(error, AnswerFirst):
        return ""
    if error.outcome == "unknown" and error.idempotent:
        return "; whether the tool ran is not known; it says that it may be called again"
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
