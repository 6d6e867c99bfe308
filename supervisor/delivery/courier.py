"""Brings events to one sink: in batches, with pauses, again and again until it has them.

Nobody waits for it: events queue, and the oldest are dropped where there is no more room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import trio
from msgspec import Struct

from supervisor.config.sections.event_sinks import EventSink, SinkType
from supervisor.delivery.queue import EventQueue, SendingPace
from supervisor.delivery.sink import Delivered, EventBatch, Sink
from supervisor.events.event import DaemonEvent, encode, timestamp

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
