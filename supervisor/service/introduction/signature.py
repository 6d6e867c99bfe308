"""The mark of this daemon in its answers to a handshake, by which it knows itself behind whatever proxies. Pure."""

from __future__ import annotations

from typing import Final

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

KEY: Final = "mcpvisor/daemon"


def sign(result: bytes, mark: str) -> bytes:
    """Return the result of a handshake, a JSON object, with the mark in its `_meta` beside what is there."""
    members = json.MEMBERS.decode(result)
    if (meta := json.read_or(json.MEMBERS, members.get("_meta", b"{}"), None)) is None:
        return result  # a server wrote it so, and its clients shall see it so
    return encode({**members, "_meta": {**meta, KEY: mark}})
