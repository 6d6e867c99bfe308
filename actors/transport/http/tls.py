"""Which certificates are trusted: those of the system, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name."""

from __future__ import annotations

import ssl

import httpx2
import trio

from actors.errors import SpawnFailed
from actors.kit import is_want
from actors.transport.http.verdict import why


async def trusted_certificates() -> ssl.SSLContext:
    """Return them, read in a thread: they are many files. Raises `SpawnFailed`."""
    try:
        return await trio.to_thread.run_sync(httpx2.create_ssl_context)
    except (OSError, RuntimeError) as error:
        if not (isinstance(error, OSError) or is_want(error)):  # else the system has no thread for us
            raise
        text = f"the certificates to be trusted cannot be read: {why(error)}"
        raise SpawnFailed(text, scarce=is_want(error)) from error
