"""One HTTP request and its answer over ASGI: reading bodies, JSON answers, event streams.

Rules of this file:
- A body is read under limits in bytes and parts, a deadline, and the daemon's budget; what announces too much is
  refused before it is read.
- An answer is one start and one body. Event streams are only committed to when there is a reason.
- A loop of sends must have a checkpoint of its own and a concurrent receiver: once the peer is gone, an ASGI server's
  `send` may return at once for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import trio

from actors.errors import CallTooLarge, MailboxFull, SupervisorError
from actors.protocol.jsonrpc import INVALID_REQUEST
from supervisor.front.edge.asgi import Receive, Send
from supervisor.front.edge.budget import Share, overloaded
from supervisor.front.http.refusal import ErrorResponse, refuse
from supervisor.front.mcp.messages import NULL
from supervisor.service.port import failure

Headers = tuple[tuple[bytes, bytes], ...]

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final[Headers] = (
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
_END: Final[dict[str, Any]] = {"type": "http.response.body", "body": b"", "more_body": False}

CLOSE: Final[Headers] = ((b"connection", b"close"),)

PART_BYTES: Final = 1024 * 1024
LEAST_PARTS: Final = 1024
BYTES_PER_PART: Final = 256


class ClientGone(Exception):
    """The client left before its request was complete."""


class BodyLimits(msgspec.Struct, frozen=True):
    """What a body may be: bytes, and seconds for all of it to arrive."""

    max_bytes: int
    timeout_s: float

    @property
    def max_parts(self) -> int:
        """The parts it may arrive in: whatever cuts it smaller than that means to."""
        return LEAST_PARTS + self.max_bytes // BYTES_PER_PART


async def reply(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """Send a whole JSON answer; an empty body is sent without a content type."""
    kind = (_JSON,) if body else ()
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*kind, length, *headers]})
    if len(body) > PART_BYTES:
        await _send_parts(send, body, more_body=False)
    else:
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_parts(send: Send, data: bytes, *, more_body: bool) -> None:
    """Send data, much of it in parts: the layers below copy what they get, and others have their turn in between."""
    start = 0
    while len(data) - start > PART_BYTES:
        await send({"type": "http.response.body", "body": data[start : start + PART_BYTES], "more_body": True})
        await trio.lowlevel.checkpoint()
        start += PART_BYTES
    await send({"type": "http.response.body", "body": data[start:], "more_body": more_body})


async def read_body(receive: Receive, declared_bytes: int, share: Share, limits: BodyLimits) -> bytes | ErrorResponse:
    """Return the body, or the refusal for one that is too long, too slow or has no room. Raises `ClientGone`.

    Its bytes count in `share` from now on. A checkpoint.
    """
    if declared_bytes > limits.max_bytes:
        return _too_large(limits.max_bytes)
    with trio.move_on_after(limits.timeout_s) as scope:
        share.give_up = scope.cancel
        try:
            body = await _read_parts(receive, share, limits)
        except SupervisorError as error:
            return refused(error)
        share.complete()
        return body
    if share.taken_away:
        return refused(overloaded())
    return refuse(408, NULL, INVALID_REQUEST, f"the body did not arrive within {limits.timeout_s:g} s")


async def _read_parts(receive: Receive, share: Share, limits: BodyLimits) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        share.grow(len(part))
        if size > limits.max_bytes:
            raise CallTooLarge(f"the body is longer than {limits.max_bytes} bytes")
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
        if len(parts) > limits.max_parts:
            raise CallTooLarge(f"the body comes in more than {limits.max_parts} parts")


def _too_large(limit_bytes: int) -> ErrorResponse:
    return refused(CallTooLarge(f"the body is longer than {limit_bytes} bytes"))


def refused(error: SupervisorError) -> ErrorResponse:
    """Return the refusal of a request whose era and id are not known."""
    status = 503 if isinstance(error, MailboxFull) else error.http_status
    return ErrorResponse(status, failure(NULL, error).body)


async def disconnected(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    """Cancel `scope` when the client is gone."""
    await disconnected(receive)
    scope.cancel()


async def cancel_when_set(event: trio.Event, scope: trio.CancelScope) -> None:
    """Cancel `scope` when the event is set."""
    await event.wait()
    scope.cancel()


class EventStream(msgspec.Struct, frozen=True, eq=False):
    """A committed `text/event-stream` answer (WHATWG HTML, "Server-sent events"); one sender at a time."""

    _send: Send

    async def open(self, primer: bytes = b"", retry_ms: int = 0) -> None:
        """Send the head and a comment, so that the client sees the stream at once.

        `primer` is the id of an event without a message, instead of the comment; `retry_ms` when to come back after it.
        """
        await self._start(())
        await (self._part(_PRIMER % (primer, retry_ms)) if primer else self.comment())

    async def answer(self, message: bytes, headers: Headers = ()) -> None:
        """Send a whole stream with one message."""
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
        """Send a sign of life that no client reads as a message."""
        await self._part(_COMMENT)

    async def close(self) -> None:
        """End the answer."""
        await self._send(_END)

    async def _start(self, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *headers]})

    async def _part(self, data: bytes) -> None:
        await _send_parts(self._send, data, more_body=True)
