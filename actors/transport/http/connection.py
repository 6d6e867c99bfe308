"""A session over Streamable HTTP: every message is a POST, whose answer is one message or a stream of them.

- A request has a task, which ends with its answer or with a `Failure`: what comes of it is never left open.
- One incarnation is one session. It is over when the server does not know it any more; then whoever was refused for
  that waits for the next one, as nothing of it was done. No message is ever sent twice on one connection.
- A legacy server tells of what is about no request on the stream of a GET, which is opened again as long as it can be.
- Nothing the server says leads anywhere else: redirects are followed within the origin only, cookies are not kept.
  (MCP 2025-11-25 and 2026-07-28, basic/transports "Streamable HTTP".)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import httpx2
import trio

from actors.errors import MailboxFull, ServerExited
from actors.kit import Mailbox
from actors.kit.decoding import decoded
from actors.protocol.failure import Failure
from actors.protocol.framing import may_be_message
from actors.protocol.outbound import LISTEN
from actors.protocol.outgoing import Outgoing
from actors.protocol.versions import MODERN_VERSIONS
from actors.transport.base import Counters, Exit, Incoming, Work
from actors.transport.http.head import (
    EVENTS,
    JSON,
    SESSION,
    answers,
    head_of,
    head_of_session,
    media_type,
    retry_after_s,
    session_of,
)
from actors.transport.http.redirects import post
from actors.transport.http.remote import HttpLimits
from actors.transport.http.verdict import broken, is_expired, of_status, why
from actors.transport.side_output import Asides

MAX_ERROR_BYTES = 64 * 1024
"""Of the body of an answer that is no success, where a JSON-RPC error may be."""
MAX_ARRIVED = 64
"""So many things that came in wait for the actor; then nothing more is read."""
_RETRY_S = (1.0, 60.0)
"""The shortest and the longest pause before the stream of a GET is opened again; the server may name another one."""
_SESSION_OVER = "its session is over"


class HttpConnection:
    """One session; see `Connection` for the contract of each method."""

    pid = None

    def __init__(self, url: str, limits: HttpLimits, client: httpx2.AsyncClient, nursery: trio.Nursery) -> None:
        self.counters = Counters()
        self.asides = Asides(0)
        self._url = httpx2.URL(url)
        self._limits = limits
        self._client = client
        self._nursery = nursery
        self._arrived: Mailbox[Incoming] = Mailbox(MAX_ARRIVED)
        self._open: dict[bytes, trio.CancelScope] = {}
        self._session = ""
        self._version = ""
        self._over = False
        self._settled = trio.lowlevel.ParkingLot()
        self._exit: Exit | None = None
        self._exited = trio.Event()

    async def send(self, messages: Sequence[Outgoing], left: Callable[[int], None]) -> bool:
        """Post each message in a task of its own; what ends the handshake arrives before anything else is sent."""
        for message in messages:
            if self._exit is not None:
                raise ServerExited(_SESSION_OVER)
            if message.cancels:
                self._take_back(message)
            self.counters.messages_sent += 1
            left(1)
            if message.id:
                self._open[message.id] = scope = trio.CancelScope()
                self._nursery.start_soon(self._ask, message, scope)
            elif message.method == "notifications/initialized":
                await self._tell(message)
                self._version = message.version
                self._nursery.start_soon(self._listen)
            elif not (message.cancels and message.version in MODERN_VERSIONS):
                self._nursery.start_soon(self._tell, message)
        return True

    def _take_back(self, message: Outgoing) -> None:
        """Close the stream of a request: in the modern era that is how it is taken back."""
        if (scope := self._open.pop(message.cancels, None)) is not None:
            scope.cancel()
            self._settled.unpark_all()

    async def _tell(self, message: Outgoing) -> None:
        """Post what has no answer. If it does not arrive, what follows from that is told by the requests."""
        with suppress(httpx2.HTTPError, httpx2.InvalidURL), trio.move_on_after(self._limits.write_timeout_s):
            response = await self._post(message)
            await response.aclose()

    async def _ask(self, message: Outgoing, scope: trio.CancelScope) -> None:
        """Post a request and hand on what it brings, to the end: an answer, or why there is none."""
        longest = self._limits.call_max_s
        failure = Failure(id=message.id, cause="crashed", reason=f"it did not end its answer within {longest:g} s")
        if message.method != LISTEN:  # that ends when nobody listens any more
            scope.deadline = trio.current_time() + longest
        with scope:
            failure = _expired(message) if self._over else await self._brought(message)
        if self._open.pop(message.id, None) is None:
            return  # nobody waits for it any more
        await self._arrived.address.tell(Incoming(failure=failure))
        self._settled.unpark_all()
        if failure.cause == "expired" and not self._over:
            self._over = True
            self._nursery.start_soon(self._finish)

    async def _finish(self) -> None:
        """End a session that is over, when the other requests have their answers: they may be refused as well."""
        with trio.move_on_after(self._limits.stop_s):
            while self._open:
                await self._settled.park()
        self._end(Exit(cause=_SESSION_OVER, renewable=True))

    async def _brought(self, message: Outgoing) -> Failure:
        """Return why a request brings no answer, or no more of it; what it brought was handed on."""
        try:
            response = await self._post(message)
            try:
                failure = await self._read(message, response)
            finally:
                with trio.move_on_after(1, shield=True):
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError) as error:
            reason = f"it cannot be reached ({why(error)})"
            return Failure(id=message.id, cause="unavailable", reason=reason, sent=False)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return broken(message.id, error)
        other = "what it answered is not the answer to this request"
        return failure or Failure(id=message.id, cause="protocol", reason=other)

    async def _post(self, message: Outgoing) -> httpx2.Response:
        return await post(self._client, self._url, head_of(message, self._session), message.body)

    # What comes back -------------------------------------------------------------------------------------------------

    async def _read(self, message: Outgoing, response: httpx2.Response) -> Failure | None:
        """Hand on what an answer holds; return why there is no message in it, None if there may have been one."""
        if message.method == "initialize":
            self._session = session_of(response.headers.get(SESSION))
        status, kind = response.status_code, media_type(response.headers.get("content-type", ""))
        if status >= 400:
            return await self._refused(message, response, kind)
        if status in (202, 204):
            return Failure(id=message.id, cause="protocol", reason=f"it gave no answer (HTTP {status})")
        if status != 200:
            return of_status(message.id, status, None)
        if kind == EVENTS:
            await self._events(response, message.id)
            return Failure(id=message.id, cause="crashed", reason="it ended its answer before the result")
        if kind != JSON:
            shown = kind[:64] or "nothing that is named"
            return Failure(id=message.id, cause="protocol", reason=f"it answered with {shown}, which is not MCP")
        body = await self._body(response, self._limits.max_line_bytes)
        if body is None:
            limit = self._limits.max_line_bytes
            return Failure(
                id=message.id, cause="too_large", reason=f"its answer is over {limit} bytes (max_line_bytes)"
            )
        if not may_be_message(body):
            return Failure(id=message.id, cause="protocol", reason="its answer is no JSON-RPC message")
        await self._hand_on(body, message.id)
        return None

    async def _refused(self, message: Outgoing, response: httpx2.Response, kind: str) -> Failure:
        """Hand on the JSON-RPC error in an answer that is no success, if there is one."""
        body = await self._body(response, MAX_ERROR_BYTES) if kind == JSON else b""
        if self._session and is_expired(response.status_code, body or b""):
            return _expired(message)
        if body and b'"error"' in body and may_be_message(body):
            await self._hand_on(body, message.id)
        return of_status(message.id, response.status_code, retry_after_s(response.headers.get("retry-after")))

    async def _body(self, response: httpx2.Response, limit: int) -> bytes | None:
        """Return a whole body; None for one over the limit."""
        parts: list[bytes] = []
        size = 0
        with trio.CancelScope() as reading:  # to be left early, the readers inside one another must be cancelled
            async for part in response.aiter_bytes():
                parts.append(part)
                size += len(part)
                if size > limit:
                    parts.clear()
                    reading.cancel()
        if size > limit:
            return None
        return b"".join(parts) if len(parts) < 16 else await decoded(partial(b"".join, parts))

    async def _events(self, response: httpx2.Response, stream: bytes) -> None:
        """Hand on the messages of an event stream, up to the answer to the request whose stream it is."""
        with trio.CancelScope() as reading:
            async for event in httpx2.EventSource(response, self._limits.max_event_bytes):
                if event.data and event.event == "message":
                    text = event.data.encode(errors="replace")
                    await self._hand_on(text, stream)
                    if answers(text, stream):
                        reading.cancel()

    async def _hand_on(self, text: bytes, stream: bytes) -> None:
        if may_be_message(text):
            self.counters.messages_received += 1
            await self._arrived.address.tell(Incoming((text,), stream))
        else:
            self.counters.stdout_noise += 1
            self.asides.noise([text])

    async def _listen(self) -> None:
        """Hear what is about no request, as long as the server has a stream for that."""
        pause, last = _RETRY_S[0], ""
        while True:
            head = {"accept": EVENTS, **head_of_session(self._version, self._session)}
            with suppress(httpx2.HTTPError):
                async with self._client.stream(
                    "GET", self._url, headers={**head, "last-event-id": last} if last else head
                ) as response:
                    if response.status_code < 500 and response.status_code != 200:
                        return  # it has none
                    async for event in httpx2.EventSource(response, self._limits.max_event_bytes):
                        last, pause = event.id or last, _RETRY_S[0]
                        if event.retry is not None:
                            pause = min(max(event.retry / 1000, 0.1), _RETRY_S[1])
                        if event.data and event.event == "message":
                            await self._hand_on(event.data.encode(errors="replace"), b"")
            await trio.sleep(pause)
            pause = min(2 * pause, _RETRY_S[1])

    # The end ---------------------------------------------------------------------------------------------------------

    def _end(self, exit_: Exit) -> None:
        if self._exit is None:
            self._exit = exit_
            self._exited.set()
            with suppress(MailboxFull):  # else whoever reads comes by when it has read all
                self._arrived.address.tell_nowait(Incoming())

    async def input_closed(self) -> None:
        """Wait for the end."""
        await self._exited.wait()

    async def receive(self) -> Incoming:
        """Return what arrives next."""
        if self._exit is not None and not len(self._arrived):
            return Incoming()
        return (await self._arrived.receive()).message

    async def wait(self) -> Exit:
        """Wait until the session is over."""
        await self._exited.wait()
        assert self._exit is not None
        return self._exit

    async def stop(self, *, term_s: float | None = None) -> None:
        """Tell the server that the session is over."""
        if self._session and self._exit is None:
            head = head_of_session(self._version, self._session)
            with suppress(httpx2.HTTPError), trio.move_on_after(self._limits.stop_s if term_s is None else term_s):
                await self._client.delete(self._url, headers=head)
        self._end(Exit(asked=True))

    def kill(self) -> None:
        """End everything."""
        for scope in self._open.values():
            scope.cancel()
        self._end(Exit(asked=True))

    async def work(self) -> Work | None:
        """Nobody can tell."""
        await trio.lowlevel.checkpoint()
        return None

    def last_stderr(self, lines: int = 20) -> str:
        """Return the newest lines that were no messages."""
        return self.asides.last_stderr(lines)


def _expired(message: Outgoing) -> Failure:
    return Failure(id=message.id, cause="expired", reason=_SESSION_OVER, sent=False)
