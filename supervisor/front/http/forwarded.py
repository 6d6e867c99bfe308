"""Requests of clients of other nodes, answered here as those of our own are.

The node that has the client in front of it has checked who that is, and is believed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from socket import AF_INET, AF_INET6
from typing import Final, cast

import msgspec
import trio

from actors.kit.fairness.share import Who
from supervisor.fleet.errors import NodeAway
from supervisor.fleet.links.requests import DistantRequest
from supervisor.front.edge.fields import fields_of
from supervisor.front.edge.leaving import Leaving
from supervisor.front.edge.parser import Headers, IncomingRequest
from supervisor.front.edge.request import ClientGone, HttpRequest, Lines
from supervisor.front.edge.wire import ConnectionContext
from supervisor.identity.people import Person
from supervisor.identity.requester import ORIGIN, Requester, RequestOrigin
from supervisor.service.doors.addresses import door_of

log = logging.getLogger(__name__)

SPOKEN_FOR: Final = "node"
"""The credential of whoever another node has let in."""
AtDoor = Callable[[str, HttpRequest], Awaitable[None]]
"""Serves a request at the door of a name."""


class RequestHead(msgspec.Struct, frozen=True, array_like=True, tag="request"):
    """A request as it travels, all but its body; `person` sends it, from the address `sender`."""

    method: str
    target: bytes
    version: str
    headers: Headers
    person: Person
    is_proven: bool
    sender: str


class VisitHead(msgspec.Struct, frozen=True, array_like=True, tag="visit"):
    """A request of a browser as it came, whoever that is. `ends` are the address and port of the browser, and of the
    node that it reached; `forwarded_for` is what a proxy said that is believed.
    """

    method: str
    target: bytes
    version: str
    headers: Headers
    ends: tuple[tuple[str, int], tuple[str, int]]
    forwarded_for: str | None


_HEAD: Final = msgspec.msgpack.Decoder(RequestHead | VisitHead)


class DistantWire:
    """Stands for the connection of a client at another node. Implements `Wire`: nothing more comes, and what goes takes
    another way."""

    socket: trio.socket.SocketType

    def __init__(self, context: ConnectionContext, address: str) -> None:
        self.address = address
        self.context = context
        self.who: Who = address, None
        self.leaving = Leaving()
        self.behind = b""

    def take(self) -> bool:
        return False

    async def more(self) -> None:
        await trio.lowlevel.checkpoint()
        raise ClientGone

    async def read(self) -> bytes:
        await trio.lowlevel.checkpoint()
        return b""

    async def write(self, *parts: bytes) -> None:
        await trio.lowlevel.checkpoint()


class _Ends:
    """Stands for the socket of a connection at another node: hypercorn asks it who is at both ends."""

    def __init__(self, client: tuple[str, int], own: tuple[str, int]) -> None:
        self.family = AF_INET6 if ":" in client[0] else AF_INET
        self._client = client
        self._own = own

    def getpeername(self) -> tuple[str, int]:
        return self._client

    def getsockname(self) -> tuple[str, int]:
        return self._own


class VisitWire(DistantWire):
    """The connection of a browser at another node, to which what is written here goes as it is."""

    def __init__(self, context: ConnectionContext, head: VisitHead, distant: DistantRequest) -> None:
        super().__init__(context, head.ends[0][0])
        self.socket = cast("trio.socket.SocketType", _Ends(*head.ends))
        self._distant = distant
        self._begun = False

    async def write(self, *parts: bytes) -> None:
        if not self._begun:
            self._begun = True
            await self._distant.begin(200, (), whole=False)
        await self._distant.send(b"".join(parts))


class ForwardedRequest(HttpRequest):
    """A request of a client of another node, and the way back there."""

    def __init__(self, distant: DistantRequest, head: RequestHead, context: ConnectionContext) -> None:
        wire = DistantWire(context, head.sender)
        distant.on_leave(wire.leaving.set)
        super().__init__(wire, _request_of(head, distant.body, keep_alive=True))
        self.come_from(Requester(person=head.person, credential=SPOKEN_FOR if head.is_proven else ""))
        self._distant = distant

    async def answer(self, status: int, body: bytes = b"", lines: Lines = ()) -> None:
        self._started = self.is_answered = True
        await self._distant.begin(status, tuple(lines), whole=True)
        await self._distant.send(body)
        self._distant.end()

    async def start(self, status: int, lines: Lines) -> None:
        self._started = True
        await self._distant.begin(status, tuple(lines), whole=False)

    async def send(self, part: bytes) -> None:
        await self._distant.send(part)

    async def end(self) -> None:
        await trio.lowlevel.checkpoint()
        self.is_answered = True
        self._distant.end()


def _request_of(head: RequestHead | VisitHead, body: bytes, *, keep_alive: bool) -> IncomingRequest:
    return IncomingRequest(
        head.method,
        head.target,
        head.version,
        head.headers,
        fields_of(head.headers),
        keep_alive=keep_alive,
        length=len(body),
        parts=[body] if body else [],
        complete=True,
    )


def answer_with(
    serve: AtDoor, receive: Callable[[HttpRequest], Awaitable[None]], context: ConnectionContext
) -> Callable[[DistantRequest], Awaitable[None]]:
    """Return what has requests of other nodes served, and visitors received; a bug behind one ends that one."""
    return partial(_answer, serve, receive, context)


async def _answer(
    serve: AtDoor,
    receive: Callable[[HttpRequest], Awaitable[None]],
    context: ConnectionContext,
    distant: DistantRequest,
) -> None:
    request: HttpRequest
    try:
        head = _HEAD.decode(distant.head)
        if isinstance(head, VisitHead):
            request = _visit_of(head, distant, context)
        else:
            request = ForwardedRequest(distant, head, context)
    except ValueError:
        distant.refuse(NodeAway("the nodes of the fleet do not understand one another; update all of them"))
        return
    if isinstance(head, VisitHead):
        await _receive(receive, request, distant)
        return
    ORIGIN.set(RequestOrigin(request.requester, request.sender, request.path))
    try:
        await serve(door_of(request.path) or "", request)
    except ClientGone:
        pass
    except Exception:  # the border, as that of a connection
        log.exception("a bug behind a request of another node")
        await request.fail(500, "internal error; the daemon's log says more")
    finally:
        request.release()


def _visit_of(head: VisitHead, distant: DistantRequest, context: ConnectionContext) -> HttpRequest:
    request = HttpRequest(VisitWire(context, head, distant), _request_of(head, distant.body, keep_alive=False))
    request.forwarded_for = head.forwarded_for
    distant.on_leave(request.leaving.set)
    return request


async def _receive(
    receive: Callable[[HttpRequest], Awaitable[None]], request: HttpRequest, distant: DistantRequest
) -> None:
    try:
        await receive(request)
    except ClientGone:
        pass
    except Exception:  # as above
        log.exception("a bug behind a page for a browser at another node")
        await request.fail(500, "internal error; the daemon's log says more")
    finally:
        request.release()
    distant.end()
