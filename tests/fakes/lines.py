"""What fake servers over the memory transport read and write: JSON-RPC messages, one a line."""

from __future__ import annotations

import json
from typing import Any, Protocol


class Readable(Protocol):
    """A pipe, or the peer that reads from one."""

    async def read(self) -> bytes: ...


class Lines:
    """The input of a fake server, line by line."""

    def __init__(self, peer: Readable) -> None:
        self._peer = peer
        self._rest = bytearray()

    async def read(self) -> list[bytes] | None:
        """Return the lines that one read completed, perhaps none; None at the end of the input."""
        data = await self._peer.read()
        if not data:
            return None
        first, *others = data.split(b"\n")
        self._rest += first
        if not others:
            return []
        lines = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return lines


def line(**members: Any) -> bytes:
    """Return a message as it is written."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"
