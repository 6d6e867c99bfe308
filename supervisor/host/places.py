"""Where the directories of this user's daemons are, and where the configuration is, if nobody says so. Blocks.

A daemon notes its directory in the state directory of its user, as long as it runs. So nobody has to believe what
listens at an address when it says where a key is. Imported by a bridge: it needs nothing else of a daemon.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from actors.errors import ConfigError
from actors.kit.paths import absolute, is_file
from supervisor.host.files import make_private, write_atomically

_NAME: Final = "mcpvisor"
NOTES: Final = "places"
"""The directory of notes in the default directory: a file for each other one."""
VARIABLE: Final = "MCPVISOR_DATA_DIR"
"""Names the directory of a daemon to the commands, or several as `PATH` does, in place of all others."""
_MAX_NOTES: Final = 64
_MAX_NOTE_BYTES: Final = 4096


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/mcpvisor`, or `~/.local/state/mcpvisor`.

    A relative `XDG_STATE_HOME` is ignored, as the specification asks. Raises `ConfigError` without a usable `HOME`.
    """
    state_home = Path(environ.get("XDG_STATE_HOME", ""))
    if state_home.is_absolute():
        return state_home / _NAME
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute():
        raise ConfigError(
            "there is no place for the daemon's data: neither XDG_STATE_HOME nor HOME is an absolute path",
            hint="set one of them, or name a data directory in the configuration",
        )
    return home / ".local" / "state" / _NAME


@contextmanager
def noted(root: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Note for the block that a daemon has its data in `root`. What cannot be noted is not: nothing depends on it but
    that commands find the key by themselves. Directories that were made for the note go with it.
    """
    note: Path | None = None
    made: list[Path] = []
    with suppress(OSError, ConfigError, ValueError):
        default = default_data_dir(environ)
        if root != default:
            notes = default / NOTES
            made = make_private(notes)
            for old in sorted(notes.iterdir(), key=_age)[_MAX_NOTES:]:  # of daemons that were killed
                old.unlink()
            note = notes / hashlib.sha256(str(root).encode(errors="surrogateescape")).hexdigest()[:32]
            write_atomically(note, str(root).encode(errors="surrogateescape"))
    try:
        yield
    finally:
        if note is not None:
            with suppress(OSError):
                note.unlink()
        with suppress(OSError):  # what others use by now is not empty
            for each in reversed(made):
                each.rmdir()


def known_data_dirs(environ: Mapping[str, str]) -> list[Path]:
    """Return where daemons of this user have their data: what the environment names, or else the default directory and
    those that are noted, the newest first.
    """
    named = [Path(each) for each in environ.get(VARIABLE, "").split(os.pathsep) if Path(each).is_absolute()]
    if named:
        return named
    try:
        default = default_data_dir(environ)
    except ConfigError:
        return []
    places = [default]
    with suppress(OSError):
        notes = sorted((default / NOTES).iterdir(), key=_age)
        for note in notes[:_MAX_NOTES]:
            with suppress(OSError):
                place = Path(_read(note).decode(errors="surrogateescape"))
                places += [place] if place.is_absolute() else []
    return places


def _read(note: Path) -> bytes:
    """Return what is noted; nothing for what no daemon of this user has written, and would not end, as a pipe."""
    fd = os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(fd)
        own = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
        return os.read(fd, _MAX_NOTE_BYTES) if own else b""
    finally:
        os.close(fd)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # its daemon has ended meanwhile
        return 0.0


_EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'


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
        hint=f"name one with --config; the file of your MCP client will do, or write {_EXAMPLE} into the last of these",
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
