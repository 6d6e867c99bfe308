"""What every sink is: it takes batches of events, and says what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from supervisor.delivery.queue import Outcome
from supervisor.events.event import DaemonEvent


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
