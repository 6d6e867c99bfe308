"""Which door a path of the front means, and where the door of a server is. PURE."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

MCP_PATH: Final = "/mcp"


def door_of(path: str, mcp_path: str = MCP_PATH) -> str | None:
    """Return the name of the door that a path means, empty for the first one; None if it is no path of MCP."""
    if path == mcp_path:
        return ""
    below = path.removeprefix(f"{mcp_path}/")
    return below if below not in ("", path) else None


def path_of(server: str) -> str:
    return f"{MCP_PATH}/servers/{quote(server, safe='')}"
