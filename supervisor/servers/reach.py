"""How the servers of a deployment are reached, and how many of them may be begun at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.kit import Starts
from actors.transport.base import Transport
from actors.transport.stdio.containment import Containment
from actors.transport.stdio.process import ProcessTransport
from supervisor.config import Settings
from supervisor.servers.deployment import DeployedServer

if TYPE_CHECKING:  # the HTTP client is imported where there are remote servers
    from actors.transport.http.authorization import Authorizer


def starts_of(settings: Settings) -> Starts:
    return Starts(
        settings.cold_starts,
        installs=settings.max_installs,
        per_s=settings.starts_per_s,
        slot_s=settings.spawn_slot_s,
    )


def reached_of(settings: Settings) -> Starts:
    """Return how many remote servers may be connected to at once: no process starts here, so there is no rate."""
    return Starts(settings.cold_connects, per_s=1000.0, slot_s=settings.spawn_slot_s)


def transport_of(containment: Containment, authorizer: Authorizer | None, server: DeployedServer) -> Transport:
    """Return how a server is reached; `authorizer` has the tokens for it, if there can be any."""
    kind = server.config.kind
    if kind == "http" or kind == "sse":  # what that needs takes a seventh of a second; see `preload`
        from actors.transport.http.transport import HttpTransport

        return HttpTransport(server.remote, server.remote_limits, kind, authorizer)
    if kind == "websocket":
        from actors.transport.websocket.transport import WebSocketTransport

        return WebSocketTransport(server.remote, server.remote_limits)
    return ProcessTransport(server.launch, server.limits, containment=containment)
