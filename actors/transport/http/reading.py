"""How much of an answer over HTTP/1.1 is read at once, and how large its head may be.

A head is parsed in one go, and so are all `1xx` answers that one read brought: some 3 µs a line, during which nobody
else has a turn. The HTTP client has no setting for either, only attributes of its class of connections.
"""

from __future__ import annotations

from typing import Final

from httpcore2 import AsyncHTTP11Connection

READ_BYTES: Final = 8 * 1024
MAX_HEAD_BYTES: Final = 16 * 1024
"""What is not whole at that size is refused; so is a line of chunks, and what follows the last of them."""


def bound_reading() -> None:
    """Set both bounds for every connection of this process, those through proxies included."""
    AsyncHTTP11Connection.READ_NUM_BYTES = READ_BYTES
    AsyncHTTP11Connection.MAX_INCOMPLETE_EVENT_SIZE = MAX_HEAD_BYTES
