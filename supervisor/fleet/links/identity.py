"""How two nodes know one another: a certificate of each node's own, and a key that all of a fleet have.

Each node makes a certificate when it starts, and says its fingerprint in the engine. Whoever connects takes that one
and no other, so nobody needs an authority. Then both prove that they have a key of the fleet, by HMAC-SHA-256 (RFC
2104) over what each has chosen, the fingerprint, and their incarnations: neither proof is one of the other side, of
another connection, or of another node.

A fleet has several keys while they are changed. The first one is used; those after it are accepted.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NONCE_BYTES: Final = 32
_CENTURY: Final = timedelta(days=36_500)
"""A certificate lasts as long as its process: nobody looks at the dates."""
_LABEL: Final = b"mcpvisor fleet link 1"


class LinkHello(msgspec.Struct, frozen=True):
    """What whoever connects says first; `keys` are the names of the keys that it has."""

    incarnation: str
    nonce: bytes
    keys: list[str]


class LinkChallenge(msgspec.Struct, frozen=True):
    """The answer: which key, and the proof that the node has it."""

    incarnation: str
    nonce: bytes
    key: str
    proof: bytes


class LinkProof(msgspec.Struct, frozen=True):
    """The proof of whoever connects."""

    proof: bytes


class LinkRefused(Exception):
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
        """Return the name of a key that both sides have. Raises `LinkRefused`."""
        for name in self._keys:
            if name in names:
                return name
        raise LinkRefused("the other node has another key of the fleet")

    def prove(self, name: str, side: bytes, hello: LinkHello, challenge: tuple[str, bytes], fingerprint: str) -> bytes:
        """Return the proof of one side (`client`, `server`) that it has a key."""
        said = (_LABEL, side, hello.incarnation, hello.nonce, *challenge, fingerprint)
        return hmac.digest(self._keys[name], msgspec.msgpack.encode(said), hashlib.sha256)


def greet(keys: FleetKeys, incarnation: str) -> LinkHello:
    return LinkHello(incarnation, secrets.token_bytes(_NONCE_BYTES), keys.names)


def challenge(keys: FleetKeys, hello: LinkHello, incarnation: str, fingerprint: str) -> LinkChallenge:
    """Return the answer of the node that is connected to. Raises `LinkRefused`."""
    name, nonce = keys.choose(hello.keys), secrets.token_bytes(_NONCE_BYTES)
    proof = keys.prove(name, b"server", hello, (incarnation, nonce), fingerprint)
    return LinkChallenge(incarnation, nonce, name, proof)


def respond(keys: FleetKeys, hello: LinkHello, made: LinkChallenge, incarnation: str, fingerprint: str) -> LinkProof:
    """Check who was connected to, which should be that incarnation, and return our proof. Raises `LinkRefused`."""
    if made.incarnation != incarnation:
        raise LinkRefused("the node was started again")
    if made.key not in keys.names:
        raise LinkRefused("the other node has another key of the fleet")
    said = made.incarnation, made.nonce
    if not hmac.compare_digest(keys.prove(made.key, b"server", hello, said, fingerprint), made.proof):
        raise LinkRefused("the other node does not have the key of the fleet")
    return LinkProof(keys.prove(made.key, b"client", hello, said, fingerprint))


def check(keys: FleetKeys, hello: LinkHello, made: LinkChallenge, response: LinkProof, fingerprint: str) -> None:
    """Check who has connected. Raises `LinkRefused`."""
    proof = keys.prove(made.key, b"client", hello, (made.incarnation, made.nonce), fingerprint)
    if not hmac.compare_digest(proof, response.proof):
        raise LinkRefused("whoever connected does not have the key of the fleet")


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


def client_context() -> ssl.SSLContext:
    """Return how nodes connect: what the certificate is worth says its fingerprint alone; see `fingerprint_of`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def fingerprint_of(certificate: bytes | None) -> str:
    return hashlib.sha256(certificate or b"").hexdigest()
