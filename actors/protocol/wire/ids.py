"""The ids of our requests, which are the tokens of their progress, too: integers. Pure.

MCP allows strings and integers (2025-11-25 and 2026-07-28, basic "Requests"). The official SDKs but Java's send
integers, so there are servers that read nothing else; and the clients of three take an answer that has such an id as
a string, so there are servers that write it as one. Hence one integer is one id, however it is written.
"""

from __future__ import annotations

from typing import Final

from actors.protocol.wire import json

FIRST_IDS: Final = range(2**29, 2**30)
"""What the first of many may be: those that follow fit into 32 bits for long, and some servers read no more."""
_MAX_BYTES: Final = 64


def canonical(id_: bytes) -> bytes:
    """Return an id or a token (JSON text) as we write ours: `7` for `7`, `7.0`, `7e0` and `"7"`.

    Empty for what is no integer.
    """
    if len(id_) > _MAX_BYTES:
        return b""
    if id_.isdigit():
        return id_
    match json.read_or(json.VALUE, id_, None):
        case str(text) if text.isascii() and text.isdigit():
            return text.encode()
        case float(number) if number.is_integer():
            return b"%d" % number
        case _:
            return b""
