"""The events of a daemon that has no servers, and sinks that a test looks into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from actors.catalogue.offer import Offer
from actors.launch import server_of
from supervisor.config import Settings
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Delivered, EventBatch, Outcome
from supervisor.delivery.events import DaemonEvents
from supervisor.events.translation import Base


class SmallWorld:
    """Implements `EventFacts`; `offers` are by launch."""

    def __init__(self, **offers: Offer) -> None:
        self.offers = offers

    def base_of(self, launch: str) -> Base:
        slug = server_of(launch)
        return {"server_id": f"the {slug}", "server_slug": slug, "installation_id": launch, "transport": "stdio"}

    def offer_of(self, launch: str) -> Offer | None:
        return self.offers.get(launch)

    def configuration(self) -> tuple[str, int, int]:
        return "abc", 3, 1


class KeepingSink:
    """Keeps what it takes; `answers` says what becomes of the next batches, and then all are taken."""

    def __init__(self, answers: Sequence[Outcome] = ()) -> None:
        self.answers = list(answers)
        self.batches: list[EventBatch] = []
        self.taken: list[int] = []
        self.times: list[float] = []
        self.closed = False

    async def deliver(self, batch: EventBatch) -> Delivered:
        await trio.lowlevel.checkpoint()
        self.batches.append(batch)
        self.times.append(trio.current_time())
        outcome = self.answers.pop(0) if self.answers else "taken"
        if outcome == "taken":
            self.taken += [event.number for event in batch.events]
        return Delivered(outcome, "" if outcome == "taken" else f"it is {outcome}")

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True


def events_of(
    make: Callable[[EventSink], Any] = lambda config: KeepingSink(),
    clock: Callable[[], float] = lambda: 1000.0,
    **more: Any,
) -> DaemonEvents:
    """Return events without a daemon; `more` are settings."""
    return DaemonEvents(Settings(**more), SmallWorld(), make, clock)
