"""The context of a trace as it travels: W3C Trace Context, in heads of HTTP and in `_meta` (SEP-414). Pure.

What is not as the standard wants it counts as nothing: the trace begins anew. (W3C Trace Context, 3.2.2 and 3.3.1.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

PARENT: Final = "traceparent"
STATE: Final = "tracestate"
BAGGAGE: Final = "baggage"
MAX_PARAMS_BYTES: Final = 256 * 1024
MAX_STATE_CHARS: Final = 512
MAX_BAGGAGE_CHARS: Final = 8192
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+", re.ASCII)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceContext(msgspec.Struct, frozen=True):
    """Where in which trace something is: ids as hexadecimal digits. `state` and `baggage` are as they were written."""

    trace_id: str
    span_id: str
    sampled: bool
    state: str = ""
    baggage: str = ""

    @property
    def parent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def read_parent(text: str, state: str = "", baggage: str = "") -> TraceContext | None:
    """Return the context that a `traceparent` says; None for what is none."""
    match = _PARENT.fullmatch(text)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    sampled = bool(int(flags, 16) & 1)
    return TraceContext(trace_id, span_id, sampled, _bound(state, MAX_STATE_CHARS), _bound(baggage, MAX_BAGGAGE_CHARS))


def _bound(text: str, most: int) -> str:
    return text if len(text) <= most and _PRINTABLE.fullmatch(text) else ""


def read_params(params: bytes) -> TraceContext | None:
    """Return the context in the `_meta` of a request; its params are an object, or nothing.

    Those of more than 256 KiB are not looked into: that would take some milliseconds of everybody's.
    """
    if len(params) > MAX_PARAMS_BYTES or b"traceparent" not in params:
        return None
    meta = json.members(json.at(params, "_meta"))
    parent, state, baggage = (json.text_at(meta.get(name)) for name in (PARENT, STATE, BAGGAGE))
    return read_parent(parent, state, baggage)


def read_head(lines: Mapping[bytes, bytes]) -> TraceContext | None:
    """Return the context in the head of an HTTP request."""
    parent = lines.get(b"traceparent")
    if parent is None:
        return None
    return read_parent(parent.decode("latin-1").strip(), lines.get(b"tracestate", b"").decode("latin-1").strip())


def with_context(meta: bytes, context: TraceContext) -> bytes:
    """Return the members of a `_meta` (JSON without braces) with this context in the place of any other."""
    members: dict[str, msgspec.Raw] = {}
    if meta:
        members = {
            name: value
            for name, value in json.members(b"{" + meta + b"}").items()
            if name not in (PARENT, STATE, BAGGAGE)
        }
    own = {PARENT: context.parent, STATE: context.state, BAGGAGE: context.baggage}
    return encode({**members, **{name: text for name, text in own.items() if text}})[1:-1]
