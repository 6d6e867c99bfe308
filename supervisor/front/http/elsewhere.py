"""Requests that another node of the fleet answers, at both ends: sent there, and answered there as those of its own
are.

What such a request is about is in the memory of one process. A session lives at the node that opened it, whose life its
id names: streams, questions, what it is subscribed to. A request of it that comes to another node goes there as a
whole, and its answer comes back as it is made. The node that has the client in front of it has checked who that is, and
is believed. Of a node that is gone another one takes the sessions over, the same for all: their ids say all that is
needed, as after a restart of a daemon; but not those that were ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from socket import AF_INET, AF_INET6
from typing import Final, cast

import msgspec
import trio

from actors.errors import SupervisorError
from actors.kit.fairness.share import Who
from supervisor.fleet.engine import Elsewhere, Node, NodeAway
from supervisor.fleet.links.requests import DistantRequest, SentRequest
from supervisor.fleet.peers import Peers
from supervisor.front.edge.fields import fields_of
from supervisor.front.edge.parser import Headers, IncomingRequest
from supervisor.front.edge.request import ClientGone, HttpRequest, Lines
from supervisor.front.edge.wire import ConnectionContext, Leaving
from supervisor.front.http.heads import HttpRefusal
from supervisor.front.http.sessions import HttpSession, KnownSession, SessionMemory, Sessions
from supervisor.front.http.streams import cancel_when_set
from supervisor.front.messages import NULL
from supervisor.identity.people import Person
from supervisor.identity.requester import ORIGIN, Requester, RequestOrigin
from supervisor.service.doors.addresses import door_of
from supervisor.service.port import failure

log = logging.getLogger(__name__)

_SPOKEN_FOR: Final = "node"
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
        self.come_from(Requester(person=head.person, credential=_SPOKEN_FOR if head.is_proven else ""))
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


_UNAVAILABLE: Final = 503
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization"})


class RequestNodes:
    """Which node answers a request, and how it is asked. `closing` ends streams, as it does those of this node."""

    def __init__(self, peers: Peers, sessions: Sessions, closing: trio.Event) -> None:
        self._peers = peers
        self._sessions = sessions
        self._closing = closing

    async def answer_session(self, request: HttpRequest, token: bytes, door: str, id_: bytes = NULL) -> bool:
        """Have the node of a session answer a request of it; False if that is this node.

        Raises `HttpRefusal`, where that cannot be known.
        """
        live = self._sessions.live(token)
        known = live or self._sessions.read(token, door)
        if known is None or known.life == self._peers.life:
            return False
        try:
            node = None if isinstance(request, ForwardedRequest) else self._node_of(known)
            if node is None and live is None and await self._peers.has_ended(known.digest):
                self._sessions.take_ended({known.digest: known.expires_at})
        except SupervisorError as error:
            raise _refusal(error, id_) from None
        if node is not None:
            await self._pass_on(request, node, id_)
        return node is not None

    def _node_of(self, known: HttpSession | KnownSession) -> Node | None:
        """Return which other node has a session that another process has opened; None if this one has it by now.

        Raises `LeaseEnded`.
        """
        return self._peers.find(known.life) or self._peers.heir(known.digest)

    async def answer_elsewhere(self, life: str, request: HttpRequest, id_: bytes) -> bool:
        """Have a request answered by the node whose life that is; False if there is none, or has sent it here.

        Raises `HttpRefusal`.
        """
        node = None if not life or isinstance(request, ForwardedRequest) else self._peers.find(life)
        if node is None:
            return False
        await self._pass_on(request, node, id_)
        return True

    async def _pass_on(self, request: HttpRequest, node: Node, id_: bytes) -> None:
        """Have a request answered there. Raises `HttpRefusal`, and `ClientGone`."""
        try:
            sent = await self._peers.request(node, head_of(request, request.target), request.content)
        except Elsewhere:
            raise _refusal(NodeAway(f"the node {node.name} ends; retry shortly", retry_after_s=1.0), id_) from None
        except SupervisorError as error:
            raise _refusal(error, id_) from None
        failed: SupervisorError | None = None
        over = False
        try:
            async with trio.open_nursery() as nursery:
                if request.method == "GET":
                    request.end_with_credential(nursery.cancel_scope)
                    nursery.start_soon(cancel_when_set, self._closing, nursery.cancel_scope)
                with request.leaving.ends(nursery.cancel_scope):
                    failed = await _relay(sent, request)
                    over = True
                nursery.cancel_scope.cancel()
        except BaseException:
            sent.abandon()
            raise
        if failed is not None:
            raise _refusal(failed, id_)
        if not over:
            sent.leave()
            if not request.leaving.is_set:
                await request.fail(503, "the daemon ends")
                await request.end()


async def _relay(sent: SentRequest, request: HttpRequest) -> SupervisorError | None:
    """Hand an answer over as it comes. Return what went wrong before it had begun; later it is cut short."""
    begun = None
    try:
        begun = await sent.read_head()
        if begun.whole:
            parts = []
            while (part := await sent.next()) is not None:
                parts.append(part)
            await request.answer(begun.status, b"".join(parts), begun.lines)
            return None
        await request.start(begun.status, begun.lines)
        while (part := await sent.next()) is not None:
            await request.send(part)
        await request.end()
    except SupervisorError as error:
        return error if begun is None or begun.whole else None
    return None


def head_of(request: HttpRequest, target: bytes, headers: Headers | None = None) -> bytes:
    """Return a request as it travels, without what only this node has to know; with other headers, if any are given."""
    requester = request.requester
    if headers is None:
        headers = [line for line in request.headers if line[0] not in _CREDENTIALS]
    head = RequestHead(
        request.method,
        target,
        request.version,
        headers,
        requester.person,
        requester.is_proven,
        request.sender,
    )
    return msgspec.msgpack.encode(head)


def _refusal(error: SupervisorError, id_: bytes) -> HttpRefusal:
    """Return the answer to a request that no node can answer now. Of one with an id the error stands in a 200."""
    lines = () if error.retry_after_s is None else ((b"retry-after", b"%d" % math.ceil(error.retry_after_s)),)
    return HttpRefusal(error.http_status if id_ != NULL else _UNAVAILABLE, failure(id_, error).body, lines)


def shared_memory(memory: SessionMemory, peers: Peers | None) -> SessionMemory:
    """Return the memory of sessions that have ended, which the other nodes of a fleet have, too."""
    if peers is None:
        return memory

    def end(digest: str, expires_at: float) -> None:
        memory.ended(digest, expires_at)
        peers.note_ended(digest, expires_at)

    async def keep() -> None:
        await memory.kept()
        await peers.flush_sessions()

    return msgspec.structs.replace(memory, ended=end, kept=keep, peers=peers)
