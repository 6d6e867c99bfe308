"""Who asks."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import LATEST_LEGACY, Era

EMPTY_OBJECT = msgspec.Raw(b"{}")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: one legacy session, one modern request, or a legacy request without a session."""

    principal: Principal = LOCAL
    era: Era = "legacy"
    version: str = LATEST_LEGACY
    name: str = ""
    capabilities: msgspec.Raw = EMPTY_OBJECT
    session: str | None = None

    @property
    def program(self) -> Hashable:
        """Who it is over all its sessions and connections: its name, which it chose itself, within its principal.

        Bounds that clients share count by it (`actors.kit.fairness.quota`). It proves nothing: no right depends on it.
        """
        return self.principal, self.name
