"""Seals what lies on the disk, by AES-256-GCM (NIST SP 800-38D).

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

    def open(self, sealed: bytes, about: Sequence[str], type_: type[T]) -> T | None:
        """Return the JSON value that was sealed; None for what was sealed otherwise, or is about something else."""
        nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return msgspec.json.decode(self._cipher.decrypt(nonce, text, msgspec.json.encode(about)), type=type_)
        except (InvalidTag, ValueError):  # msgspec's errors are of the second kind
            return None
