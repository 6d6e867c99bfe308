"""Answers that are event streams (WHATWG HTML, "Server-sent events"); one is only begun where there is a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from supervisor.front.edge.request import HttpRequest, Lines

PART_BYTES: Final = 1024 * 1024
"""Longer messages are not joined with what is around them: that would copy them once more."""

_EVENTS: Final[Lines] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_EVENT: Final = b"event: message\ndata: "
_EVENT_END: Final = b"\n\n"
_ID: Final = b"id: %s\n"
_PRIMER: Final = b"id: %s\nretry: %d\ndata: \n\n"
_ONE_LINE: Final = bytes.maketrans(b"\n\r", b"  ")
"""Relayed JSON may be laid out over lines. Raw line ends occur in JSON only between tokens."""
_COMMENT: Final = b": ping\n\n"


async def cancel_when_set(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class EventStream(msgspec.Struct, frozen=True, eq=False):
    """A committed `text/event-stream` answer; one sender at a time."""

    _request: HttpRequest

    async def open(self, primer: bytes = b"", retry_ms: int = 0) -> None:
        """Send the head and a comment, so that the client sees the stream at once.

        `primer` is the id of an event without a message, instead of the comment; `retry_ms` when to come back after it.
        """
        await self._start(())
        await (self._part(_PRIMER % (primer, retry_ms)) if primer else self.comment())

    async def answer(self, message: bytes, headers: Lines = ()) -> None:
        await self._start(headers)
        await self.event(message)
        await self.close()

    async def event(self, message: bytes, id_: bytes = b"") -> None:
        """Send one JSON-RPC message; `id_` is that of the event, empty if it has none."""
        if b"\n" in message or b"\r" in message:
            message = message.translate(_ONE_LINE)
        start = _ID % id_ + _EVENT if id_ else _EVENT
        if len(message) <= PART_BYTES:
            await self._part(start + message + _EVENT_END)
            return
        for part in (start, message, _EVENT_END):  # not joined: that would copy it once more
            await self._part(part)

    async def events(self, messages: Sequence[bytes], ids: Sequence[bytes] = ()) -> None:
        """Send several small JSON-RPC messages at once; `ids` are those of the events, none or one for each."""
        parts = [_EVENT + message.translate(_ONE_LINE) + _EVENT_END for message in messages]
        if ids:
            parts = [_ID % id_ + part for id_, part in zip(ids, parts, strict=True)]
        await self._part(b"".join(parts))

    async def comment(self) -> None:
        await self._part(_COMMENT)

    async def close(self) -> None:
        await self._request.end()

    async def _start(self, headers: Lines) -> None:
        await self._request.start(200, (*_EVENTS, *headers))

    async def _part(self, data: bytes) -> None:
        await self._request.send(data)
