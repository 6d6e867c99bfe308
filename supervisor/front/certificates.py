"""The certificate by which the daemon encrypts: read at the start, and again when its files change.

A file that cannot be used later changes nothing: connections go on with what was read before, and the log says why.
"""

from __future__ import annotations

import logging
import ssl
from functools import partial
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError
from supervisor.config.file import Stamp, stamp

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
"""Whoever renews a certificate writes its files in place, on any volume: not all of these tell of a change."""


class Certificates:
    """`context` is that of connections from now on; `run` keeps it up with the files."""

    def __init__(self, certificate: str, key: str = "") -> None:
        """Read the files, which blocks. Raises `ConfigError`."""
        self._files = (Path(certificate), Path(key or certificate))
        self._stamps = self._look()
        self.context = self._read()

    async def run(self) -> None:
        while True:
            await trio.sleep(LOOK_EVERY_S)
            stamps = await trio.to_thread.run_sync(self._look)
            if stamps != self._stamps:
                self._stamps = stamps
                await self._renew()

    async def _renew(self) -> None:
        try:
            self.context = await trio.to_thread.run_sync(self._read)
            log.info("the certificate has been read again")
        except ConfigError as error:
            log.error("the certificate has changed and cannot be used: %s; the one before it stays", error.message)

    def _look(self) -> tuple[Stamp, ...]:
        return tuple(map(stamp, self._files))

    def _read(self) -> ssl.SSLContext:
        certificate, key = self._files
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Without a word for the key it would be asked for on the terminal.
            context.load_cert_chain(certificate, key, password=partial(str, ""))
        except (OSError, ValueError) as error:  # ssl.SSLError is the former
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
            hint = "give PEM files of a certificate and its key, without a password, that this user can read"
            raise ConfigError(f"the certificate cannot be used: {reason}", key="tls_certificate", hint=hint) from None
        return context
