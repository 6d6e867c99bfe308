"""Grants as they lie on the disk: sealed by AES-256-GCM (NIST SP 800-38D) under a key of the data directory.

Whose it is, for which server, of which issuer and for which resource is sealed with it: a row that is put in another's
place does not open.
"""

from __future__ import annotations

import secrets
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from actors.principal import Principal
from supervisor.oauth.issuers.grant import Grant
from supervisor.store import SavedGrant

_NONCE_BYTES: Final = 12


class Vault:
    """Seals and opens. `key` has 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, principal: Principal, server: str, grant: Grant) -> SavedGrant:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        about = _about(principal, server, grant.issuer.issuer, grant.resource)
        text = nonce + self._cipher.encrypt(nonce, msgspec.json.encode(grant), about)
        return SavedGrant(
            principal=principal, server=server, issuer=grant.issuer.issuer, resource=grant.resource, sealed=text
        )

    def open(self, saved: SavedGrant) -> Grant | None:
        """Return what was sealed; None for what was sealed otherwise, or for something else."""
        about = _about(saved.principal, saved.server, saved.issuer, saved.resource)
        nonce, text = saved.sealed[:_NONCE_BYTES], saved.sealed[_NONCE_BYTES:]
        try:
            return msgspec.json.decode(self._cipher.decrypt(nonce, text, about), type=Grant)
        except (InvalidTag, ValueError):  # msgspec's errors are of the second kind
            return None


def _about(principal: str, server: str, issuer: str, resource: str) -> bytes:
    return msgspec.json.encode([principal, server, issuer, resource])
