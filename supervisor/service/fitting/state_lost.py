"""What is said with a result where a new process answers a client, and what an earlier one held is gone. Pure.

A model is shown the texts of a result, and mostly nothing else: at the door of the meta-tools it is one of them. At a
door where a server stands for itself its result stays as it is, and `_meta` says it to a program that knows of it.
"""

from __future__ import annotations

from typing import Final

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.service.fitting.relay import with_text

STATE_KEY: Final = "mcpvisor/state"


def state_told_to_model(body: bytes, server: str, lost: str) -> bytes:
    return with_text(body, f"Note: server {server!r} is a new process since your last call, which has lost {lost}.")


def state_told_in_meta(body: bytes, server: str, lost: str) -> bytes:
    """Return a result with `_meta` saying it; the rest is the same bytes, member by member."""
    try:
        members = json.read(json.MEMBERS, body)
        meta = json.read(json.MEMBERS, members["_meta"]) if "_meta" in members else {}
    except json.UnreadableJson:
        return body
    return encode({**members, "_meta": {**meta, STATE_KEY: {"server": server, "lost": lost}}})
