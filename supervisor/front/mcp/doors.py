"""Which door a path of the front means. PURE."""

from __future__ import annotations

from typing import Final

MCP_PATH: Final = "/mcp"


def door_of(path: str, mcp_path: str = MCP_PATH) -> str | None:
    """Return the name of the door that a path means, empty for the first one; None if it is no path of MCP."""
    if path == mcp_path:
        return ""
    below = path.removeprefix(f"{mcp_path}/")
    return below if below not in ("", path) else None
