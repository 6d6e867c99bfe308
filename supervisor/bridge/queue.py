"""What a client has said and no daemon has got: in its order, within bounds, each request with a deadline. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from actors.errors import SupervisorError
from actors.protocol.wire import jsonrpc
from supervisor.front.messages import Key, Request

WAIT_S: Final = 30.0
"""For a request until there is a daemon: official clients give up after 60 s."""
MAX_WAITING: Final = 256
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024


class QueuedLine(msgspec.Struct, eq=False):
    """A line for the daemon and the requests in it by key, as JSON texts: one, none, or those of an array.

    `request` is what may be sent again; `repeated`: it was.
    """

    line: bytes
    ids: dict[Key, bytes]
    request: Request | None = None
    repeated: bool = False
    deadline: float = 0.0

    def failures(self, error: SupervisorError) -> list[bytes]:
        """Return the answers that all its requests failed: to an array in an array."""
        answers = [failure(id_, error) for id_ in self.ids.values()]
        return [b"[" + b",".join(answers) + b"]"] if len(answers) > 1 else answers


def failure(id_: bytes, error: SupervisorError) -> bytes:
    return jsonrpc.failure(id_, error.code, error.message, error.data())


class Queue:
    """Lines on their way to a daemon."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._entries: deque[QueuedLine] = deque()
        self._size = 0

    @property
    def is_full(self) -> bool:
        return len(self._entries) >= MAX_WAITING or self._size >= MAX_WAITING_BYTES

    @property
    def deadline(self) -> float | None:
        """When the first of its requests has waited long enough; None if there are none."""
        return min((entry.deadline for entry in self._entries if entry.ids), default=None)

    def put(self, entry: QueuedLine, now: float) -> None:
        self._keep(entry, now)
        self._entries.append(entry)

    def put_back(self, entry: QueuedLine, now: float) -> None:
        """Put what has been sent in vain before everything else."""
        entry.repeated = True
        self._keep(entry, now)
        self._entries.appendleft(entry)

    def _keep(self, entry: QueuedLine, now: float) -> None:
        entry.deadline = now + self._wait_s
        self._size += len(entry.line)

    def take(self) -> QueuedLine | None:
        """Take the next line; None if there is none."""
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self._size -= len(entry.line)
        return entry

    def withdraw(self, key: Key) -> bool:
        """Take the request with this id out, if it is here by itself."""
        entry = next((each for each in self._entries if each.ids.keys() == {key}), None)
        if entry is None:
            return False
        self._entries.remove(entry)
        self._size -= len(entry.line)
        return True

    def take_requests(self, by: float) -> list[QueuedLine]:
        """Take out all requests whose deadline is not after `by`."""
        late = [entry for entry in self._entries if entry.ids and entry.deadline <= by]
        for entry in late:
            self._entries.remove(entry)
            self._size -= len(entry.line)
        return late
