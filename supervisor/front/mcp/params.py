"""The parameters of the few legacy methods that belong to the transport. PURE.

What a session needs is required, what a client says about itself is not: half of the world's scripts leave it out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.errors import InvalidArguments
from supervisor.front.mcp.verdict import Key
from supervisor.service.port import EMPTY_OBJECT


class ClientInfo(msgspec.Struct, frozen=True):
    """What a client calls itself."""

    name: str = ""
    version: str = ""


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `initialize` (MCP 2025-11-25, basic/lifecycle)."""

    protocol_version: str
    capabilities: msgspec.Raw = EMPTY_OBJECT
    client_info: ClientInfo = ClientInfo()


class _Cancelled(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Key


_initialize = msgspec.json.Decoder(Initialize)
_cancelled = msgspec.json.Decoder(_Cancelled)
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_initialize(params: msgspec.Raw) -> Initialize:
    """Return the parameters of `initialize`. Raises `InvalidArguments`."""
    try:
        return _initialize.decode(params)
    except _BROKEN:
        raise InvalidArguments('"params.protocolVersion" must be a string, "clientInfo" an object') from None


def read_cancelled(params: msgspec.Raw) -> Key | None:
    """Return the id of the request that `notifications/cancelled` names; None if it names none."""
    try:
        return _cancelled.decode(params).request_id
    except _BROKEN:
        return None
