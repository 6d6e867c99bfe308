"""How many calls may be in flight at the present incarnation of a server. Pure.

- None is sent to one that can carry nothing out any more, nor while that is in doubt: calls wait.
- A session that ended without an answer to any of its calls was begun in vain. After the second one in a row the next
  gets half as many calls until it has answered one, at least a single one: a server whose sessions end after a few
  requests, whatever it counts, so answers one after the other. (As the window of TCP does, RFC 5681.)
- After `MAX_IN_VAIN` in a row no further one begins at once: the restart policy decides, as after any failure.
"""

from __future__ import annotations

from typing import Final

from actors.protocol.wire.failure import Failure

MAX_IN_VAIN: Final = 6


class Window:
    """The window of one server; `most` calls are in flight at the most.

    `size`: how many may be now, `sent`: how many were sent to this incarnation. `proven`: it has answered one, and
    `doubted`: it may carry nothing out; whoever hears from it tells of that what is not known yet. `estranged`: what it
    sends is no proof, but for its answer to a question that was asked since, as it may not know the session any more.
    """

    def __init__(self, most: int) -> None:
        self._most = self._open = self.size = most
        self._closed = self.doubted = self.estranged = self.proven = False
        self.sent = self._in_vain = 0

    def prove(self) -> None:
        self.proven, self._open, self._in_vain = True, self._most, 0
        self._resize()

    def close(self) -> None:
        self._closed = True
        self._resize()

    def lose(self, failure: Failure) -> None:
        """A call found its session over, or nobody: send nothing in that, or before the server gives a sign of life."""
        if failure.cause == "expired":
            self.close()
        else:
            self.estranged |= failure.stale
            self.doubt()

    def doubt(self) -> None:
        """Send nothing before the server gives a sign of life, or is found to live without one."""
        self.doubted = True
        self._resize()

    def trust(self) -> None:
        self.doubted = self.estranged = False
        self._resize()

    def end(self, *, renewable: bool) -> bool:
        """The incarnation is over. Return whether the next one may begin at once, where only the session has ended."""
        if renewable and not self.proven:
            self._in_vain += 1
            if self.sent and self._in_vain > 1:
                self._open = max(1, min(self._open, self.sent) // 2)
        self._closed = self.doubted = self.estranged = self.proven = False
        self.sent = 0
        self._resize()
        return renewable and self._in_vain < MAX_IN_VAIN

    def _resize(self) -> None:
        self.size = 0 if self._closed or self.doubted else self._open
