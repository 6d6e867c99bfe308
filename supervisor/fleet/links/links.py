"""All links of one node: those it has opened to ask, and those that others have opened."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import trio

from actors.kit import Reply
from supervisor.fleet.errors import NodeAway
from supervisor.fleet.links import identity
from supervisor.fleet.links.frame_stream import FrameStream
from supervisor.fleet.links.frames import HEAD_BYTES, ForLaunch
from supervisor.fleet.links.identity import FleetKeys, LinkChallenge, LinkHello, LinkProof, LinkRefused, NodeCertificate
from supervisor.fleet.links.incoming import Deliver, IncomingLink
from supervisor.fleet.links.outgoing import OutgoingLink
from supervisor.fleet.ownership import Ownership
from supervisor.fleet.records import Node, Place

log = logging.getLogger(__name__)
T = TypeVar("T")

CONNECT_S: Final = 3.0
"""For a connection and both proofs."""
MAX_GREETING_BYTES: Final = 4096
MAX_STRANGERS: Final = 64
"""Connections at a time that have not proved anything."""


class Links:
    """The links of this node. `node` says who it is now, `deliver` hands messages to launches that it owns."""

    def __init__(self, keys: FleetKeys, node: Callable[[], Node], ownership: Ownership, deliver: Deliver) -> None:
        self.certificate = NodeCertificate()
        self._keys = keys
        self._node = node
        self._ownership = ownership
        self._deliver = deliver
        self._open: dict[str, OutgoingLink] = {}
        self._opening: dict[str, trio.Event] = {}
        self._context = identity.client_context()
        self._strangers = trio.Semaphore(MAX_STRANGERS)
        self._nursery: trio.Nursery

    async def run(
        self, listeners: list[trio.SocketListener], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve other nodes, and be able to ask them, for ever; from `started` on."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.serve_listeners(self._serve, listeners, handler_nursery=self._nursery)

    # Asking -----------------------------------------------------------------------------------------------------------

    async def ask(self, place: Place, message: ForLaunch, reply: Reply[Any]) -> None:
        """Send a message to the node that has a launch. Raises `NodeAway` if it cannot be reached; then it was not."""
        (await self._link(place.node)).ask(place, message, reply)

    def find(self, node: Node) -> OutgoingLink | None:
        """Return the link to a node, if there is one now."""
        link = self._open.get(node.incarnation)
        return None if link is None or link.stream.gone else link

    async def _link(self, node: Node) -> OutgoingLink:
        while (opening := self._opening.get(node.incarnation)) is not None:
            await opening.wait()
        if (link := self.find(node)) is not None:
            return link
        self._opening[node.incarnation] = trio.Event()
        try:
            stream = await self._connect(node)
            link = self._open[node.incarnation] = OutgoingLink(FrameStream(stream), node.name)
            self._nursery.start_soon(self._keep, node, link)
            return link
        finally:
            self._opening.pop(node.incarnation).set()

    async def _keep(self, node: Node, link: OutgoingLink) -> None:
        await link.run()
        if self._open.get(node.incarnation) is link:
            del self._open[node.incarnation]

    async def _connect(self, node: Node) -> trio.abc.Stream:
        host, _, port = node.address.rpartition(":")
        stream: trio.SSLStream[trio.SocketStream] | None = None
        try:
            with trio.fail_after(CONNECT_S):
                stream = trio.SSLStream(await trio.open_tcp_stream(host.strip("[]"), int(port)), self._context)
                await stream.do_handshake()
                if identity.fingerprint_of(stream.getpeercert(binary_form=True)) != node.certificate:
                    raise LinkRefused("another program answers at its address")
                hello = identity.greet(self._keys, self._node().incarnation)
                await _say(stream, hello)
                made = await _hear(stream, LinkChallenge)
                await _say(stream, identity.respond(self._keys, hello, made, node.incarnation, node.certificate))
                return stream
        except (trio.TooSlowError, OSError, ValueError, trio.BrokenResourceError, LinkRefused) as error:
            if stream is not None:
                await trio.aclose_forcefully(stream)
            reason = str(error) or f"no answer within {CONNECT_S:g} s"
            raise NodeAway(f"the node {node.name} cannot be reached: {reason}", retry_after_s=1.0) from None

    # Being asked ------------------------------------------------------------------------------------------------------

    async def _serve(self, socket: trio.SocketStream) -> None:
        stream = trio.SSLStream(socket, self.certificate.context, server_side=True)
        try:
            async with self._strangers:
                with trio.fail_after(CONNECT_S):
                    await stream.do_handshake()
                    await self._admit(stream)
        except (trio.TooSlowError, OSError, ValueError, trio.BrokenResourceError, LinkRefused) as error:
            log.warning("a connection to the fleet's address was refused: %s", str(error) or "it was too slow")
            await trio.aclose_forcefully(stream)
            return
        await IncomingLink(FrameStream(stream), self._ownership, self._deliver).run()

    async def _admit(self, stream: trio.abc.Stream) -> None:
        hello = await _hear(stream, LinkHello)
        fingerprint = self.certificate.fingerprint
        made = identity.challenge(self._keys, hello, self._node().incarnation, fingerprint)
        await _say(stream, made)
        identity.check(self._keys, hello, made, await _hear(stream, LinkProof), fingerprint)


async def _say(stream: trio.abc.Stream, greeting: LinkHello | LinkChallenge | LinkProof) -> None:
    body = msgspec.msgpack.encode(greeting)
    await stream.send_all(len(body).to_bytes(HEAD_BYTES, "big") + body)


async def _hear(stream: trio.abc.Stream, kind: type[T]) -> T:
    """Return one greeting, and read not a byte more. Raises `ValueError` for anything else."""
    read = partial(_read_exactly, stream)
    size = int.from_bytes(await read(HEAD_BYTES), "big")
    if size > MAX_GREETING_BYTES:
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
