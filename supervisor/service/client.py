"""Who asks."""

from __future__ import annotations

import msgspec

from actors.principal import LOCAL, Principal
from actors.protocol.versions import LATEST_LEGACY, Era

EMPTY_OBJECT = msgspec.Raw(b"{}")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: one legacy session, one modern request, or a legacy request without a session."""

    principal: Principal = LOCAL
    era: Era = "legacy"
    version: str = LATEST_LEGACY
    name: str = ""
    capabilities: msgspec.Raw = EMPTY_OBJECT
    session: str | None = None
