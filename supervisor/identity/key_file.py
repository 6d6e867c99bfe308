"""Reads the file of a key: what it reads is trusted, so it must be one that nobody else may write or read. Blocks.

It stands alone for the sake of a bridge, which needs nothing else of the daemon's directory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from actors.errors import ConfigError

KEY_BYTES: Final = 32
KEY_FILE: Final = "page.key"
"""Whoever can read this one in a data directory is the operator of the daemon there."""


def read_key(path: Path) -> bytes:
    """Return the key in a file. Raises `OSError`, and `ConfigError` for what is no key of this user alone."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(fd)
        private = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        content = os.read(fd, KEY_BYTES + 1) if private else b""
    finally:
        os.close(fd)
    if private and len(content) == KEY_BYTES:
        return content
    fault = f"the key does not have {KEY_BYTES} bytes"
    if not private:
        fault = "the key may be known to others: the file must belong to this user, with mode 0600"
    raise ConfigError(
        fault, path=str(path), hint="delete it and a new one is made; what the old one sealed is then void"
    )
