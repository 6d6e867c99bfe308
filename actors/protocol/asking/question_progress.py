"""The progress of a client that works on a question of a server: tokens are minted anew in this direction, too. Pure.

(MCP 2025-11-25, basic/utilities/progress: either side may ask for it. A modern server asks by results: it has none.)
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

MAX_TOKEN_BYTES: Final = 512
MAX_BYTES: Final = 64 * 1024
"""Of one notification of a client."""
_TOKEN: Final = "progressToken"


class _Advance(msgspec.Struct):
    token: str = msgspec.field(name="progressToken")
    progress: float


_advance = msgspec.json.Decoder(_Advance)
_token = msgspec.json.Decoder(str | int)


def token_of(params: msgspec.Raw) -> bytes:
    """Return the token of a question as JSON text; empty if it has none, or none that can be kept."""
    if _TOKEN.encode() not in bytes(params):
        return b""
    token = json.at(params, "_meta", _TOKEN)
    return bytes(token) if len(token) <= MAX_TOKEN_BYTES and json.read_or(_token, token, None) is not None else b""


def with_token(params: msgspec.Raw, token: bytes) -> msgspec.Raw:
    """Return the params of a question with this token (JSON text) in place of the one that it may have; empty: none."""
    return msgspec.Raw(json.with_meta(bytes(params), _TOKEN, token))


def advance(params: msgspec.Raw) -> tuple[str, float] | None:
    """Return the token and the progress that a client tells of; None if that cannot be read."""
    if len(params) > MAX_BYTES:
        return None
    if (told := json.read_or(_advance, params, None)) is None:
        return None
    return (told.token, told.progress) if math.isfinite(told.progress) else None


def with_progress_token(params: bytes, token: bytes) -> bytes:
    """Return a notification of progress with another token (JSON text)."""
    return encode({**json.MEMBERS.decode(params), _TOKEN: msgspec.Raw(token)})
