"""Which doors there are, and where: the first one at `/mcp`, the others below it."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from actors.errors import UnknownDoor
from supervisor.metatools.texts import clean
from supervisor.service.doors.everything import Everything
from supervisor.service.doors.one_server import OneServer
from supervisor.service.gateway import Gateway
from supervisor.service.port import Door

MCP_PATH: Final = "/mcp"
ALL: Final = "all"
SERVERS: Final = "servers/"
MAX_SERVERS_NAMED: Final = 20
MAX_NAME_SHOWN: Final = 64


class DoorTable:
    """Implements `supervisor.service.port.Doors`: the meta-tools, everything, and each server by name or key."""

    def __init__(self, gateway: Gateway, version: str) -> None:
        self._parts = gateway.parts
        everything = Everything(gateway.parts, version, gateway.introduction.servers)
        self._ours = {"": Door("", gateway), ALL: Door(ALL, everything)}
        self._servers: dict[str, Door] = {}

    def find(self, name: str) -> Door:
        if name.startswith(SERVERS):
            return self._of_server(name.removeprefix(SERVERS))
        if name in self._ours:
            return self._ours[name]
        raise UnknownDoor(
            f"there is no MCP server at this address: {clean(name[:MAX_NAME_SHOWN])!r}; there are /mcp, /mcp/all, and "
            "/mcp/servers/NAME for each server"
        )

    def _of_server(self, called: str) -> Door:
        names = self._parts.deployment.value.names
        server = names.literal(called)
        if server is None:
            known = sorted(names.servers)
            told = ", ".join(known[:MAX_SERVERS_NAMED]) + (", ..." if len(known) > MAX_SERVERS_NAMED else "")
            raise UnknownDoor(
                f"no server {clean(called[:MAX_NAME_SHOWN])!r} is configured; there are: {told or 'none'}; "
                "/api/status says how they do",
                details={"servers": known[:MAX_SERVERS_NAMED]},
            )
        door = self._servers.get(server)
        if door is None:
            door = self._servers[server] = Door(f"{SERVERS}{server}", OneServer(server, self._parts))
        return door


def door_of(path: str) -> str | None:
    """Return the name of the door that a path means, empty for the first one; None if it is no path of MCP."""
    if path == MCP_PATH:
        return ""
    below = path.removeprefix(f"{MCP_PATH}/")
    return below if below not in ("", path) else None


def path_of(server: str) -> str:
    return f"{MCP_PATH}/{SERVERS}{quote(server, safe='')}"
