"""Grants as they lie on the disk: sealed under a key of the data directory.

Whose it is, for which server, of which issuer and for which resource is sealed with it: a row that is put in another's
place does not open.
"""

from __future__ import annotations

import msgspec

from actors.principal import Principal
from supervisor.oauth.issuers.grant import Grant
from supervisor.store import SavedGrant
from supervisor.store.sealing import Sealing


class Vault:
    """Seals and opens. `key` has 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._sealing = Sealing(key)

    def seal(self, principal: Principal, server: str, grant: Grant) -> SavedGrant:
        about = (principal, server, grant.issuer.issuer, grant.resource)
        text = self._sealing.seal(msgspec.json.encode(grant), about)
        return SavedGrant(
            principal=principal, server=server, issuer=grant.issuer.issuer, resource=grant.resource, sealed=text
        )

    def open(self, saved: SavedGrant) -> Grant | None:
        """Return what was sealed; None for what was sealed otherwise, or for something else."""
        return self._sealing.open(saved.sealed, (saved.principal, saved.server, saved.issuer, saved.resource), Grant)
