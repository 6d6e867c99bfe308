"""The loop of every event stream that carries notifications, whatever it is open for.

It ends when the client is gone, when the daemon closes, when somebody cancels its scope, or when its owner says so.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from supervisor.front.edge.leaving import Leaving
from supervisor.front.http.event_stream import EventStream, cancel_when_set
from supervisor.front.mcp.listen import Change, Watch


async def notify(
    stream: EventStream,
    watch: Watch,
    leaving: Leaving,
    *,
    message: Callable[[Change], bytes],
    go_on: Callable[[], bool],
    closing: trio.Event,
    keepalive_s: float,
) -> None:
    """Send what `watch` finds until the stream is over.

    `go_on` is asked after each round, and at least every `keepalive_s`. A checkpoint.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_set, closing, nursery.cancel_scope)
        with leaving.ends(nursery.cancel_scope):
            while go_on():
                due = await watch.next(trio.current_time() + keepalive_s)
                for change in due:
                    await stream.event(message(change))
                if not due:
                    await stream.comment()
        nursery.cancel_scope.cancel()
