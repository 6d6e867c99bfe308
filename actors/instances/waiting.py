"""The calls of a launch that wait until one of its instances is free or up, the oldest first. Bounded. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from actors.kit import Reply
from actors.messages import CallServer, Result

PATIENCE_S = 2.0
"""For so long a call waits for an instance that is free while another one is up and busy: then it goes to that."""


class WaitingCall(msgspec.Struct, eq=False):
    """A call that no instance has. `deadline` and `since` are moments of the trio clock.

    `refused_by` are the runs of the instances that gave it back.
    """

    message: CallServer
    reply: Reply[Result]
    since: float
    deadline: float
    refused_by: tuple[str, ...] = ()


class WaitingCalls:
    """At most `max_calls`, and `max_bytes` of their arguments."""

    def __init__(self, max_calls: int, max_bytes: int) -> None:
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._calls: deque[WaitingCall] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def has_room(self, call: WaitingCall) -> bool:
        return len(self._calls) < self._max_calls and self._bytes + _size(call) <= self._max_bytes

    def add(self, call: WaitingCall) -> None:
        self._calls.append(call)
        self._bytes += _size(call)

    def oldest(self) -> WaitingCall | None:
        """Return the oldest; those that nobody waits for any more are forgotten."""
        while self._calls and self._calls[0].reply.settled:
            self.take()
        return self._calls[0] if self._calls else None

    def take(self) -> WaitingCall:
        call = self._calls.popleft()
        self._bytes -= _size(call)
        return call

    def take_late(self, now: float) -> list[WaitingCall]:
        """Take those whose deadline has passed."""
        late = [call for call in self._calls if call.deadline <= now]
        if late:
            left = [call for call in self._calls if call.deadline > now]
            self._calls, self._bytes = deque(left), sum(map(_size, left))
        return late

    def take_all(self) -> Iterator[WaitingCall]:
        while self._calls:
            yield self.take()

    def is_patience_over(self, now: float) -> bool:
        """Say whether the oldest has waited for long enough."""
        return bool(self._calls) and self._calls[0].since + PATIENCE_S <= now

    def next_moment(self, *, busy: bool) -> float | None:
        """Return when something is to be done of them: a deadline, or the end of patience where some are `busy`."""
        moments = [call.deadline for call in self._calls]
        if busy and self._calls:
            moments.append(self._calls[0].since + PATIENCE_S)
        return min(moments, default=None)


def _size(call: WaitingCall) -> int:
    return len(call.message.members) + len(call.message.meta) + len(call.message.retry)
