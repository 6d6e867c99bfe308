"""What waits for one sink, and how long to wait before the next attempt. Pure.

    emitted = sent + refused + dropped + what waits

- Order is kept. What is being sent stays the same until the sink has taken or refused it, however often that is tried.
- The oldest is dropped for a new one where there is no room, but never what is being sent: it may have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Literal

from supervisor.events.event import DaemonEvent

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of all that waits for one sink, about."""
MAX_BATCH_BYTES: Final = 1024 * 1024
"""Of one batch, about; an event that is larger goes alone."""
MAX_DOUBLINGS: Final = 4
Outcome = Literal["taken", "refused", "throttled", "kept"]
"""What became of a batch: taken, never to be taken, the sink wants to be asked less often, to be tried again."""


class EventQueue:
    """The events that a sink has not taken yet, at most so many."""

    def __init__(self, max_events: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._waiting: deque[DaemonEvent] = deque()
        self._sending: tuple[DaemonEvent, ...] = ()
        self._bytes = 0
        self.emitted = 0
        self.sent = 0
        self.refused = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._sending)

    def bound(self, max_events: int) -> None:
        """Hold at most so many from now on."""
        self._max_events = max_events
        self._drop()

    def put(self, event: DaemonEvent) -> None:
        self._waiting.append(event)
        self._bytes += event.size
        self.emitted += 1
        self._drop()

    def batch(self, max_events: int) -> Sequence[DaemonEvent]:
        """Return what is to be sent now: the same as before until that is settled; nothing if nothing waits."""
        size, some = 0, list(self._sending)
        while not self._sending and self._waiting and len(some) < max_events:
            size += self._waiting[0].size
            if some and size > MAX_BATCH_BYTES:
                break
            some.append(self._waiting.popleft())
        self._sending = tuple(some)
        return self._sending

    def settle(self, outcome: Outcome) -> None:
        """Count what was sent, if the sink has taken it, or will never do so."""
        if outcome in ("taken", "refused"):
            self.sent += len(self._sending) if outcome == "taken" else 0
            self.refused += len(self._sending) if outcome == "refused" else 0
            self._bytes -= sum(event.size for event in self._sending)
            self._sending = ()

    def _drop(self) -> None:
        while self._waiting and (len(self) > self._max_events or self._bytes > self._max_bytes):
            self._bytes -= self._waiting.popleft().size
            self.dropped += 1


class SendingPace:
    """The pauses between attempts: a sink that wants to be asked less often doubles them, at most 16-fold."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._doublings = 0

    @property
    def pause_s(self) -> float:
        return float(self._interval_s * 2**self._doublings)

    def note(self, outcome: Outcome) -> None:
        if outcome == "throttled":
            self._doublings = min(self._doublings + 1, MAX_DOUBLINGS)
        elif outcome != "kept":
            self._doublings = 0
