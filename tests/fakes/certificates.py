"""A certificate for an address of this machine that nobody trusts, made when it is needed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

SINCE = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
UNTIL = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


def certificate(
    directory: Path, *, until: datetime.datetime = UNTIL, host: str = "127.0.0.1", names: Sequence[str] = ()
) -> tuple[Path, ssl.SSLContext]:
    """Return the file of a certificate that signs itself, and what a server with it listens with.

    It is for an address of this machine, and some names.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake")])
    called = [x509.IPAddress(ipaddress.ip_address(host)), *map(x509.DNSName, names)]
    address = x509.SubjectAlternativeName(called)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), SINCE, until)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = directory / "certificate.pem", directory / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)
    return pem, context
