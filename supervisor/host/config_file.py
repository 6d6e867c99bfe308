"""Where the configuration is, if nobody says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from actors.errors import ConfigError
from actors.kit.paths import absolute, is_file

EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'


def find_config(given: Path | None, environ: Mapping[str, str], *, here: bool = True) -> Path:
    """Return the given file, or the first one that exists; in the working directory only if `here`.

    Raises `ConfigError` that names where it looked.
    """
    if given is not None:
        return given
    own = [Path(environ["HOME"]) / ".config" / "mcpvisor" / "mcp.json"] if environ.get("HOME") else []
    places = [*([Path("mcp.json"), Path(".mcp.json")] if here else []), *own]
    for place in places:
        if is_file(str(place)):
            return place
    looked = ", ".join(absolute(str(place)) for place in places) or "none, as there is no HOME"
    raise ConfigError(
        f"there is no configuration; looked for {looked}",
        hint=f"name one with --config; the file of your MCP client will do, or write {EXAMPLE} into the last of these",
    )
