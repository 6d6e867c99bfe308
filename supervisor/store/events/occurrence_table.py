"""What is kept of events of servers: the journal of occurrences, by topic, and how far each topic was followed.

Numbers only go up, over all topics. What is kept of a topic and how far it was followed is written together, so after
a crash it is followed on from what is there. A place that was lost is a row without an id: a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from supervisor.store.write_behind import WriteBehind

MAX_ROWS: Final = 100_000
MAX_BYTES: Final = 256 * 1024 * 1024
KEPT_S: Final = 7 * 86_400.0
"""So much is kept of all topics together, and for so long; the oldest goes first."""
TOPIC_KEPT_S: Final = 30 * 86_400.0
MAX_TOPICS: Final = 10_000
"""How far topics were followed is kept longer, as it is little."""
_INSERT: Final = "INSERT OR REPLACE INTO occurrences VALUES (?, ?, ?, ?, ?, ?)"
_FOLLOWED: Final = (
    "INSERT INTO event_topics VALUES (?, ?, ?, ?) ON CONFLICT (topic) DO UPDATE SET since = max(since, excluded.since),"
    " cursor = excluded.cursor, saved_at = excluded.saved_at"
)
_TRIM_TOPIC: Final = "DELETE FROM occurrences WHERE topic = ? AND number <= ?"
_LAST: Final = (
    "SELECT max(coalesce((SELECT max(number) FROM occurrences WHERE saved_at < ?), 0),"
    " coalesce((SELECT number FROM occurrences ORDER BY number DESC LIMIT 1 OFFSET ?), 0),"
    " coalesce((SELECT number FROM (SELECT number, sum(length(body)) OVER (ORDER BY number DESC) AS bytes"
    " FROM occurrences) WHERE bytes > ? ORDER BY number DESC LIMIT 1), 0))"
)
"""The last number that is not kept any more."""
_RAISE: Final = (
    f"WITH gone AS (SELECT topic, max(number) AS number FROM occurrences WHERE number <= ({_LAST}) GROUP BY topic)"
    " UPDATE event_topics SET since = max(since, (SELECT number FROM gone WHERE gone.topic = event_topics.topic))"
    " WHERE topic IN (SELECT topic FROM gone)"
)
_TRIM: Final = f"DELETE FROM occurrences WHERE number <= ({_LAST})"
_TRIM_TOPICS: Final = (
    "DELETE FROM event_topics WHERE saved_at < ? OR topic IN"
    " (SELECT topic FROM event_topics ORDER BY saved_at DESC LIMIT -1 OFFSET ?)"
)


class SavedOccurrence(Struct, frozen=True, array_like=True):
    """One that is kept, or a gap, which has neither id nor body. `time` is when it happened, in unix seconds."""

    number: int
    event_id: str
    time: float
    body: bytes


class SavedTopic(Struct, frozen=True, array_like=True):
    """How far a topic was followed: by the `cursor` of its source; nothing up to `since` is kept."""

    since: int
    cursor: str | None


class OccurrenceTable(WriteBehind):
    """What the store keeps of events of servers; see `Store`."""

    def append_occurrences(self, topic: str, rows: Sequence[SavedOccurrence], followed: SavedTopic) -> bool:
        """Add what happened, and say how far the topic was followed with that; False if that is lost.

        So it is where much waits for the disk: servers tell as much as they like, and nothing else is lost for that.
        """
        if self._queue.is_busy:
            return False
        now = self._clock()
        inserts = [(_INSERT, (row.number, topic, row.event_id, row.time, row.body, now)) for row in rows]
        saved = (_FOLLOWED, (topic, *astuple(followed), now))
        key = ("occurrences", str(rows[0].number)) if rows else ("followed", topic)
        return self._put(key, *inserts, saved, (_TRIM_TOPIC, (topic, followed.since)))

    def trim_occurrences(self) -> None:
        """Forget what is too old or too much."""
        now = self._clock()
        bounds = (now - KEPT_S, MAX_ROWS, MAX_BYTES)
        topics = (_TRIM_TOPICS, (now - TOPIC_KEPT_S, MAX_TOPICS))
        self._put(("occurrences trimmed",), (_RAISE, bounds), (_TRIM, bounds), topics)

    async def load_topic(self, topic: str) -> tuple[SavedTopic, list[SavedOccurrence]] | None:
        """Return how far a topic was followed, and what is kept of it, the oldest first; None if nothing is known."""
        topics = await self._load(SavedTopic, "SELECT since, cursor FROM event_topics WHERE topic = ?", (topic,))
        query = "SELECT number, event_id, time, body FROM occurrences WHERE topic = ? AND number > ? ORDER BY number"
        rows = await self._load(SavedOccurrence, query, (topic, topics[0].since)) if topics else []
        return (topics[0], rows) if topics else None

    async def load_journal(self) -> tuple[str, int]:
        """Return the name of this journal, and a number under which all are that were given so far; empty and 0 for a
        new one, or if the disk does not say."""
        query = (
            "SELECT coalesce(max(life), ''), max(coalesce(max(reserved), 0),"
            " coalesce((SELECT max(number) FROM occurrences), 0)) FROM event_journal"
        )
        found = await self._load(tuple[str, int], query)
        return found[0] if found else ("", 0)

    def save_journal(self, life: str, reserved: int) -> None:
        """Keep the name of the journal, and a number that no other one reaches."""
        others = ("DELETE FROM event_journal WHERE life <> ?", (life,))
        self._put(("event journal",), others, ("INSERT OR REPLACE INTO event_journal VALUES (?, ?)", (life, reserved)))
