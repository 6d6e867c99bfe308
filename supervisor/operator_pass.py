"""What the commands show a daemon: the token in MCPVISOR_TOKEN, or a pass made with the key in the daemon's own files.

Whatever listens at an address says where the key is. So only the key of a daemon of this user is read, and a pass is
sent in its place, which is good at that end of a connection alone and for a minute.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from actors.errors import ConfigError
from supervisor.identity.key_file import read_key
from supervisor.identity.secrets import endpoint, sign_pass

VARIABLE: Final = "MCPVISOR_TOKEN"
KEY_FILE: Final = "page.key"
Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class NoPass(Exception):
    """The key of a daemon cannot be read; the text says why, and what to do."""


def authorization(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the header that shows the token of the environment; none where there is none."""
    token = environ.get(VARIABLE, "").strip()
    return {"authorization": f"Bearer {token}"} if token else {}


def end_of(stream: Stream) -> str:
    """Return the other `endpoint` of a connection. Raises `OSError` if it has none any more."""
    return endpoint((stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket.getpeername())


def pass_for(end: str, key_file: str) -> dict[str, str]:
    """Return the header that shows a daemon at an `endpoint` that its key can be read. Raises `NoPass`."""
    file = Path(key_file)
    if file.name != KEY_FILE:
        raise NoPass("the daemon does not say where its key is: is it one?")
    try:
        key = read_key(file)
    except ConfigError as error:
        raise NoPass(f"the key of the daemon cannot be used: {error}") from None
    except (OSError, ValueError) as error:  # the latter is Python's, for a path with a NUL character
        reason = getattr(error, "strerror", error)
        raise NoPass(
            f"the key of the daemon, {file}, cannot be read: {reason} (give the command as its user, on its machine, "
            f"or set {VARIABLE})"
        ) from None
    return {"authorization": f"Bearer {sign_pass(key, end, time.time())}"}
