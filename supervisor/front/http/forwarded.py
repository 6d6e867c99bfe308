"""Requests of clients of other nodes, answered here as those of our own are.

The node that has the client in front of it has checked who that is, and is believed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final

import msgspec
import trio

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


class RequestHead(msgspec.Struct, frozen=True, array_like=True):
    """A request as it travels, all but its body; `person` sends it, from the address `sender`."""

    method: str
    target: bytes
    version: str
    headers: Headers
    person: Person
    is_proven: bool
    sender: str


_HEAD: Final = msgspec.msgpack.Decoder(RequestHead)


class DistantWire:
    """Stands for the connection of a client at another node. Implements `Wire`: nothing more comes, and what goes takes
    another way."""

    socket: trio.socket.SocketType

    def __init__(self, context: ConnectionContext, address: str) -> None:
        self.address = address
        self.context = context
        self.who: Hashable = address
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


class ForwardedRequest(HttpRequest):
    """A request of a client of another node, and the way back there. Raises `ValueError` for what is none."""

    def __init__(self, distant: DistantRequest, context: ConnectionContext) -> None:
        head = _HEAD.decode(distant.head)
        wire = DistantWire(context, head.sender)
        distant.on_leave(wire.leaving.set)
        body = distant.body
        super().__init__(
            wire,
            IncomingRequest(
                head.method,
                head.target,
                head.version,
                head.headers,
                fields_of(head.headers),
                keep_alive=True,
                length=len(body),
                parts=[body] if body else [],
                complete=True,
            ),
        )
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


def answer_with(serve: AtDoor, context: ConnectionContext) -> Callable[[DistantRequest], Awaitable[None]]:
    """Return what has requests of other nodes served; a bug behind one ends that one."""
    return partial(_answer, serve, context)


async def _answer(serve: AtDoor, context: ConnectionContext, distant: DistantRequest) -> None:
    try:
        request = ForwardedRequest(distant, context)
    except ValueError:
        distant.refuse(NodeAway("the nodes of the fleet do not understand one another; update all of them"))
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
