"""Whatever ends when, a client is told of each event or that something is missing: a model of all that may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from supervisor.service.events import journal as journals
from supervisor.service.events.journal import Journal
from supervisor.service.events.sources import Origin
from supervisor.service.events.topics import Topic
from supervisor.store.records import SavedJournal, SavedOccurrence, SavedTopic
from tests.fakes.event_source import occurrence

ORIGIN = Origin("desk:tick", "desk", "tick", b"{}")
STEPS = (
    *("happens", "happens", "polls", "polls_little", "disconnects", "reconnects", "forgets"),
    *("disk_writes", "disk_fails", "daemon_ends", "daemon_crashes", "clock_is_set_back"),
)


class LaggingDisk:
    """What is saved is written later, in order, or is lost; `fails`: it takes nothing."""

    def __init__(self) -> None:
        self.rows: dict[int, SavedOccurrence] = {}
        self.followed: SavedTopic | None = None
        self.journal = SavedJournal("", 0)
        self.fails = False
        self.waiting: list[Callable[[], None]] = []

    def write(self) -> None:
        for each in self.waiting:
            each()
        self.waiting.clear()

    def append(self, rows: Sequence[SavedOccurrence], followed: SavedTopic) -> bool:
        def write() -> None:
            self.rows |= {row.number: row for row in rows}
            self.followed = followed
            self.rows = {number: row for number, row in self.rows.items() if number > followed.since}

        if not self.fails:
            self.waiting.append(write)
        return not self.fails

    def trim(self) -> None: ...

    async def load_topic(self, topic: str) -> tuple[SavedTopic, list[SavedOccurrence]] | None:
        return None if self.followed is None else (self.followed, [row for _, row in sorted(self.rows.items())])

    async def load_journal(self) -> SavedJournal:
        if not self.fails:
            self.write()  # a reader finds what was saved before
        return SavedJournal(self.journal.life, max(self.journal.reserved, *self.rows, 0))

    def save_journal(self, journal: SavedJournal) -> None:
        if not self.fails:
            self.waiting.append(lambda: setattr(self, "journal", journal))


class World:
    """A server with events 1, 2, 3…, of which it can replay those over `kept_from`; and one client that polls."""

    def __init__(self, *, replays: bool) -> None:
        self.replays = replays
        self.count = self.kept_from = 0
        self.connected = False
        self.now = 1000.0
        self.disk = LaggingDisk()
        self.cursor: str | None = None
        self.known: int | None = None
        """Up to which event the client has had all; None if it was told that it may not."""

    async def start(self) -> None:
        self.now += 1
        self.journal = Journal(lambda: self.now, self.disk)
        await self.journal.begin()
        self.log = await self.journal.open(ORIGIN.id)
        self.topic = Topic(ORIGIN, self.log, self.journal)
        self.connected = False
        self.reconnects()

    def _cursor(self, place: int) -> str | None:
        return str(place) if self.replays else None

    def happens(self) -> None:
        self.count += 1
        if self.connected:
            self.topic.event(occurrence(str(self.count)), self._cursor(self.count))

    def reconnects(self) -> None:
        if self.connected:
            return
        self.connected = True
        given = self.log.cursor
        place = self.count if given is None else max(int(given), self.kept_from)
        self.topic.active(self._cursor(place), truncated=given is not None and int(given) < self.kept_from)
        for number in range(place + 1, self.count + 1):
            self.topic.event(occurrence(str(number)), self._cursor(number))

    def disconnects(self) -> None:
        self.connected = False

    def forgets(self) -> None:
        self.kept_from = self.count

    def disk_writes(self) -> None:
        self.disk.fails = False
        self.disk.write()

    def disk_fails(self) -> None:
        self.disk.fails = True

    def clock_is_set_back(self) -> None:
        self.now -= 100

    async def daemon_ends(self) -> None:
        self.disk.write()
        await self.start()

    async def daemon_crashes(self) -> None:
        self.disk.waiting.clear()
        await self.start()

    def polls(self, limit: int = 100) -> None:
        if self.cursor is None:  # it begins with what its server was followed to
            self.known = self.count if self.connected else None
        position = self.topic.position(self.cursor)
        while True:
            reading = self.topic.after(-1 if position is None else position, limit)
            if reading.truncated:
                self.known = None
            for kept in reading.events:
                number = int(kept.event_id)
                assert self.known is None or number <= self.known + 1, f"{number} after {self.known}, and nothing said"
                self.known = number if self.known is None else max(self.known, number)
            self.cursor, position = self.topic.cursor(reading.head), reading.head
            if limit == 1 or not reading.more:
                return

    def polls_little(self) -> None:
        self.polls(1)

    async def settle(self) -> None:
        """In the end the client has had everything, or was told that it has not."""
        self.reconnects()
        self.polls()
        assert self.known in (None, self.count)
        self.happens()
        self.polls()
        assert self.known == self.count


@pytest.fixture(autouse=True, scope="module")
def _small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journals, "MAX_KEPT", 4)
        yield


@given(st.booleans(), st.lists(st.sampled_from(STEPS), max_size=40))
@example(True, ["polls", "happens", "disk_writes", "happens", "polls", "daemon_crashes", "forgets", "polls"])
@example(True, ["polls", "happens", "disk_fails", "happens", "disk_writes", "happens", "daemon_ends", "polls"])
@example(False, ["polls", "happens", "disconnects", "happens", "reconnects", "happens", "polls"])
@settings(max_examples=300)
def test_a_client_has_everything_or_is_told_that_it_has_not(replays: bool, steps: list[str]) -> None:
    async def live() -> None:
        world = World(replays=replays)
        await world.start()
        world.polls()
        for step in steps:
            done = getattr(world, step)()
            if done is not None:
                await done
        await world.settle()

    trio.run(live)
