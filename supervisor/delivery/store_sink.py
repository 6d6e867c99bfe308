"""Keeps events in the daemon's own database, for so many days and rows."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.config.sections.event_sinks import EventSink
from supervisor.delivery.sink import Delivered, EventBatch
from supervisor.events.kinds import OfServer, ToolsDiscovered
from supervisor.store import Store
from supervisor.store.records import DAY_S
from supervisor.store.tables import SavedEvent


class StoreSink:
    """Hands batches to the store. `clock` gives unix seconds."""

    def __init__(self, config: EventSink, store: Store, clock: Callable[[], float]) -> None:
        self._config = config
        self._store = store
        self._clock = clock

    async def deliver(self, batch: EventBatch) -> Delivered:
        """Save a batch. Of the lists of tools of a server only the newest is kept."""
        rows = [
            SavedEvent(
                id=id_,
                time=event.time,
                type=event.type,
                server=event.data.installation_id if isinstance(event.data, OfServer) else "",
                only=isinstance(event.data, ToolsDiscovered),
                payload=text,
            )
            for event, id_, text in zip(batch.events, batch.ids, batch.texts, strict=True)
        ]
        before = self._clock() - self._config.days * DAY_S
        saved = self._store.append_events(batch.id, rows, before, self._config.rows)
        if not saved or not await self._store.secure():
            return Delivered("kept", "the database cannot be written now; /api/status says why")
        return Delivered("taken")

    async def close(self) -> None:
        """The store is the daemon's."""
