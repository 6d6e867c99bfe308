"""The calls of one server that wait to be sent, in the order in which they came. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from actors.server.calls.call import Call


class CallQueue:
    """`calls` are those that wait, by number, the oldest first: to be read; `size`: bytes to be written for them."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self.size = 0

    def add(self, call: Call) -> None:
        self.calls[call.number] = call
        self.size += call.size

    def add_again(self, calls: Iterable[Call]) -> None:
        """Take calls back of which nothing was done; each waits in its old place."""
        for call in calls:
            call.sent_at = call.mark = call.refused = None
            self.add(call)
        ordered = sorted(self.calls.items())
        self.calls.clear()
        self.calls.update(ordered)

    def take(self, number: int) -> Call | None:
        if (call := self.calls.pop(number, None)) is not None:
            self.size -= call.size
        return call

    def take_all(self) -> list[Call]:
        calls, self.size = list(self.calls.values()), 0
        self.calls.clear()
        return calls
