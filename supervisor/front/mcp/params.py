"""The parameters of the few legacy methods that belong to the transport. Pure.

What a session needs is required, what a client says about itself is not: half of the world's scripts leave it out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.errors import InvalidArguments
from actors.principal import Principal
from actors.protocol.agreement.versions import LATEST_LEGACY, LEGACY_VERSIONS
from actors.protocol.exchanges import LOG_LEVELS, LogLevel
from actors.protocol.wire import json
from supervisor.front.mcp.envelope import MAX_NAME_BYTES, Key, fit_text, log_level
from supervisor.service.client import EMPTY_OBJECT, Client

MAX_REASON_CHARS: Final = 1000
"""Of a reason for which a request is cancelled."""


class ClientInfo(msgspec.Struct, frozen=True):
    """What a client calls itself; the name is cut."""

    name: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "name", fit_text(self.name, MAX_NAME_BYTES))


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `initialize` (MCP 2025-11-25, basic/lifecycle)."""

    protocol_version: str
    capabilities: msgspec.Raw = EMPTY_OBJECT
    client_info: ClientInfo = ClientInfo()

    def client(self, principal: Principal, session: str | None = None) -> Client:
        """Return who asks. A version we do not speak is answered with our newest (2025-11-25 basic/lifecycle)."""
        return Client(
            principal=principal,
            version=self.protocol_version if self.protocol_version in LEGACY_VERSIONS else LATEST_LEGACY,
            name=self.client_info.name,
            capabilities=msgspec.Raw(bytes(self.capabilities)),
            session=session,
        )


class _Cancelled(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Key | None
    reason: msgspec.Raw = msgspec.Raw(b"")


class _SetLevel(msgspec.Struct, frozen=True):
    level: msgspec.Raw = msgspec.Raw(b"")


_initialize = msgspec.json.Decoder(Initialize)
_cancelled = msgspec.json.Decoder(_Cancelled)
_text = msgspec.json.Decoder(str)
_set_level = msgspec.json.Decoder(_SetLevel)


def read_initialize(params: msgspec.Raw) -> Initialize:
    """Return the parameters of `initialize`. Raises `InvalidArguments`."""
    try:
        return json.read(_initialize, params)
    except json.UnreadableJson:
        raise InvalidArguments('"params.protocolVersion" must be a string, "clientInfo" an object') from None


def read_cancelled(params: msgspec.Raw) -> tuple[Key | None, str]:
    """Return the id of the request that `notifications/cancelled` names, None if it names none, and the reason."""
    said = json.read_or(_cancelled, params, _Cancelled(None))
    return said.request_id, json.read_or(_text, said.reason, "")[:MAX_REASON_CHARS]


def read_level(params: msgspec.Raw) -> LogLevel:
    """Return the level that `logging/setLevel` asks for (MCP 2025-11-25, server/utilities/logging).

    Raises `InvalidArguments`.
    """
    level = log_level(json.read_or(_set_level, params, _SetLevel()).level)
    if level is None:
        raise InvalidArguments(f'"params.level" must be one of {", ".join(LOG_LEVELS)}')
    return level
