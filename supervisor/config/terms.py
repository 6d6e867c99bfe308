"""What a server is told of us. Pure."""

from __future__ import annotations

from typing import Final

from actors.protocol.agreement.client_capabilities import NOBODY, OF_CLIENTS
from actors.protocol.agreement.era import Terms
from actors.protocol.wire.jsonrpc import encode
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.roots import roots_result

CAPABILITIES: Final = {"none": NOBODY, "clients": OF_CLIENTS, "everyone": OF_CLIENTS}
"""What it may ask (MCP 2025-11-25, "Capability Negotiation"), by the setting `ask`."""


def terms_of(config: ServerConfig) -> Terms:
    """Return on which terms a conversation with a server is begun."""
    return Terms(
        capabilities=CAPABILITIES[config.ask],
        roots=encode(roots_result(config.roots)) if config.roots else b"",
        only=None if config.era == "auto" else config.era,
    )
