"""The calls of one server that wait to be sent, in the order in which they came. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.server.call import Call


class CallQueue:
    """`size`: bytes to be written for all of them."""

    def __init__(self) -> None:
        self._calls: dict[int, Call] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calls(self) -> Mapping[int, Call]:
        """Those that wait, by number, the oldest first."""
        return self._calls

    def add(self, call: Call) -> None:
        """Add the newest one."""
        self._calls[call.number] = call
        self.size += call.size

    def add_again(self, calls: Iterable[Call]) -> None:
        """Take calls back of which nothing was done; each waits in its old place."""
        for call in calls:
            call.sent_at = call.mark = call.refused = None
            self.add(call)
        self._calls = dict(sorted(self._calls.items()))

    def take(self, number: int) -> Call | None:
        """Take one out; None if it does not wait."""
        if (call := self._calls.pop(number, None)) is not None:
            self.size -= call.size
        return call

    def take_all(self) -> list[Call]:
        """Take all out."""
        calls, self._calls, self.size = list(self._calls.values()), {}, 0
        return calls
