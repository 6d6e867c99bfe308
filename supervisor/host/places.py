"""Where the directories of this user's daemons are, for programs that speak with one and need the key in it. Blocks.

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
from supervisor.host.files import make_private, write_atomically

NAME: Final = "mcpvisor"
NOTES: Final = "places"
"""The directory of notes in the default directory: a file for each other one."""
VARIABLE: Final = "MCPVISOR_DATA_DIR"
"""Names the directory of a daemon to the commands, or several as `PATH` does, in place of all others."""
MAX_NOTES: Final = 64
MAX_NOTE_BYTES: Final = 4096


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/mcpvisor`, or `~/.local/state/mcpvisor`.

    A relative `XDG_STATE_HOME` is ignored, as the specification asks. Raises `ConfigError` without a usable `HOME`.
    """
    state_home = Path(environ.get("XDG_STATE_HOME", ""))
    if state_home.is_absolute():
        return state_home / NAME
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute():
        raise ConfigError(
            "there is no place for the daemon's data: neither XDG_STATE_HOME nor HOME is an absolute path",
            hint="set one of them, or name a data directory in the configuration",
        )
    return home / ".local" / "state" / NAME


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
            for old in sorted(notes.iterdir(), key=_age)[MAX_NOTES:]:  # of daemons that were killed
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
        for note in notes[:MAX_NOTES]:
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
        return os.read(fd, MAX_NOTE_BYTES) if own else b""
    finally:
        os.close(fd)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # its daemon has ended meanwhile
        return 0.0
