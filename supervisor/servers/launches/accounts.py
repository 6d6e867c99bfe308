"""Whose login a server uses. Pure."""

from __future__ import annotations

from actors.launch import server_of
from actors.principal import LOCAL, Principal
from supervisor.servers.deployment import DeployedServer

AccountName = tuple[Principal, str]
"""Whose login it is, and at which server. That may be a launch, where launches have logins of their own."""


def account_of(server: DeployedServer) -> AccountName:
    """Return which login a server uses. That of a user outlives a change of values, but for those in its address."""
    owner, moves = server.login_of, any(text.place == ("url",) for text in server.config.tiered)
    return owner, server.name if moves or owner == LOCAL else server_of(server.name)
