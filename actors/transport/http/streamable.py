"""Streamable HTTP: every message is a POST, whose answer is one message or a stream of them.

- A stream that breaks off before the answer is taken up where it ended, if its server has marked the place; no message
  is ever sent twice.
- A legacy server tells of what is about no request on the stream of a GET, which is opened again as long as it can be.
  (MCP 2025-11-25 and 2026-07-28, basic/transports "Streamable HTTP".)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Literal, TypeVar

import httpx2
import trio
from msgspec.structs import replace

from actors import codes
from actors.kit.decoding import decode_in_thread
from actors.protocol.agreement.versions import MODERN_VERSIONS
from actors.protocol.wire.framing import may_be_message
from actors.protocol.wire.peer import Failure, Outgoing
from actors.protocol.wire.weight import LARGE_BYTES
from actors.transport.http.client.pieces import StreamEvent, events, frozen, whole
from actors.transport.http.client.verdict import expiry
from actors.transport.http.head import (
    EVENTS,
    JSON,
    LAST_EVENT,
    MAX_MIRRORED_CHARS,
    SESSION,
    answers,
    error_for,
    head_of,
    head_of_session,
    mark_of,
    media_type,
    mirrored_fields,
    pause_s,
    session_of,
)
from actors.transport.http.site import Site
from actors.transport.session import GREETINGS, Session

MAX_ERROR_BYTES = 64 * 1024
"""Of the body of an answer that is no success, where a JSON-RPC error may be."""
MAX_RESUMPTIONS = 5
"""So often in a row a stream is taken up again without anything new on it."""
_LINGER_S = 1.0
"""How long a stream may stay open after its answer: one that ends by itself leaves its connection to others."""
_RETRY_S = (1.0, 60.0)
"""The shortest and the longest pause before a stream is opened again; the server may name another one."""
_OF_OTHERS = (400, 404, 405)
"""How who does not know Streamable HTTP answers `initialize` (MCP 2025-11-25, "Backwards Compatibility")."""

_OF_WHOEVER_ASKS = (401, 429)
"""They say something of whoever asks, whatever is asked: no body is the answer to a request."""

_OF_REQUESTS = (codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS)
"""They are about the one request, in whatever session; any other may come from who does not know the session."""

_UNHEARD = Failure(id=b"", cause="crashed", reason="its stream was away, and what it told meanwhile is not repeated")
_TOO_LONG = (
    f"the arguments that it wants in headers, too, have over {MAX_MIRRORED_CHARS} characters there: shorten them"
)
T = TypeVar("T")


async def _beside(read: Callable[[], T], size: int) -> T:
    """Read something, in a thread where it is large."""
    return read() if size < LARGE_BYTES else await decode_in_thread(read)


class _Place:
    """How far a stream has been read: the id of its last event, and after which pause it may be opened again."""

    def __init__(self) -> None:
        self.id = ""
        self.opened = False
        self.pause_s = _RETRY_S[0]

    def advance(self, event: StreamEvent) -> None:
        if event.id:
            self.id = mark_of(event.id)
        self.pause_s = _RETRY_S[0] if event.retry is None else pause_s(event.retry, _RETRY_S[1])


class StreamableHttp:
    """One session, whose messages go to `incoming`. `HttpSse` has the same methods, for the other transport.

    `missing` is how what is at the address shows that it does not speak this one; empty if it does, or is not known to.
    """

    kind: Literal["http"] = "http"

    def __init__(self, site: Site, incoming: Session, nursery: trio.Nursery) -> None:
        self.missing = ""
        self._site = site
        self._incoming = incoming
        self._nursery = nursery
        self._session = ""
        self._version = ""

    def begin(self, version: str) -> None:
        """Take that the session has begun, in a revision of the protocol."""
        self._version = version
        self._nursery.start_soon(self._site.share.run, self._listen)

    async def tell(self, message: Outgoing) -> None:
        await self._site.tell(head_of(message, self._session), message.body)

    async def close(self) -> None:
        if self._session:
            await self._site.forget(head_of_session(self._version, self._session))

    async def ask(self, message: Outgoing) -> Failure:
        """Send a request and hand on what its own stream brings, to the end; return why there is no more of it.

        That changes nothing if there was an answer.
        """
        place, body = _Place(), message.body
        fields = await _beside(partial(mirrored_fields, message, body), len(body)) if message.mirrors else {}
        if fields is None:
            return Failure(id=message.id, cause="refused", reason=_TOO_LONG, sent=False)
        try:
            async with self._site.request("POST", {**head_of(message, self._session), **fields}, body) as response:
                failure = await self._read(message, response, place)
        except httpx2.HTTPError as error:
            failure = self._site.failure(message.id, error)
        if place.id and failure is not None and failure.cause == "crashed" and message.version not in MODERN_VERSIONS:
            return await self._resume(message, place, failure)
        other = "what it answered is not the answer to this request"
        return failure or Failure(id=message.id, cause="protocol", reason=other)

    # What comes back -------------------------------------------------------------------------------------------------

    async def _read(self, message: Outgoing, response: httpx2.Response, place: _Place) -> Failure | None:
        """Hand on what an answer holds; return why there is no message in it, None if there may have been one."""
        if message.method == "initialize":
            self._session = session_of(response.headers.get(SESSION))
        status, kind = response.status_code, media_type(response.headers.get("content-type", ""))
        if status >= 400:
            return await self._read_refusal(message, response, kind)
        if status in (202, 204):
            return Failure(id=message.id, cause="protocol", reason=f"it gave no answer (HTTP {status})")
        if status != 200:
            return self._site.refusal(message.id, response)
        if kind == EVENTS:
            return await self._events(response, message.id, place)
        if kind != JSON:
            shown = kind[:64] or "nothing that is named"
            return Failure(id=message.id, cause="protocol", reason=f"it answered with {shown}, which is not MCP")
        return await self._body(message, response)

    async def _body(self, message: Outgoing, response: httpx2.Response) -> Failure | None:
        limit = self._site.limits.max_line_bytes
        body = await whole(response, limit, self._site.share)
        if body is None:
            reason = f"its answer is over {limit} bytes (max_line_bytes)"
            return Failure(id=message.id, cause="too_large", reason=reason)
        if not may_be_message(body):
            return Failure(id=message.id, cause="protocol", reason="its answer is no JSON-RPC message")
        await self._incoming.hand_on(body, message.id)
        return None

    async def _read_refusal(self, message: Outgoing, response: httpx2.Response, kind: str) -> Failure:
        """Hand on the JSON-RPC error in an answer that is no success, if there is one."""
        status = response.status_code
        minted = session_of(response.headers.get(SESSION))
        if minted and not self._session:  # a server that opens one for whatever comes first
            self._nursery.start_soon(self._site.share.run, self._site.forget, head_of_session("", minted))
        told = kind == JSON and status not in _OF_WHOEVER_ASKS
        body = await whole(response, MAX_ERROR_BYTES, self._site.share) if told else b""
        code = error_for(body, message.id) if body else None
        if status == 404 and self._session and code != codes.METHOD_NOT_FOUND:
            return expiry(message.id)
        greets = message.method in GREETINGS
        failure = self._site.refusal(message.id, response)
        if failure.stale and body and code is not None and self._session and code not in _OF_REQUESTS:
            return replace(failure, said=body)
        if body and (code is not None or (greets and b'"error"' in body and may_be_message(body))):
            await self._incoming.hand_on(body, message.id)
        elif message.method == "initialize":
            self.missing = f"HTTP {status}" if status in _OF_OTHERS else ""
        return failure if code is None else replace(failure, stale=False)

    async def _events(self, response: httpx2.Response, stream: bytes, place: _Place) -> Failure | None:
        """Hand on the messages of a stream, up to the answer to the request whose stream it is; None if that came."""
        answered = False
        with trio.CancelScope() as reading:
            async with events(response, self._site.limits.event_bytes, self._site.share, paced=bool(stream)) as told:
                async for event in told:
                    place.advance(event)
                    if event.data and event.event == "message":
                        await self._incoming.hand_on(text := await frozen(event.data), stream)
                        if stream != b"" and await _beside(partial(answers, text, stream), len(text)):
                            answered = True
                            reading.deadline = trio.current_time() + _LINGER_S
        reason = "it ended its answer before the result"
        return None if answered else Failure(id=stream, cause="crashed", reason=reason)

    async def _resume(self, message: Outgoing, place: _Place, failure: Failure) -> Failure:
        """Read on where a stream broke off, until its answer; return why there is no more of it."""
        tries = 0
        while tries < MAX_RESUMPTIONS:
            before = place.id
            await trio.sleep(place.pause_s)
            if await self._get(message.id, place):
                break
            tries = tries + 1 if place.id == before else 0
        return failure

    async def _listen(self) -> None:
        """Hear what is about no request, as long as the server has a stream for that."""
        place, pause, before = _Place(), 0.0, ""
        while not await self._get(b"", place):
            pause = place.pause_s if place.id != before else min(max(2 * pause, place.pause_s), _RETRY_S[1])
            before = place.id
            await trio.sleep(pause)

    async def _get(self, stream: bytes, place: _Place) -> bool:
        """Open a stream, or read on in it, to its end; True if no more comes of it: it is answered, or not kept."""
        head = {"accept": EVENTS, **head_of_session(self._version, self._session)}
        if place.id:
            head[LAST_EVENT] = place.id
        with suppress(httpx2.HTTPError):
            async with self._site.request("GET", head) as response:
                if response.status_code != 200:
                    return response.status_code < 500
                if place.opened and not place.id:
                    await self._incoming.fail(_UNHEARD)
                place.opened = True
                return await self._events(response, stream, place) is None
        return False
