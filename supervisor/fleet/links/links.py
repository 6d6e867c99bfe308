"""All links of one node: those it has opened to ask, and those that others have opened; and how two nodes know one
another: by a certificate of each node's own, and a key that all of a fleet have.

Each node makes a certificate when it starts, and says its fingerprint in the engine. Whoever connects takes that one
and no other, so nobody needs an authority. Then both prove that they have a key of the fleet, by HMAC-SHA-256 (RFC
2104) over what each has chosen, the fingerprint, and their incarnations: neither proof is one of the other side, of
another connection, or of another node.

A fleet has several keys while they are changed. The first one is used; those after it are accepted.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from actors.kit import Reply
from supervisor.fleet.engine import Elsewhere, Node, NodeAway, Place
from supervisor.fleet.links.frames import HEAD_BYTES, ForLaunch, FrameStream
from supervisor.fleet.links.link import AnswerRequest, Deliver, IncomingLink, OutgoingLink, Watchers
from supervisor.fleet.links.requests import DistantRequest, SentRequest
from supervisor.fleet.membership import Ownership

_NONCE_BYTES: Final = 32
_CENTURY: Final = timedelta(days=36_500)
"""A certificate lasts as long as its process: nobody looks at the dates."""
_LABEL: Final = b"mcpvisor fleet link 1"


class _Hello(msgspec.Struct, frozen=True):
    """What whoever connects says first; `keys` are the names of the keys that it has."""

    incarnation: str
    nonce: bytes
    keys: list[str]


class _Challenge(msgspec.Struct, frozen=True):
    """The answer: which key, and the proof that the node has it."""

    incarnation: str
    nonce: bytes
    key: str
    proof: bytes


class _Proof(msgspec.Struct, frozen=True):
    """The proof of whoever connects."""

    proof: bytes


class _Refused(Exception):
    """The other side is not who it should be, or does not have the key of the fleet."""


class FleetKeys:
    """The keys of a fleet, the newest first; each has 32 bytes at least."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) < _NONCE_BYTES for key in keys):
            raise ValueError(f"a fleet needs a key, and each has at least {_NONCE_BYTES} bytes")
        self._keys = {hashlib.sha256(_LABEL + key).hexdigest()[:16]: key for key in keys}

    @property
    def all(self) -> list[bytes]:
        """Return them, the newest first."""
        return [*self._keys.values()]

    @property
    def names(self) -> list[str]:
        return [*self._keys]

    def choose(self, names: Sequence[str]) -> str:
        """Return the name of a key that both sides have. Raises `_Refused`."""
        for name in self._keys:
            if name in names:
                return name
        raise _Refused("the other node has another key of the fleet")

    def prove(self, name: str, side: bytes, hello: _Hello, challenge: tuple[str, bytes], fingerprint: str) -> bytes:
        """Return the proof of one side (`client`, `server`) that it has a key."""
        said = (_LABEL, side, hello.incarnation, hello.nonce, *challenge, fingerprint)
        return hmac.digest(self._keys[name], msgspec.msgpack.encode(said), hashlib.sha256)


def _greet(keys: FleetKeys, incarnation: str) -> _Hello:
    return _Hello(incarnation, secrets.token_bytes(_NONCE_BYTES), keys.names)


def _challenge(keys: FleetKeys, hello: _Hello, incarnation: str, fingerprint: str) -> _Challenge:
    """Return the answer of the node that is connected to. Raises `_Refused`."""
    name, nonce = keys.choose(hello.keys), secrets.token_bytes(_NONCE_BYTES)
    proof = keys.prove(name, b"server", hello, (incarnation, nonce), fingerprint)
    return _Challenge(incarnation, nonce, name, proof)


def _respond(keys: FleetKeys, hello: _Hello, made: _Challenge, incarnation: str, fingerprint: str) -> _Proof:
    """Check who was connected to, which should be that incarnation, and return our proof. Raises `_Refused`."""
    if made.incarnation != incarnation:
        raise _Refused("the node was started again")
    if made.key not in keys.names:
        raise _Refused("the other node has another key of the fleet")
    said = made.incarnation, made.nonce
    if not hmac.compare_digest(keys.prove(made.key, b"server", hello, said, fingerprint), made.proof):
        raise _Refused("the other node does not have the key of the fleet")
    return _Proof(keys.prove(made.key, b"client", hello, said, fingerprint))


def _check(keys: FleetKeys, hello: _Hello, made: _Challenge, response: _Proof, fingerprint: str) -> None:
    """Check who has connected. Raises `_Refused`."""
    proof = keys.prove(made.key, b"client", hello, (made.incarnation, made.nonce), fingerprint)
    if not hmac.compare_digest(proof, response.proof):
        raise _Refused("whoever connected does not have the key of the fleet")


class NodeCertificate:
    """The certificate of this node, made now. `fingerprint` is the SHA-256 of it, in hex."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mcpvisor node")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + _CENTURY)
            .sign(key, hashes.SHA256())
        )
        self.fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
        form, encoding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
        secret = key.private_bytes(encoding, form, serialization.NoEncryption())
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        with tempfile.TemporaryDirectory() as directory:  # ssl reads keys from files only
            file = Path(directory) / "node.pem"
            file.touch(0o600)
            file.write_bytes(secret + certificate.public_bytes(encoding))
            self.context.load_cert_chain(file)


def _client_context() -> ssl.SSLContext:
    """Return how nodes connect: what the certificate is worth says its fingerprint alone; see `_fingerprint_of`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _fingerprint_of(certificate: bytes | None) -> str:
    return hashlib.sha256(certificate or b"").hexdigest()


# The links ------------------------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)
T = TypeVar("T")

_CONNECT_S: Final = 3.0
"""For a connection and both proofs."""
_MAX_GREETING_BYTES: Final = 4096
_MAX_STRANGERS: Final = 64
"""Connections at a time that have not proved anything; more are closed at once."""
_QUIET_S: Final = 30.0
_FAILURES: Final = (trio.TooSlowError, OSError, ValueError, trio.BrokenResourceError, _Refused)
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
        self._context = _client_context()
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
                if _fingerprint_of(stream.getpeercert(binary_form=True)) != node.certificate:
                    raise _Refused("another program answers at its address")
                hello = _greet(self._keys, self._ownership.membership.node.incarnation)
                await _say(stream, hello)
                made = await _hear(stream, _Challenge)
                await _say(stream, _respond(self._keys, hello, made, node.incarnation, node.certificate))
                connected = True
                return stream
        except _FAILURES as error:
            log.debug(
                "the node %s at %s: %s", node.name, node.address, str(error) or f"nothing within {_CONNECT_S:g} s"
            )
            why = f": {error}" if isinstance(error, _Refused) else ""
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
        hello = await _hear(stream, _Hello)
        fingerprint = self.certificate.fingerprint
        made = _challenge(self._keys, hello, self._ownership.membership.node.incarnation, fingerprint)
        await _say(stream, made)
        _check(self._keys, hello, made, await _hear(stream, _Proof), fingerprint)


async def _refuse(request: DistantRequest) -> None:
    await trio.lowlevel.checkpoint()
    request.refuse(NodeAway("the node answers no requests yet", retry_after_s=1.0))


async def _say(stream: trio.abc.Stream, greeting: _Hello | _Challenge | _Proof) -> None:
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
