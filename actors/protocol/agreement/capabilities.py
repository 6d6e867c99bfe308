"""What a client can be asked, by the capabilities that it declares, and what servers are told of that. Pure.

Also where either side says that it has events.

(MCP 2025-11-25 basic/lifecycle "Capability Negotiation", client/elicitation, client/sampling, client/roots;
2026-07-28 basic/index "Capabilities".)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from actors.codes import CALLBACK_ENDPOINT, EVENT_NOT_FOUND, FORBIDDEN, RESOURCE_EXHAUSTED, UNSUPPORTED
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"

ASKED_BY: Final = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
"""Which capability of a client allows which request of a server."""
FORM: Final = "form"
URL: Final = "url"

NOBODY: Final = b"{}"
OF_CLIENTS: Final = b'{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{"tools":{}}}'
"""What is declared on behalf of the clients to a server that has one session for all of them."""
MAX_BYTES: Final = 16_384
"""Of the capabilities of a client that are passed on."""

_HOP_ONLY: Final = "tasks"
_HOP_ONLY_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""What servers are told of tasks is not up to clients: see `actors/protocol/task_calls.py`."""
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


class _Asked(msgspec.Struct):
    mode: str = FORM


_asked = msgspec.json.Decoder(_Asked)


def missing_capability(capabilities: msgspec.Raw, method: str, params: msgspec.Raw) -> str:
    """Return what a client would have to declare to be asked this; empty if it did.

    A client that declares `elicitation` and no mode of it takes forms.
    """
    name = ASKED_BY.get(method)
    if name is None:
        return method[:100]
    if not (declared := json.at(capabilities, name)):
        return name
    wanted = _required_part(method, params)
    modes = json.members(declared)
    if not wanted or wanted in modes or (wanted == FORM and not modes):
        return ""
    return f"{name}.{wanted}"


def requirement(lacks: str) -> dict[str, Any]:
    """Return as capabilities what `missing_capability` said: `elicitation.url` is `{"elicitation": {"url": {}}}`."""
    name, _, part = lacks.partition(".")
    return {name: {part: {}} if part else {}}


def forwardable(capabilities: msgspec.Raw) -> bytes:
    """Return what a server of the modern era is told that the client of a request can do: a JSON object.

    Left out is what does not get through us.
    """
    if len(capabilities) <= len(NOBODY) or len(capabilities) > MAX_BYTES:
        return NOBODY
    return _forwardable(bytes(capabilities))


def with_elicitation(capabilities: bytes) -> bytes:
    """Return capabilities as `forwardable` returns them, with forms and addresses: a person is asked."""
    own = json.members(json.at(capabilities, "elicitation"))
    return encode({**json.members(capabilities), "elicitation": {FORM: {}, URL: {}, **own}})


def mode_of(params: msgspec.Raw) -> str | None:
    """Return the mode of an elicitation; None if it cannot be read."""
    asked = json.read_or(_asked, params, None)
    return None if asked is None else asked.mode


@lru_cache(maxsize=128)
def _forwardable(capabilities: bytes) -> bytes:
    members = json.members(capabilities)
    kept = {name: value for name, value in members.items() if name != _HOP_ONLY and bytes(value) != b"null"}
    if "roots" in kept:  # nobody tells that they changed: there is no such notification any more
        kept["roots"] = msgspec.Raw(NOBODY)
    extensions = json.members(kept.get("extensions"))
    if extensions.pop(_HOP_ONLY_EXTENSION, None) is not None:
        kept["extensions"] = msgspec.Raw(encode(extensions))
    return encode(kept)


def _required_part(method: str, params: msgspec.Raw) -> str:
    if method == ELICIT:
        return mode_of(params) or FORM
    if method != SAMPLE:
        return ""
    return "tools" if json.at(params, "tools") or json.at(params, "toolChoice") else ""


def events_declared(capabilities: msgspec.Raw | json.Members) -> msgspec.Raw:
    """Return what a server or client declares of events, in either place; `NO_RAW` if nothing is.

    The extension has it among the `extensions` (SEP-3415, "Capability Negotiation"), its sketch had it at the top
    level. Servers, and clients such as ChatGPT and the AI SDK up to 2.0.99, know one place only.
    """
    declared = json.members(capabilities) if isinstance(capabilities, msgspec.Raw) else capabilities
    return json.at(declared.get("extensions"), EVENTS) or json.at(declared.get(SKETCHED))


def final_code(code: int, capabilities: msgspec.Raw) -> int:
    """Return the code of the extension for one of a server that has, by its capabilities, events of the sketch, too.

    Of any other server the codes of the sketch mean whatever it likes.
    """
    return SKETCHED_CODES.get(code, code) if SKETCHED in json.members(capabilities) else code
