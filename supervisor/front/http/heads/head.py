"""What one HTTP request says about itself before its body. Pure.

- A field that comes twice is remembered: whoever needs it to be unambiguous asks.
- `Accept` is read leniently: absent means JSON, wildcards count (RFC 9110 12.5.1; the specification asks clients to
  list both types, many send neither).
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache

import msgspec

from actors.transport.http import head
from supervisor.front.edge.fields import Fields

VERSION, SESSION = head.VERSION.encode(), head.SESSION.encode()
METHOD, NAME, LAST_EVENT = head.METHOD.encode(), head.NAME.encode(), head.LAST_EVENT.encode()

_SENTINEL = "=?base64?"


class Accepts(msgspec.Struct, frozen=True):
    """Which of our two answers a client takes. `stream_named`: it names event streams, not only a wildcard."""

    json: bool
    stream: bool
    stream_named: bool


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The headers that decide something; None where there is no such line."""

    content_type: bytes | None = None
    accepts: Accepts = Accepts(json=True, stream=False, stream_named=False)
    version: bytes | None = None
    session: bytes | None = None
    method: bytes | None = None
    name: bytes | None = None
    last_event: bytes | None = None
    doubled: frozenset[bytes] = frozenset()

    @property
    def is_json(self) -> bool:
        """True if the body says that it is JSON; a request without a content type does not."""
        kind = self.content_type
        return kind == b"application/json" or (
            kind is not None and kind.split(b";", 1)[0].strip().lower() == b"application/json"
        )


def scan(fields: Fields) -> Head:
    get = fields.lines.get
    return Head(
        content_type=get(b"content-type"),
        accepts=read_accept(get(b"accept")),
        version=get(VERSION),
        session=get(SESSION),
        method=get(METHOD),
        name=get(NAME),
        last_event=get(LAST_EVENT),
        doubled=fields.doubled,
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
