"""The header fields of a request, walked once and looked up by everybody. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

_LISTS: Final = frozenset({b"accept", b"connection", b"transfer-encoding", b"upgrade"})
"""What may come in several lines, which are one with commas between them (RFC 9110 5.3)."""

MOST_BYTES: Final = b"mcpvisor-max-message-bytes"
"""In the answer to the handshake of a WebSocket: how long a message may be. A longer one costs the connection; whoever
passes messages on refuses it, as it knows which request that is."""


class Fields(msgspec.Struct, frozen=True):
    """Values by name in lower case. Of several lines (`doubled`) the last one counts; lists are joined."""

    lines: dict[bytes, bytes]
    doubled: frozenset[bytes] = frozenset()


def fields_of(headers: Iterable[tuple[bytes, bytes]]) -> Fields:
    lines: dict[bytes, bytes] = {}
    doubled: set[bytes] | None = None
    for name, value in headers:
        if name in lines:
            doubled = doubled or set()
            doubled.add(name)
            if name in _LISTS:
                value = b"%s, %s" % (lines[name], value)
        lines[name] = value
    return Fields(lines, frozenset(doubled)) if doubled else Fields(lines)
