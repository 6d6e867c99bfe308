"""What becomes of every modern request, whatever carries it. PURE."""

from __future__ import annotations

from actors.codes import REMOVED
from actors.errors import UnknownMethod
from actors.principal import Principal
from supervisor.front.mcp.messages import ModernRequest
from supervisor.service.client import Client


def refuse_removed(request: ModernRequest) -> UnknownMethod | None:
    if request.method in REMOVED:
        return UnknownMethod(f"{request.method} does not exist in this revision")
    return None


def client_of(request: ModernRequest, principal: Principal) -> Client:
    """Return who asks: nothing is known of the client but what this request says."""
    return Client(
        principal=principal,
        era="modern",
        version=request.version,
        name=request.name,
        capabilities=request.capabilities,
    )
