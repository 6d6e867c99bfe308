"""Seals what lies on the disk, or in the engine of a fleet, by AES-256-GCM (NIST SP 800-38D).

What a text is about is sealed with it: one that is put in another's place does not open.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

T = TypeVar("T")

_NONCE_BYTES: Final = 12


class Sealing:
    """Seals and opens. `key` has 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, text: bytes, about: Sequence[str]) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text, msgspec.json.encode(about))

    def read(self, sealed: bytes, about: Sequence[str]) -> bytes | None:
        """Return the text that was sealed; None for what was sealed otherwise, or is about something else."""
        nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, text, msgspec.json.encode(about))
        except (InvalidTag, ValueError):
            return None

    def open(self, sealed: bytes, about: Sequence[str], type_: type[T]) -> T | None:
        """Return the JSON value that was sealed, as `read` does; None for one of another type, too."""
        text = self.read(sealed, about)
        try:
            return None if text is None else msgspec.json.decode(text, type=type_)
        except ValueError:  # also msgspec's errors
            return None
