"""One HTTP request and its answer: what its handler has of the connection.

Rules of this file:
- A body is read when it is asked for, under limits in bytes and parts, a deadline, and the daemon's budget; what
  announces too much is refused unread, and a client that waits for a 100 gets it only when somebody wants the body.
- Head and body of an answer leave in one write. A stream is sent in chunks; to HTTP/1.0 until the connection ends.
- An answer before the end of the body is the last one of its connection.
- Every answer has the lines that keep a browser from misusing it.
- To a client that is gone everything is sent in vain, and nobody is told: who goes on sending binds to `leaving`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import perf_counter
from typing import Final
from urllib.parse import unquote

import msgspec
import trio

from actors.errors import CallTooLarge
from actors.principal import Principal
from supervisor.front.edge.budget import FREE_BYTES, Share, no_room
from supervisor.front.edge.parser import IncomingRequest
from supervisor.front.edge.wire import ConnectionCounters, Wire
from supervisor.identity.operator_key import endpoint
from supervisor.identity.requester import ANYBODY, THE_OPERATOR, Requester

Lines = Sequence[tuple[bytes, bytes]]
"""Header lines of an answer: names in lower case, and values."""

_LEAST_PARTS: Final = 1024
_BYTES_PER_PART: Final = 256

_JSON: Final = b"content-type: application/json\r\n"
_HARDENING: Final = b"x-content-type-options: nosniff\r\nx-frame-options: DENY\r\nreferrer-policy: no-referrer\r\n"
_NO_STORE: Final = b"cache-control: no-store\r\n"
_STATUS_LINES: Final = {one.value: b"HTTP/1.1 %d %s\r\n" % (one, one.phrase.encode()) for one in HTTPStatus}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class NotAllowed(msgspec.Struct, frozen=True):
    """What a request is answered with that is not served, for the sake of its credential."""

    status: int
    body: bytes
    lines: Lines


class ClientGone(Exception):
    """The client left before its request was complete."""


class TooLate(Exception):
    """A body did not arrive in time."""


class BodyLimits(msgspec.Struct, frozen=True):
    """What a body may be: bytes, and seconds for all of it to arrive."""

    max_bytes: int
    timeout_s: float

    @property
    def max_parts(self) -> int:
        """The parts it may arrive in: whatever cuts it smaller than that means to."""
        return _LEAST_PARTS + self.max_bytes // _BYTES_PER_PART

    def too_large(self) -> CallTooLarge:
        return CallTooLarge(f"the body is longer than {self.max_bytes} bytes")


class HttpRequest:
    """A request and the way back to its client."""

    def __init__(self, connection: Wire, incoming: IncomingRequest) -> None:
        self._connection = connection
        self._incoming = incoming
        self.leaving = connection.leaving
        """Tells when the client leaves."""
        self._share: Share | None = None
        self._started = False
        self._chunked = False
        self._closes = not incoming.keep_alive or incoming.upgrade or incoming.version == "1.0"
        self.is_answered = False
        """Whether the whole answer is on its way."""
        self.began = perf_counter()
        self.told: Callable[[HttpRequest, int], None] = _tell_nobody
        """Called with the status when a whole answer is about to be sent: none in parts, or by somebody else."""
        self.method = incoming.method
        self.target = incoming.target
        self.content = b""
        """The body, once it was read by whoever may have to pass it on."""
        self.query = b""
        """What `hide_query` took out of the target."""
        self._is_private = False
        self.version = incoming.version
        path = incoming.target.partition(b"?")[0].decode("ascii")
        self.path = unquote(path) if "%" in path else path
        self.headers = incoming.headers
        self.fields = incoming.fields
        self.requester: Requester = THE_OPERATOR
        self.principal: Principal = THE_OPERATOR.principal
        self.is_websocket = incoming.upgrade
        self.lacking: Callable[[bytes], NotAllowed] | None = None
        """The answer to a call of a tool whose id is given, where the credential is not for that."""
        self.end_with_credential: Callable[[trio.CancelScope | None], None] = lambda part: None
        """Called by whoever answers with what has no end of its own: it lasts as long as the credential does. Where a
        `part` of the request is given, only that ends then."""
        self.forwarded_for: str | None = None
        """Where it comes from, as a proxy says that is believed; None: there is none in between."""
        self.common: Lines = ()
        """Lines of whatever the answer is."""

    def hide_query(self) -> None:
        """Take the query, which holds a credential, out of the target, before anybody makes that into a text.

        Nobody may keep the answer (RFC 9111 5.2.2.5).
        """
        self.target, _, self.query = self.target.partition(b"?")
        self._is_private = True

    def come_from(self, requester: Requester) -> None:
        """Take who sends it, as the gate has found out: what comes on this connection from now on has its turn with
        what is theirs.
        """
        self.requester, self.principal = requester, requester.principal
        if requester is not ANYBODY:
            self._connection.who = requester.principal, self.address

    def come_as(self, client: Hashable) -> None:
        """Take which client of whoever sends it this is: within what is theirs, it has turns with the same one."""
        self._connection.who = self.principal, client

    @property
    def counters(self) -> ConnectionCounters:
        """What is counted of all connections."""
        return self._connection.context.counters

    @property
    def address(self) -> str:
        """Where it comes from; empty if that is not known."""
        return self._connection.address

    @property
    def sender(self) -> str:
        """Where it comes from behind proxies that are believed; see `supervisor/front/guard.py`."""
        return self.address if self.forwarded_for is None else self.forwarded_for

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The address and port of its client, and ours; empty and 0 where they are not known any more."""
        return _end(self._connection.socket.getpeername), _end(self._connection.socket.getsockname)

    @property
    def own_end(self) -> str:
        """Our end of its connection, see `endpoint`; empty if that is not known any more."""
        with suppress(OSError, IndexError, TypeError):
            return endpoint(self._connection.socket.getsockname())
        return ""

    @property
    def is_followed(self) -> bool:
        """Whether the client has sent something behind it that was read with it."""
        return bool(self._connection.behind)

    @property
    def has_body(self) -> bool:
        return bool(self._incoming.length or self._incoming.parts) or not self._incoming.complete

    @property
    def is_last(self) -> bool:
        """Whether the connection ends with this request: its client says so, we do, or its body was not read."""
        return self._closes or not self._incoming.complete or self._connection.context.closing.is_set()

    def release(self) -> None:
        """It is over: its bytes count no more."""
        if self._share is not None:
            self._share.close()

    # What comes -------------------------------------------------------------------------------------------------------

    async def body(self, limits: BodyLimits) -> bytes:
        """Read the whole body, whose bytes count in the budget of all until the request is over.

        Raises `CallTooLarge`, `MailboxFull` where there is no room, `TooLate`, `ClientGone`, `HttpProtocolError`.
        """
        incoming, connection = self._incoming, self._connection
        if incoming.length > limits.max_bytes:
            raise limits.too_large()
        if not incoming.complete and incoming.length:
            connection.take()
        if incoming.complete and incoming.length <= FREE_BYTES:  # what most bodies are: here, and too short to count
            return b"".join(incoming.parts)
        self._share = share = connection.context.budget.share()
        if incoming.complete:
            return await self._collect(limits, share)
        if incoming.expects and not incoming.parts:
            await connection.write(_CONTINUE)
        with trio.move_on_after(limits.timeout_s) as scope:
            share.give_up = scope.cancel
            return await self._collect(limits, share)
        if share.taken_away:
            raise no_room()
        raise TooLate(f"the body did not arrive within {limits.timeout_s:g} s")

    async def _collect(self, limits: BodyLimits, share: Share) -> bytes:
        incoming, counted, size = self._incoming, 0, 0
        while True:
            for part in incoming.parts[counted:]:
                size += len(part)
                share.grow(len(part))
            if size > limits.max_bytes:
                raise limits.too_large()
            counted = len(incoming.parts)
            if incoming.complete:
                share.complete()
                return incoming.parts[0] if counted == 1 else b"".join(incoming.parts)
            if counted > limits.max_parts:
                raise CallTooLarge(f"the body comes in more than {limits.max_parts} parts")
            await self._connection.more()

    # What goes --------------------------------------------------------------------------------------------------------

    async def answer(self, status: int, body: bytes = b"", lines: Lines = ()) -> None:
        """Send a whole answer, whose body is JSON or empty."""
        self._started = self.is_answered = True
        self.told(self, status)
        kind = _JSON if body else b""
        head = self._head(status, lines, b"%scontent-length: %d\r\n" % (kind, len(body)))
        if body and self.method != "HEAD":
            await self._connection.write(head, body)
        else:
            await self._connection.write(head)

    async def refuse(self, status: int, body: bytes, lines: Lines = ()) -> None:
        """Answer and close the connection; nothing if an answer has begun."""
        if not self._started:
            self._closes = True
            await self.answer(status, body, lines)

    async def fail(self, status: int, message: str) -> None:
        """Say that the request cannot be served, and close the connection; nothing if an answer has begun."""
        await self.refuse(status, msgspec.json.encode({"error": {"code": status, "message": message}}))

    async def start(self, status: int, lines: Lines) -> None:
        self._started = True
        self._chunked = self._incoming.version == "1.1"
        await self._connection.write(
            self._head(status, lines, b"transfer-encoding: chunked\r\n" if self._chunked else b"")
        )

    async def send(self, part: bytes) -> None:
        if not part:
            return
        if self._chunked:
            await self._connection.write(b"%x\r\n" % len(part), part, b"\r\n")
        else:
            await self._connection.write(part)

    async def end(self) -> None:
        self.is_answered = True
        if self._chunked:
            await self._connection.write(b"0\r\n\r\n")

    def hand_over(self) -> Wire:
        """Let somebody else answer, on the connection itself, which ends with that."""
        self._closes = self._started = self.is_answered = True
        return self._connection

    def _head(self, status: int, lines: Lines, framing: bytes) -> bytes:
        more = b"".join([b"%s: %s\r\n" % line for line in (*lines, *self.common)]) if lines or self.common else b""
        close = b"connection: close\r\n" if self.is_last else b""
        start = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
        private = _NO_STORE if self._is_private else b""
        return b"".join((start, framing, more, _HARDENING, private, _date_line(int(time.time())), close, b"\r\n"))


def _end(name: Callable[[], Sequence[object]]) -> tuple[str, int]:
    with suppress(OSError, IndexError, TypeError):
        host, port, *_ = name()
        return str(host), int(str(port))
    return "", 0


def _tell_nobody(request: HttpRequest, status: int) -> None:
    del request, status


@lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return b"date: %s\r\n" % formatdate(second, usegmt=True).encode("ascii")
