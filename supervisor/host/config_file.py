"""Where the configuration is, if nobody says so."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from actors.errors import ConfigError
from actors.kit.paths import absolute, is_file

EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'


def find_config(given: Path | None, environ: Mapping[str, str], *, here: bool = True) -> Path:
    """Return the given file, or the first one that exists; in the working directory only if `here`.

    A file there that only leads a client to the daemon is none. Raises `ConfigError` that names where it looked.
    """
    if given is not None:
        return given
    own = [Path(environ["HOME"]) / ".config" / "mcpvisor" / "mcp.json"] if environ.get("HOME") else []
    places = [*([Path("mcp.json"), Path(".mcp.json")] if here else []), *own]
    for place in places:
        if is_file(str(place)) and (place in own or not _leads_here_only(place)):
            return place
    looked = ", ".join(absolute(str(place)) for place in places) or "none, as there is no HOME"
    raise ConfigError(
        f"there is no configuration; looked for {looked}",
        hint=f"name one with --config; the file of your MCP client will do, or write {EXAMPLE} into the last of these",
    )


def _leads_here_only(file: Path) -> bool:
    """Say whether all servers of a file are the daemon itself, as `mcpvisor connect --project` writes it for a client.

    A file that cannot be read is one that somebody meant: what is wrong with it is said later.
    """
    # Imported here, as they bring all that reads a configuration: commands that only ask a daemon start sooner.
    from supervisor.config.entry_reader import faults_of_itself
    from supervisor.config.file import read_text
    from supervisor.config.jsonc import read_document
    from supervisor.config.keys import translate_entry
    from supervisor.config.settings import Settings

    servers: list[object] = []
    has_section = False
    with suppress(ConfigError):
        match read_document(read_text(file), str(file)).value:
            case dict(top) if "supervisor" not in top:
                sections = [each for key in ("mcpServers", "servers") if isinstance(each := top.get(key), dict)]
                servers = [entry for each in sections for entry in each.values()]
                has_section = bool(sections)
    keys = ("command", "args", "env", "url")
    entries = [translate_entry(entry, keys)[0] for entry in servers if isinstance(entry, dict)]
    if not servers:  # a client's file that all servers were moved out of
        return has_section and file.name == ".mcp.json"
    with suppress(AttributeError, TypeError):  # values of other types: it is not as we write it
        return len(entries) == len(servers) and all(
            any(faults_of_itself(entry, Settings().listen)) for entry in entries
        )
    return False
