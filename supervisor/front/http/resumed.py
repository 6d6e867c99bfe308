"""The GET of a client that goes on with an answer stream whose connection broke (MCP 2025-11-25, basic/transports)."""

from __future__ import annotations

from collections.abc import Callable

import trio

from supervisor.front.edge.leaving import Leaving
from supervisor.front.http.answer_stream import PACE_S
from supervisor.front.http.event_stream import EventStream
from supervisor.front.http.redelivery import Track


async def go_on_with(
    track: Track,
    place: int,
    stream: EventStream,
    leaving: Leaving,
    *,
    go_on: Callable[[], bool],
    keepalive_s: float,
) -> None:
    """Send what was said after the event of this number, and what is said from now on, up to the answer. A checkpoint.

    It ends early when the client is gone, when somebody else resumes the stream, or when `go_on` says so.
    """
    with trio.CancelScope() as scope:
        track.take(scope)
        await stream.open()
        with leaving.ends(scope):
            await _speak(track, place, stream, go_on, keepalive_s)
    await stream.close()


async def _speak(track: Track, place: int, stream: EventStream, go_on: Callable[[], bool], keepalive_s: float) -> None:
    while go_on():
        said = track.after(place)
        if said:
            await stream.events([message for _, message in said], [track.id(number) for number, _ in said])
            place = said[-1][0]
            await trio.sleep(PACE_S)
        elif track.over:
            return
        else:
            with trio.move_on_after(keepalive_s) as quiet:
                await track.more()
            if quiet.cancelled_caught:
                await stream.comment()
