"""Requests that another node of the fleet has to answer: what they are about is in the memory of its process.

A session lives at the node that opened it, whose life its id names: streams, questions, what it is subscribed to. A
request of it that comes to another node goes there as a whole, and its answer comes back as it is made. Of a node that
is gone another one takes the sessions over, the same for all: their ids say all that is needed, as after a restart of
a daemon; but not those that were ended.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec
import trio

from actors.errors import SupervisorError
from supervisor.fleet.errors import Elsewhere, NodeAway
from supervisor.fleet.links.peers import Peers
from supervisor.fleet.links.requests import SentRequest
from supervisor.fleet.records import Node
from supervisor.front.edge.parser import Headers
from supervisor.front.edge.request import HttpRequest
from supervisor.front.http.event_stream import cancel_when_set
from supervisor.front.http.forwarded import ForwardedRequest, RequestHead
from supervisor.front.http.heads.refusal import HttpRefusal
from supervisor.front.http.session_ids import KnownSession
from supervisor.front.http.sessions import HttpSession, SessionMemory, Sessions
from supervisor.front.mcp.messages import NULL
from supervisor.service.port import failure

UNAVAILABLE: Final = 503
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
    return HttpRefusal(error.http_status if id_ != NULL else UNAVAILABLE, failure(id_, error).body, lines)


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
