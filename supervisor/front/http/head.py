"""What one HTTP request says about itself before its body. PURE.

- The header lines are walked once; only the few that decide something are kept, as bytes.
- Names arrive in lower case (ASGI). A line that comes twice is remembered: whoever needs it to be unambiguous asks.
- `Accept` is read leniently: absent means JSON, wildcards count (RFC 9110 12.5.1; the specification asks clients to
  list both types, many send neither).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from functools import lru_cache

import msgspec

Headers = Iterable[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI has them."""

VERSION = b"mcp-protocol-version"
SESSION = b"mcp-session-id"
METHOD = b"mcp-method"
NAME = b"mcp-name"
LAST_EVENT = b"last-event-id"

_LOOKED_AT = frozenset(
    {b"content-type", b"content-length", b"transfer-encoding", b"accept", VERSION, SESSION, METHOD, NAME, LAST_EVENT}
)
_SENTINEL = "=?base64?"


class Accepts(msgspec.Struct, frozen=True):
    """Which of our two answers a client takes. `stream_named`: it names event streams, not only a wildcard."""

    json: bool
    stream: bool
    stream_named: bool


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The headers that decide something; None where there was no such line, the last one where there were several."""

    content_type: bytes | None = None
    content_length: bytes | None = None
    transfer_encoding: bytes | None = None
    accepts: Accepts = Accepts(json=True, stream=False, stream_named=False)
    version: bytes | None = None
    session: bytes | None = None
    method: bytes | None = None
    name: bytes | None = None
    last_event: bytes | None = None
    duplicated: tuple[bytes, ...] = ()

    @property
    def is_json(self) -> bool:
        """True if the body says that it is JSON; a request without a content type does not."""
        kind = self.content_type
        return kind == b"application/json" or (
            kind is not None and kind.split(b";", 1)[0].strip().lower() == b"application/json"
        )

    @property
    def has_body(self) -> bool:
        """True if a body comes, however long."""
        return self.transfer_encoding is not None or self.declared_bytes > 0

    @property
    def declared_bytes(self) -> int:
        """The length of the body that was announced, 0 if none was."""
        length = self.content_length
        return int(length) if length is not None and length.isdigit() and len(length) < 20 else 0


def scan(headers: Headers) -> Head:
    """Return what matters of the header lines."""
    lines: dict[bytes, bytes] = {}
    duplicated: tuple[bytes, ...] = ()
    for name, value in headers:
        if name in _LOOKED_AT:
            if name in lines:
                if name == b"accept":
                    value = lines[name] + b"," + value
                else:
                    duplicated += (name,)
            lines[name] = value
    get = lines.get
    return Head(
        content_type=get(b"content-type"),
        content_length=get(b"content-length"),
        transfer_encoding=get(b"transfer-encoding"),
        accepts=read_accept(get(b"accept")),
        version=get(VERSION),
        session=get(SESSION),
        method=get(METHOD),
        name=get(NAME),
        last_event=get(LAST_EVENT),
        duplicated=duplicated,
    )


@lru_cache(maxsize=256)
def read_accept(value: bytes | None) -> Accepts:
    """Return what an `Accept` header allows. Clients send a handful of different ones, so the answers are kept."""
    if value is None or not value.strip():
        return Accepts(json=True, stream=False, stream_named=False)
    ranges = {_media_range(part) for part in value.lower().split(b",")}
    named = bool(ranges & {b"text/event-stream", b"text/*"})
    everything = b"*/*" in ranges
    return Accepts(
        json=everything or bool(ranges & {b"application/json", b"application/*"}),
        stream=everything or named,
        stream_named=named,
    )


def _media_range(part: bytes) -> bytes:
    kind, _, parameters = part.partition(b";")
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip().partition(b"=")
        if name == b"q" and value.strip(b"0. ") == b"":
            return b""
    return kind.strip()


def header_text(value: bytes) -> str | None:
    """Return the text of a header value that may be wrapped as `=?base64?...?=`; None if the wrapping is bad.

    Only canonical base64 of UTF-8 counts; half a wrapping is a literal (MCP 2026-07-28, SEP-2243).
    """
    text = value.decode("latin-1").strip(" \t")
    if not (text.startswith(_SENTINEL) and text.endswith("?=") and len(text) >= len(_SENTINEL) + 2):
        return text
    inner = text[len(_SENTINEL) : -2]
    try:
        decoded = base64.b64decode(inner, validate=True)
        if base64.b64encode(decoded).decode("ascii") != inner:
            return None
        return decoded.decode()
    except (binascii.Error, UnicodeError, ValueError):
        return None
