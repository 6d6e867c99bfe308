"""All sinks of the newest configuration, what they are sent, and who brings it to them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, Protocol

import trio
from msgspec import Struct

from actors.kit import Latest
from supervisor.config import Settings
from supervisor.config.sections import EventSink, SinkType
from supervisor.events.event import DaemonEvent, encode, timestamp

# What waits for one sink, and how long to wait before the next attempt.
#
#     emitted = sent + refused + dropped + what waits
#
# - Order is kept. What is being sent stays the same until the sink has taken or refused it, however often that is
#   tried.
# - The oldest is dropped for a new one where there is no room, but never what is being sent: it may have arrived.

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


# What every sink is: it takes batches of events, and says what became of each.


class Delivered(Struct, frozen=True):
    """What became of a batch, and why in a few words of ours: they hold nothing of an address or an answer."""

    outcome: Outcome
    why: str = ""


class EventBatch(Struct, frozen=True):
    """DaemonEvents for a sink: each with its id, and as JSON in one line. `id` is the same however often it is tried.

    `dropped`: how many were dropped for this sink since the daemon began.
    """

    id: str
    events: Sequence[DaemonEvent]
    ids: Sequence[str]
    texts: Sequence[bytes]
    dropped: int


class Sink(Protocol):
    """Where events go. One batch at a time."""

    async def deliver(self, batch: EventBatch) -> Delivered:
        """Take a batch. A checkpoint. What it raises counts as to be tried again."""

    async def close(self) -> None:
        """Let go of what is held."""


# Brings events to one sink: in batches, with pauses, again and again until it has them.
#
# Nobody waits for it: events queue, and the oldest are dropped where there is no more room.

log = logging.getLogger(__name__)

AGAIN_S: Final = 0.5
"""At the end a batch that was not taken is tried again after this time."""
OVERTIME_S: Final = 1.0
"""What a sink may take over its own deadline before it is given up."""


class SinkStatus(Struct, frozen=True, kw_only=True):
    """How a sink does: events since it was configured, and moments of its last batch and its last failure.

    `emitted` is the sum of `sent`, `refused` (which it will never take), `dropped` (for want of room) and `queued`.
    `failed` attempts were no success.
    """

    name: str
    type: SinkType
    queued: int
    emitted: int
    sent: int
    refused: int
    dropped: int
    failed: int
    pause_s: float
    last_sent_at: str | None
    last_error_at: str | None
    last_error: str


class Courier:
    """Serves one sink. `show` gives the id of an event; `clock` gives unix seconds."""

    def __init__(
        self,
        config: EventSink,
        sink: Sink,
        show: Callable[[int], str],
        clock: Callable[[], float],
        queue: EventQueue | None = None,
    ) -> None:
        """`queue` is what an earlier one has left."""
        self.config = config
        self.queue = EventQueue(config.queue_events) if queue is None else queue  # one that is empty has its counts
        self.queue.bound(config.queue_events)
        self.scope = trio.CancelScope()
        """Of `run`."""
        self._sink = sink
        self._show = show
        self._clock = clock
        self._pace = SendingPace(config.interval_s)
        self._more = trio.Event()
        self._hurry = trio.Event()
        self._empty = trio.Event()
        self._failed = 0
        self._last_sent_at: float | None = None
        self._last_error_at: float | None = None
        self._last_error = ""

    def take(self, event: DaemonEvent) -> None:
        """Queue an event, if the sink gets those of its kind."""
        if self.config.wants(event.type):
            self.queue.put(event)
            self._more.set()

    async def run(self) -> None:
        """Send until the scope is cancelled."""
        with self.scope:
            try:
                while True:
                    await self._next()
                    outcome = (await self._attempt()).outcome
                    if self._hurry.is_set() and outcome in ("throttled", "kept"):
                        await trio.sleep(AGAIN_S)
            finally:
                with trio.move_on_after(OVERTIME_S, shield=True):
                    await self._sink.close()

    def hurry(self) -> None:
        """Send without pauses from now on."""
        self._hurry.set()

    async def flush(self) -> None:
        """Hurry, and wait until all is sent. For how long is up to the caller."""
        self.hurry()
        while self.queue:
            self._empty = trio.Event()
            await self._empty.wait()

    def status(self) -> SinkStatus:
        queue = self.queue
        return SinkStatus(
            name=self.config.name,
            type=self.config.type,
            queued=len(queue),
            emitted=queue.emitted,
            sent=queue.sent,
            refused=queue.refused,
            dropped=queue.dropped,
            failed=self._failed,
            pause_s=self._pace.pause_s,
            last_sent_at=_moment(self._last_sent_at),
            last_error_at=_moment(self._last_error_at),
            last_error=self._last_error,
        )

    async def _next(self) -> None:
        """Wait until something waits, and then for the pause, in which more may come."""
        while not self.queue:
            self._empty.set()
            self._more = trio.Event()
            await self._more.wait()
        with trio.move_on_after(self._pace.pause_s):
            await self._hurry.wait()

    async def _attempt(self) -> Delivered:
        batch = self._batch(self.queue.batch(self.config.batch_events))
        delivered = Delivered("kept", f"it took longer than {self.config.timeout_s:g} s")
        with trio.move_on_after(self.config.timeout_s + OVERTIME_S):
            try:
                delivered = await self._sink.deliver(batch)
            except Exception as error:  # noqa: BLE001 - the border of all sinks: its own trouble ends none
                delivered = Delivered("kept", f"it failed ({type(error).__name__})")
        self.queue.settle(delivered.outcome)
        self._pace.note(delivered.outcome)
        self._note(delivered)
        return delivered

    def _batch(self, events: Sequence[DaemonEvent]) -> EventBatch:
        ids = [self._show(event.number) for event in events]
        texts = [encode(event, id_) for event, id_ in zip(events, ids, strict=True)]
        return EventBatch(id=f"evt_{ids[0]}", events=events, ids=ids, texts=texts, dropped=self.queue.dropped)

    def _note(self, delivered: Delivered) -> None:
        if delivered.outcome == "taken":
            self._last_sent_at = self._clock()
            if self._last_error:
                log.info("event sink %s: works again", self.config.name)
            self._last_error = ""
            return
        self._failed += 1
        self._last_error_at = self._clock()
        if delivered.why != self._last_error:
            log.warning("event sink %s: %s", self.config.name, delivered.why)
        self._last_error = delivered.why


def _moment(time: float | None) -> str | None:
    return None if time is None else timestamp(time)


FLUSH_S: Final = 5.0
"""At the end, and for a sink that is removed: what is not taken by then is lost."""


class Delivery:
    """Sends events to the sinks of the configuration. `make` makes a sink, `show` the id of an event.

    A sink whose entry is the same goes on as it was; one whose entry has changed gets what its predecessor of that name
    has left.
    """

    def __init__(
        self,
        make: Callable[[EventSink], Sink],
        show: Callable[[int], str],
        clock: Callable[[], float],
    ) -> None:
        self._make = make
        self._show = show
        self._clock = clock
        self._couriers: dict[str, Courier] = {}
        self._nursery: trio.Nursery | None = None

    def take(self, events: Iterable[DaemonEvent]) -> None:
        """Queue events for each sink that wants them."""
        if self._couriers:
            for event in events:
                for courier in self._couriers.values():
                    courier.take(event)

    def status(self) -> list[SinkStatus]:
        return [courier.status() for courier in self._couriers.values()]

    async def run(self, settings: Callable[[], Settings], changed: Latest[Any]) -> None:
        """Send for ever, to the sinks of the newest settings. It may be run again after it has crashed."""
        again = self._nursery is not None
        async with trio.open_nursery() as self._nursery:
            for name, courier in self._couriers.items():
                if again:
                    self._couriers[name] = self._begin(courier.config, courier)
                else:
                    self._nursery.start_soon(courier.run)
            while True:
                version = changed.version
                self.configure(settings())
                await changed.wait_newer(version)

    def hurry(self) -> None:
        """Send without pauses from now on: the daemon ends."""
        for courier in self._couriers.values():
            courier.hurry()

    async def flush(self, limit_s: float = FLUSH_S) -> None:
        """Send what waits, for so long at most. A checkpoint."""
        with trio.move_on_after(min(limit_s, FLUSH_S)):
            async with trio.open_nursery() as nursery:
                for courier in self._couriers.values():
                    nursery.start_soon(courier.flush)
        for courier in self._couriers.values():
            if courier.queue:
                log.warning("event sink %s: %d events are lost", courier.config.name, len(courier.queue))

    def configure(self, settings: Settings) -> None:
        """Send to the sinks of these settings from now on."""
        before, self._couriers = self._couriers, {}
        for config in settings.event_sinks:
            courier = before.pop(config.name, None)
            if courier is None or courier.config != config:
                courier = self._begin(config, courier)
            self._couriers[config.name] = courier
        for courier in before.values():
            if self._nursery is not None:
                self._nursery.start_soon(_end, courier)

    def _begin(self, config: EventSink, before: Courier | None) -> Courier:
        if before is not None:
            before.scope.cancel()
        queue = None if before is None else before.queue
        courier = Courier(config, self._make(config), self._show, self._clock, queue)
        if self._nursery is not None:
            self._nursery.start_soon(courier.run)
        return courier


async def _end(courier: Courier) -> None:
    with trio.move_on_after(FLUSH_S):
        await courier.flush()
    courier.scope.cancel()
