"""The accept loop: connections in, one task each; want of descriptors or memory is waited out, whatever a task does.

Rules of this file:
- A connection that waits in the kernel's queue meanwhile is served afterwards.
- What goes wrong with one connection, its task included, costs that connection.
- A connection that died before it was accepted, or that a firewall forbids, is no error of the listening socket.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable

import trio

from actors.kit import Conditions, Pauses, is_want, reason_of

log = logging.getLogger(__name__)

WHAT = "accepting connections"
"""How the condition is called."""

_OF_THE_PEER = frozenset({errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH})
"""What accept(2) says of a connection, not of the socket that listens."""

Handler = Callable[[trio.SocketStream], Awaitable[None]]


async def accept_for_ever(
    listener: trio.SocketListener, handler: Handler, connections: trio.Nursery, conditions: Conditions
) -> None:
    """Start `handler` in `connections` for each connection; closes the listener when it is cancelled."""
    pauses = Pauses()
    async with listener:
        while True:
            try:
                stream = await listener.accept()
                connections.start_soon(_handled, handler, stream)
            except (OSError, MemoryError) as error:
                if not is_want(error):
                    if isinstance(error, OSError) and error.errno in _OF_THE_PEER:
                        continue
                    raise
                conditions.begin(WHAT, reason_of(error))
                await trio.sleep(pauses.next())
            else:
                pauses.reset()
                conditions.end(WHAT)


async def _handled(handler: Handler, stream: trio.SocketStream) -> None:
    try:
        await handler(stream)
    except* Exception as group:  # the border: it would end every other connection
        if is_want(group):
            log.debug("a connection was lost for want: %s", reason_of(group))
        else:
            log.exception("a bug in a connection")
    finally:
        stream.socket.close()
