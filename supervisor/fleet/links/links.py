"""All links of one node: those it has opened to ask, and those that others have opened."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import trio

from actors.kit import Reply
from supervisor.fleet.errors import Elsewhere, NodeAway
from supervisor.fleet.links import identity
from supervisor.fleet.links.frames import HEAD_BYTES, ForLaunch, FrameStream
from supervisor.fleet.links.identity import FleetKeys, LinkChallenge, LinkHello, LinkProof, LinkRefused, NodeCertificate
from supervisor.fleet.links.incoming import AnswerRequest, Deliver, IncomingLink
from supervisor.fleet.links.outgoing import OutgoingLink
from supervisor.fleet.links.requests import DistantRequest, SentRequest
from supervisor.fleet.links.watches import Watchers
from supervisor.fleet.ownership import Ownership
from supervisor.fleet.records import Node, Place

log = logging.getLogger(__name__)
T = TypeVar("T")

_CONNECT_S: Final = 3.0
"""For a connection and both proofs."""
_MAX_GREETING_BYTES: Final = 4096
_MAX_STRANGERS: Final = 64
"""Connections at a time that have not proved anything; more are closed at once."""
_QUIET_S: Final = 30.0
_FAILURES: Final = (trio.TooSlowError, OSError, ValueError, trio.BrokenResourceError, LinkRefused)
"""How a connection does not come about."""


class _Opening(msgspec.Struct, eq=False):
    """An attempt to open a link; why it failed, if it did."""

    done: trio.Event
    failure: str = ""


class Links:
    """The links of this node. `deliver` hands messages to launches that it owns, `watchers` hear of their resources."""

    def __init__(self, keys: FleetKeys, ownership: Ownership, deliver: Deliver, watchers: Watchers) -> None:
        self.certificate = NodeCertificate()
        self._keys = keys
        self._ownership = ownership
        self._deliver = deliver
        self.answer: AnswerRequest = _refuse
        """Answers requests of clients of other nodes."""
        self._watchers = watchers
        self._open: dict[str, OutgoingLink] = {}
        self._incoming: set[IncomingLink] = set()
        self._accepting = trio.CancelScope()
        self._accepted = 0
        self._accepted_gone = trio.Event()
        self._opening: dict[str, _Opening] = {}
        self._context = identity.client_context()
        self._strangers = trio.Semaphore(_MAX_STRANGERS)
        self._quiet_until = 0.0
        self._nursery: trio.Nursery

    async def run(
        self, listeners: list[trio.SocketListener], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve other nodes, and be able to ask them, for ever; from `started` on."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            with self._accepting:
                await trio.serve_listeners(self._serve, listeners, handler_nursery=self._nursery)
            await trio.sleep_forever()

    # Asking -----------------------------------------------------------------------------------------------------------

    async def ask(self, place: Place, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message to the node that has a launch.

        Raises `NodeAway` if that cannot be reached, and `Elsewhere` if it ends: then nothing was sent.
        """
        link = await self._link(place.node)
        if link.closing:
            raise Elsewhere(None)
        link.ask(place, message, reply)

    def move(self, launch: str) -> None:
        """A launch is here no longer: other nodes whose clients are subscribed to it hear of that."""
        for link in self._incoming:
            link.watches.move(launch)

    async def request(self, node: Node, head: bytes, body: bytes) -> SentRequest:
        """Have a request of a client answered by another node. Raises as `ask` does, and `CallTooLarge`."""
        link = await self._link(node)
        if link.closing:
            raise Elsewhere(None)
        return link.request(head, body)

    async def close(self) -> None:
        """Have all others ask this node no more, and return when they have their answers and have hung up."""
        self._accepting.cancel()  # who connects from now on has sent nothing
        for link in self._incoming:
            link.close()
        while self._accepted:
            self._accepted_gone = trio.Event()
            await self._accepted_gone.wait()

    def find(self, node: Node) -> OutgoingLink | None:
        """Return the link to a node, if there is one now."""
        link = self._open.get(node.incarnation)
        return None if link is None or link.stream.gone else link

    async def _link(self, node: Node) -> OutgoingLink:
        """Return the link to a node, opened if need be. All who wait for one attempt have its outcome."""
        if (link := self.find(node)) is not None:
            return link
        opening = self._opening.get(node.incarnation)
        if opening is None:
            opening = self._opening[node.incarnation] = _Opening(trio.Event())
            self._nursery.start_soon(self._open_link, node, opening)
        await opening.done.wait()
        if (link := self.find(node)) is None:
            raise NodeAway(opening.failure or f"the node {node.name} hung up", retry_after_s=1.0)
        return link

    async def _open_link(self, node: Node, opening: _Opening) -> None:
        try:
            link = OutgoingLink(FrameStream(await self._connect(node)), node.name, self._watchers)
            self._open[node.incarnation] = link
            self._nursery.start_soon(self._keep, node, link)
        except NodeAway as error:
            opening.failure = error.message
        finally:
            del self._opening[node.incarnation]
            opening.done.set()

    async def _keep(self, node: Node, link: OutgoingLink) -> None:
        await link.run()
        if self._open.get(node.incarnation) is link:
            del self._open[node.incarnation]

    async def _connect(self, node: Node) -> trio.abc.Stream:
        host, _, port = node.address.rpartition(":")
        stream: trio.SSLStream[trio.SocketStream] | None = None
        connected = False
        try:
            with trio.fail_after(_CONNECT_S):
                stream = trio.SSLStream(await trio.open_tcp_stream(host.strip("[]"), int(port)), self._context)
                await stream.do_handshake()
                if identity.fingerprint_of(stream.getpeercert(binary_form=True)) != node.certificate:
                    raise LinkRefused("another program answers at its address")
                hello = identity.greet(self._keys, self._ownership.membership.node.incarnation)
                await _say(stream, hello)
                made = await _hear(stream, LinkChallenge)
                await _say(stream, identity.respond(self._keys, hello, made, node.incarnation, node.certificate))
                connected = True
                return stream
        except _FAILURES as error:
            log.debug(
                "the node %s at %s: %s", node.name, node.address, str(error) or f"nothing within {_CONNECT_S:g} s"
            )
            why = f": {error}" if isinstance(error, LinkRefused) else ""
            raise NodeAway(f"the node {node.name} cannot be reached{why}", retry_after_s=1.0) from None
        finally:
            if stream is not None and not connected:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(stream)

    # Being asked ------------------------------------------------------------------------------------------------------

    async def _serve(self, socket: trio.SocketStream) -> None:
        self._accepted += 1
        try:
            await self._greet_and_serve(socket)
        finally:
            self._accepted -= 1
            if not self._accepted:
                self._accepted_gone.set()

    async def _greet_and_serve(self, socket: trio.SocketStream) -> None:
        stream = trio.SSLStream(socket, self.certificate.context, server_side=True)
        try:
            self._strangers.acquire_nowait()
        except trio.WouldBlock:
            await trio.aclose_forcefully(stream)
            return
        try:
            with trio.fail_after(_CONNECT_S):
                await stream.do_handshake()
                await self._admit(stream)
        except _FAILURES as error:
            self._tell_refused(str(error) or "it was too slow")
            await trio.aclose_forcefully(stream)
            return
        finally:
            self._strangers.release()
        link = IncomingLink(
            FrameStream(stream), self._ownership, self._deliver, self._answer, self._nursery, self._watchers
        )
        self._incoming.add(link)
        if self._accepting.cancel_called:
            link.close()
        try:
            await link.run()
        finally:
            self._incoming.discard(link)

    def _tell_refused(self, why: str) -> None:
        """Log that somebody was refused, now and then: whoever reaches the address could fill the log with it."""
        if trio.current_time() >= self._quiet_until:
            self._quiet_until = trio.current_time() + _QUIET_S
            log.warning("a connection to the fleet's address was refused: %s", why)

    async def _answer(self, request: DistantRequest) -> None:
        await self.answer(request)  # which may come later than links

    async def _admit(self, stream: trio.abc.Stream) -> None:
        hello = await _hear(stream, LinkHello)
        fingerprint = self.certificate.fingerprint
        made = identity.challenge(self._keys, hello, self._ownership.membership.node.incarnation, fingerprint)
        await _say(stream, made)
        identity.check(self._keys, hello, made, await _hear(stream, LinkProof), fingerprint)


async def _refuse(request: DistantRequest) -> None:
    await trio.lowlevel.checkpoint()
    request.refuse(NodeAway("the node answers no requests yet", retry_after_s=1.0))


async def _say(stream: trio.abc.Stream, greeting: LinkHello | LinkChallenge | LinkProof) -> None:
    body = msgspec.msgpack.encode(greeting)
    await stream.send_all(len(body).to_bytes(HEAD_BYTES, "big") + body)


async def _hear(stream: trio.abc.Stream, kind: type[T]) -> T:
    """Return one greeting, and read not a byte more. Raises `ValueError` for anything else."""
    read = partial(_read_exactly, stream)
    size = int.from_bytes(await read(HEAD_BYTES), "big")
    if size > _MAX_GREETING_BYTES:
        raise ValueError("it does not speak as a node does")
    try:
        return msgspec.msgpack.decode(await read(size), type=kind)
    except msgspec.MsgspecError:
        raise ValueError("it does not speak as a node does") from None


async def _read_exactly(stream: trio.abc.Stream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = bytes(await stream.receive_some(size - len(data)))
        if not more:
            raise ValueError("it hung up")
        data += more
    return data
