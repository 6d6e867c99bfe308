"""Which certificates are trusted: those of the system, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name.

They are read once for all servers: that takes a tenth of a second and a megabyte.
"""

from __future__ import annotations

import os
import ssl

import httpx2
import trio

from actors.errors import SpawnFailed
from actors.kit import is_want
from actors.transport.http.client.verdict import why


class _Certificates:
    """What was read; nobody reads it while another does."""

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._trusted: ssl.SSLContext | None = None

    async def load(self) -> ssl.SSLContext:
        async with self._lock:
            if self._trusted is None:
                self._trusted = await _read()
            return self._trusted


_certificates = trio.lowlevel.RunVar[_Certificates]("trusted certificates")


async def trusted_certificates() -> ssl.SSLContext:
    """Return them. Raises `SpawnFailed`; then they are read again the next time."""
    try:
        certificates = _certificates.get()
    except LookupError:
        certificates = _Certificates()
        _certificates.set(certificates)
    return await certificates.load()


async def context_for(url: str) -> ssl.SSLContext:
    """Return what is needed to connect to an address; of one without TLS it is not used. Raises `SpawnFailed`."""
    if url[:6].lower() == "https:":
        return await trusted_certificates()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _read() -> ssl.SSLContext:
    try:
        return await trio.to_thread.run_sync(httpx2.create_ssl_context)
    except (OSError, RuntimeError) as error:
        if not (isinstance(error, OSError) or is_want(error)):  # else the system has no thread for us
            raise
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else why(error)
        text = f"the certificates to be trusted cannot be read from {_source()}: {reason}"
        raise SpawnFailed(text, scarce=is_want(error)) from error


def _source() -> str:
    """Return where the certificates are looked for, in the order of httpx2."""
    named = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "")
    return f"what {named} names in the environment" if named else "the system"
