"""How much of an answer over HTTP/1.1 is read at once, how large its head may be, and how many answers may precede it.

A head is parsed in one go, during which nobody else has a turn. The HTTP client has no setting for any of this, only
attributes of its class of connections.
"""

from __future__ import annotations

from typing import Any, Final

import h11
from httpcore2 import AsyncHTTP11Connection, RemoteProtocolError

READ_BYTES: Final = 8 * 1024
MAX_HEAD_BYTES: Final = 16 * 1024
"""What is not whole at that size is refused; so is a line of chunks, and what follows the last of them."""
MAX_INTERIM: Final = 32
"""So many answers of `1xx` may precede one that is an answer: we ask for none of them."""
TOO_MANY_INTERIM: Final = "too many interim responses"
_receive_event = AsyncHTTP11Connection._receive_event


async def _receive_in_bounds(self: AsyncHTTP11Connection, *args: Any, **named: Any) -> Any:
    event = await _receive_event(self, *args, **named)
    if isinstance(event, h11.InformationalResponse):
        count = getattr(self, "_interim", 0) + 1
        if count > MAX_INTERIM:
            raise RemoteProtocolError(TOO_MANY_INTERIM)
        self._interim = count  # type: ignore[attr-defined]  # an attribute of ours
    elif isinstance(event, h11.Response):
        self._interim = 0  # type: ignore[attr-defined]  # the same
    return event


def bound_reading() -> None:
    """Set the bounds for every connection of this process, those through proxies included."""
    AsyncHTTP11Connection.READ_NUM_BYTES = READ_BYTES
    AsyncHTTP11Connection.MAX_INCOMPLETE_EVENT_SIZE = MAX_HEAD_BYTES
    AsyncHTTP11Connection._receive_event = _receive_in_bounds  # type: ignore[method-assign]  # it counts what comes
