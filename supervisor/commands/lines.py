"""What is typed, or piped in, while something else goes on."""

from __future__ import annotations

import sys
from typing import Any, Final

import trio

MAX_LINE_BYTES: Final = 65_536
"""Of a longer one this is all that is read."""
_CHUNK_BYTES: Final = 4096


class StdinLines:
    """The lines of stdin, as they come.

    A read cannot be taken back: its thread stays behind where nobody waits for it any more. So it is done past the
    buffer of Python, whose lock the thread would hold when the program ends, which aborts it.
    """

    def __init__(self, stdin: Any = None) -> None:
        buffer = getattr(stdin or sys.stdin, "buffer", None)
        self._raw = getattr(buffer, "raw", buffer)
        self._rest = b""

    async def next(self) -> str | None:
        """Return the next line without its end; None where there is none any more."""
        while b"\n" not in self._rest and len(self._rest) < MAX_LINE_BYTES:
            part = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            if not part:
                break
            self._rest += part
        else:
            await trio.lowlevel.checkpoint()
        if not self._rest:
            return None
        line, _, self._rest = self._rest[:MAX_LINE_BYTES].partition(b"\n")
        return line.decode(errors="replace")

    def _read(self) -> bytes | None:
        try:
            return self._raw.read(_CHUNK_BYTES) if self._raw is not None else None
        except (OSError, ValueError):  # it is closed
            return None
