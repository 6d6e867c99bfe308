"""Deployments of a few entries: made by hand, or of what a file would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from actors.kit import Latest
from supervisor.config import Configuration, ServerConfig, Settings, parse
from supervisor.identity.people import GivenValues
from supervisor.servers.deployment import DeployedServer, Deployment, deploy, deploy_server

KEY = b"k" * 32


def deployment(*entries: ServerConfig, **settings: Any) -> Latest[Deployment]:
    """Return the cell of a deployment of these entries."""
    configuration = Configuration(settings=Settings(**settings), servers=entries, path=Path("mcp.json"))
    return Latest(deploy(configuration, key=KEY))


def read(servers: dict[str, Any], given: GivenValues | None = None, **settings: Any) -> Deployment:
    """Return the deployment of a file; `given` are values that people gave elsewhere."""
    text = json.dumps({"mcpServers": servers, "supervisor": settings})
    return deploy(parse(text, Path("/etc/mcp.json"), {}), key=KEY, given=given or GivenValues())


def server(name: str, **members: Any) -> DeployedServer:
    """Return what an entry of that name means."""
    return deploy_server(ServerConfig(name=name, **members), key=KEY)
