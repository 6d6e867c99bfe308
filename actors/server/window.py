"""How many calls may be in flight at the present incarnation of a server. Pure.

- None is sent to one that can carry nothing out any more, nor while that is in doubt: calls wait.
- A session that ended without an answer to any of its calls was begun in vain. After the second one in a row the next
  gets half as many calls until it has answered one, at least a single one: a server whose sessions end after a few
  requests, whatever it counts, so answers one after the other. (As the window of TCP does, RFC 5681.)
- After `MAX_IN_VAIN` in a row no further one begins at once: the restart policy decides, as after any failure.
"""

from __future__ import annotations

from typing import Final

from actors.protocol.failure import Failure

MAX_IN_VAIN: Final = 6


class Window:
    """The window of one server; `most` calls are in flight at the most."""

    def __init__(self, most: int) -> None:
        self._most = self._size = most
        self._closed = self._doubted = self._answered = False
        self._sent = self._in_vain = 0

    @property
    def size(self) -> int:
        """How many calls may be in flight now."""
        return 0 if self._closed or self._doubted else self._size

    def sent(self) -> None:
        """A call was sent."""
        self._sent += 1

    def answered(self) -> None:
        """A call has its answer."""
        self._answered, self._size, self._in_vain = True, self._most, 0

    def close(self) -> None:
        """Send nothing more to this incarnation."""
        self._closed = True

    def lose(self, failure: Failure) -> None:
        """A call found its session over, or nobody: send nothing in that, or before the server gives a sign of life."""
        if failure.cause == "expired":
            self.close()
        else:
            self._doubted = True

    def trust(self) -> None:
        """The server lives."""
        self._doubted = False

    def end(self, *, renewable: bool) -> bool:
        """The incarnation is over. Return whether the next one may begin at once, where only the session has ended."""
        if renewable and not self._answered:
            self._in_vain += 1
            if self._sent and self._in_vain > 1:
                self._size = max(1, min(self._size, self._sent) // 2)
        self._closed = self._doubted = self._answered = False
        self._sent = 0
        return renewable and self._in_vain < MAX_IN_VAIN
