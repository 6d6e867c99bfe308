"""Who asks."""

from __future__ import annotations

import msgspec

from actors.principal import LOCAL, ClientKey, Principal
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
    def program(self) -> ClientKey:
        """By what shared bounds count it, over all its sessions: a name that it chose itself, which proves nothing."""
        return self.principal, self.name
