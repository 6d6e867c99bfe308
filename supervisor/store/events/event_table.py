"""The table of events that a sink of the type `store` keeps: rows are added, and removed by age and number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from supervisor.store.write_behind import WriteBehind
from supervisor.store.writes import Statement

_APPEND: Final = "INSERT OR REPLACE INTO events (id, time, type, server, payload) VALUES (?, ?, ?, ?, ?)"
_REPLACE: Final = "DELETE FROM events WHERE type = ? AND server = ?"
_EXPIRE: Final = "DELETE FROM events WHERE time < ?"
_BOUND: Final = "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?"
_LOAD: Final = (
    "SELECT number, payload FROM events WHERE number < ? AND (? = '' OR type GLOB ?) AND (? = '' OR server = ?)"
    " ORDER BY number DESC LIMIT ?"
)
_END: Final = 2**62


class SavedEvent(Struct, frozen=True, kw_only=True):
    """An event as it is kept; `only`: it takes the place of earlier ones of its type and server."""

    id: str
    time: float
    type: str
    server: str
    payload: bytes
    only: bool = False


class EventTable(WriteBehind):
    """What the store keeps of events; see `Store`."""

    def append_events(self, key: str, events: Sequence[SavedEvent], before: float, rows: int) -> bool:
        """Add events, and remove those from before a moment and those over a number; False if that is lost.

        Of what waits to be saved, the one with the same key gives way. An event that is there already stays once.
        """
        removing: tuple[Statement, ...] = ((_EXPIRE, (before,)), (_BOUND, (rows,)))
        return self._put(("events", key), *_statements_of(events), *removing)

    async def load_events(self, limit: int, before: int | None, type_: str, server: str) -> list[tuple[int, bytes]]:
        """Return so many events with their numbers, the newest first, those before a number if one is given.

        `type_` may have a `*`; it and `server` are empty for all.
        """
        values = (_END if before is None else before, type_, type_, server, server, limit)
        return await self._load(tuple[int, bytes], _LOAD, values)


def _statements_of(events: Sequence[SavedEvent]) -> Iterator[Statement]:
    for event in events:
        if event.only:
            yield _REPLACE, (event.type, event.server)
        yield _APPEND, astuple(event)[:-1]
