"""The text of a configuration file or an `envFile`: of an ordinary file, of a bounded size, without ever waiting."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path, PurePath

from actors.errors import ConfigError

MAX_FILE_BYTES = 4 * 1024 * 1024
_DIGEST_CHARS = 16

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_NOT_A_FILE = "write it to a file and name that"


Stamp = tuple[int, int, int, int] | None
"""Device, inode, time of the last change in ns, size; None: it is not there."""


def digest_of(text: str) -> str:
    """Return the beginning of the SHA-256 of the text of a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def stamp(file: Path) -> Stamp:
    """Return what tells whether a file is another one than before. Blocks."""
    try:
        status = file.stat()
    except (OSError, ValueError):  # the latter is Python's, for a path with a NUL character
        return None
    # Not the time of the content, which whoever copies a file may set: an edit with the time of the one before is one.
    return status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size


def read_text(path: PurePath) -> str:
    """Return the text of a UTF-8 file of at most 4 MiB. Never waits for a writer. Raises `ConfigError`."""
    shown = str(path)
    try:
        # Looked at before it is opened: opening a pipe waits for whoever writes into it, for ever if nobody does.
        kind = stat.S_IFMT(Path(path).stat().st_mode)
        if kind != stat.S_IFREG:
            raise ConfigError(f"this is {_KINDS.get(kind, 'something else')}, not a file", path=shown, hint=_NOT_A_FILE)
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it cannot be opened"
        raise ConfigError(f"cannot read the file: {reason}", path=shown, hint="check path and permissions") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"the file is over {MAX_FILE_BYTES} bytes", path=shown, hint="is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("the file is not UTF-8", path=shown, line=line, hint="save it as UTF-8") from None
