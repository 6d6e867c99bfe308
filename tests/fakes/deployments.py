"""Deployments made by hand, of a few entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.kit import Latest
from supervisor.config import Configuration, ServerConfig, Settings
from supervisor.servers.deployment import DeployedServer, Deployment, deploy, deploy_server

KEY = b"k" * 32


def deployment(*entries: ServerConfig, **settings: Any) -> Latest[Deployment]:
    """Return the cell of a deployment of these entries."""
    configuration = Configuration(settings=Settings(**settings), servers=entries, path=Path("mcp.json"))
    return Latest(deploy(configuration, key=KEY))


def server(name: str, **members: Any) -> DeployedServer:
    """Return what an entry of that name means."""
    return deploy_server(ServerConfig(name=name, **members), key=KEY)
