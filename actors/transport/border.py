"""The border where what a remote server sends is read.

Whatever it sends, reading it ends in a reason for people: of a request, of a stream, of the connection; never in an
error that leaves an actor. What can be foreseen is checked where it is read. What was not foreseen is a defect of this
program all the same: it is logged, by its kind and place alone, since its words may hold anything.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Final

from actors.kit.want import first_of

log = logging.getLogger(__name__)

MAX_KINDS: Final = 32
"""So many different errors are logged for one server, each one once."""


class Border:
    """The border of one remote server, for all its connections. `server` is what the log calls it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._logged: set[str] = set()

    def unforeseen(self, error: BaseException) -> str:
        """Take an error of reading that nobody foresaw; return the reason to give."""
        error = first_of(error)
        kind = f"{type(error).__name__} at {_place(error)}"
        if kind not in self._logged and len(self._logged) < MAX_KINDS:
            self._logged.add(kind)
            log.warning("what %s sends cannot be read, which is a defect of ours: %s", self._server, kind)
        return f"what it sends cannot be read ({type(error).__name__})"


def _place(error: BaseException) -> str:
    """Return where an error was raised: the file and line, and the ways that led there, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)) or "nowhere"
