"""What is kept of events: what a reader gets of it, over gaps, bounds, crashes and other lives of the daemon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.fleet.peers import DaemonLife, HeldElsewhere
from supervisor.service.events import journal as journals
from supervisor.service.events.journal import Journal, Kept, TopicLog
from supervisor.service.events.limits import MAX_KEPT, MAX_KEPT_BYTES, MAX_READ_BYTES
from supervisor.store import open_store, tables
from supervisor.store.records import SavedJournal, SavedOccurrence, SavedTopic, SwitchedOff

STEPS = st.lists(st.sampled_from(["event", "event", "event", "gap"]), max_size=30)


def kept(number: int, time: float = 0.0, size: int = 2) -> Kept:
    return Kept(number, f"evt_{number}", time, b"x" * size)


def log_of(steps: list[str]) -> TopicLog:
    log = TopicLog()
    for number, step in enumerate(steps, 1):
        if step == "event":
            log.add(kept(number))
        else:
            log.mark_gap(number)
    return log


def read_all(log: TopicLog, number: int, limit: int) -> list[int | str]:
    """What a reader is told that begins behind a number: the numbers of events, and where something is missing."""
    told: list[int | str] = []
    for _ in range(200):
        reading = log.after(number, limit)
        told += ["truncated"] if reading.truncated else []
        told += [each.number for each in reading.events]
        assert len(reading.events) <= limit
        number = reading.head
        if not reading.more:
            return told
    raise AssertionError("a reader comes to no end")


@given(STEPS, st.integers(0, 31), st.integers(1, 5))
def test_a_reader_gets_each_event_once_and_is_told_once_of_what_is_missing_between_two(
    steps: list[str], begin: int, limit: int
) -> None:
    expected: list[int | str] = []
    for number, step in enumerate(steps, 1):
        if number <= begin:
            continue
        if step == "event":
            expected.append(number)
        elif expected[-1:] != ["truncated"]:
            expected.append("truncated")
    assert read_all(log_of(steps), begin, limit) == expected


def test_who_comes_from_before_all_that_is_kept_is_told_so() -> None:
    log = log_of(["event"] * (MAX_KEPT + 5))
    assert log.since == 5
    first = log.after(0, 3)
    assert ([each.number for each in first.events], first.truncated, first.more) == ([6, 7, 8], True, True)
    assert not log.after(5, 3).truncated
    assert not log.knows("evt_5")
    assert log.knows("evt_6")


def test_a_reader_that_is_before_all_others_is_not_sent_back() -> None:
    reading = log_of(["event"] * 3).after(7, 5)
    assert (list(reading.events), reading.truncated, reading.head, reading.more) == ([], False, 7, False)


def test_what_is_kept_of_a_topic_has_a_bound_in_bytes_and_the_newest_always_stays() -> None:
    log = TopicLog()
    for number in range(1, 20):
        log.add(kept(number, size=MAX_KEPT_BYTES // 4))
    assert read_all(log, log.since, 100) == [16, 17, 18, 19]
    log.add(kept(20, size=MAX_KEPT_BYTES + 1))
    assert read_all(log, log.since, 100) == [20]


def test_what_is_read_at_a_time_has_a_bound_in_bytes_and_one_of_any_size_is() -> None:
    log = TopicLog()
    for number, size in enumerate([MAX_READ_BYTES // 2, MAX_READ_BYTES // 2, 1, MAX_READ_BYTES + 1, 1], 1):
        log.add(kept(number, size=size))
    first = log.after(0, 100)
    assert ([each.number for each in first.events], first.head, first.more) == ([1, 2], 2, True)
    assert [each.number for each in log.after(3, 100).events] == [4]
    assert read_all(log, 0, 100) == [1, 2, 3, 4, 5]


class Disk:
    """Keeps what reaches it."""

    def __init__(self) -> None:
        self.rows: dict[int, SavedOccurrence] = {}
        self.topics: dict[str, SavedTopic] = {}
        self.journal = SavedJournal("", 0)

    def append(self, rows: Sequence[SavedOccurrence], followed: SavedTopic) -> bool:
        self.rows |= {row.number: row for row in rows}
        self.topics[followed.topic] = followed
        return True

    def trim(self) -> None: ...

    async def load_topic(self, topic: str) -> tuple[SavedTopic, list[SavedOccurrence]] | None:
        rows = [row for _, row in sorted(self.rows.items()) if row.topic == topic]
        return (self.topics[topic], rows) if topic in self.topics else None

    async def load_journal(self) -> SavedJournal:
        return self.journal

    def save_journal(self, journal: SavedJournal) -> None:
        self.journal = journal


async def begun(disk: Disk, now: float = 1000.0) -> Journal:
    journal = Journal(lambda: now, disk)
    await journal.begin()
    return journal


def add(journal: Journal, log: TopicLog, name: str, cursor: str | None = "c") -> None:
    journal.add(log, name, 0.0, b"{}", cursor)


async def test_what_was_kept_is_there_in_the_next_life_and_new_numbers_are_behind_all_old_ones() -> None:
    disk = Disk()
    first = await begun(disk)
    log = await first.open("t")
    first.mark_gap(log, "0")
    add(first, log, "a", "1")
    add(first, log, "b", "2")
    second = await begun(disk, now=0.0)  # the clock was set back
    again = await second.open("t")
    assert (second.life, again.cursor, again.head, again.knows("b")) == (first.life, "2", log.head, True)
    add(second, again, "b", "2")  # its source tells it once more
    add(second, again, "c", "3")
    assert [each.event_id for each in again.after(log.head - 2, 10).events] == ["a", "b", "c"]
    assert again.head > log.head + journals.RESERVED / 2


async def test_a_cursor_of_another_node_that_is_there_is_for_that_one() -> None:
    others = {b"other"}
    mine, other, gone = (
        Journal(lambda: 0.0, None, DaemonLife(life, others.__contains__)) for life in (b"mine", b"other", b"gone")
    )
    alone = Journal(lambda: 0.0)
    for journal in (mine, other, gone, alone):
        cursor = journal.cursor("t", 7)
        assert (journal.position("t", cursor), journal.position("u", cursor)) == (7, None)
        assert mine.position("t", cursor) == (7 if journal is mine else None)
        alone.check_here(cursor)
        if journal is other:
            with pytest.raises(HeldElsewhere) as elsewhere:
                mine.check_here(cursor)
            assert elsewhere.value.life == b"other".hex()
        else:
            mine.check_here(cursor)
    for odd in ("", "...", "a.b.c.not hex", "x" * 10_000):
        mine.check_here(odd)


async def test_a_cursor_too_long_to_be_kept_is_none() -> None:
    journal = await begun(Disk())
    log = await journal.open("t")
    journal.note_cursor(log, "x" * 100_000)
    assert log.cursor is None


async def test_memory_has_a_bound_over_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MAX_ALL_BYTES", 400)
    journal = await begun(Disk())
    large, small = await journal.open("large"), await journal.open("small")
    for number in range(400):
        journal.add(large, str(number), 0.0, b"x" * 10, "c")
        if not number % 20:
            journal.add(small, str(number), 0.0, b"y", "c")
    assert large.bytes <= 400 + 10 * journals.SUMMED_EVERY
    assert len(small.after(-1, 1000).events) == 20


async def test_logs_that_nobody_follows_give_way_and_come_back_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MAX_LOGS", 2)
    journal = await begun(Disk())
    followed, idle = await journal.open("followed"), await journal.open("idle")
    followed.followed = True
    add(journal, idle, "a")
    for number in range(5):
        await journal.open(str(number))
    assert await journal.open("followed") is followed
    again = await journal.open("idle")
    assert again is not idle
    assert again.knows("a")


async def test_servers_that_tell_much_cost_nothing_else_its_place_on_the_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite3", linger_s=3600.0, max_keys=80) as store:
        rows = [(SavedOccurrence(number, "t", "a", 0.0, b"{}"),) for number in range(1, 100)]
        taken = [store.occurrences.append(row, SavedTopic("t", 0, None)) for row in rows]
        assert taken == [True] * 10 + [False] * 89
        store.switched_off.put(SwitchedOff("s"))
        assert await store.flush()
        assert (await store.switched_off.load(), store.status().lost_writes) == ([SwitchedOff("s")], 0)
        assert store.occurrences.append(rows[-1], SavedTopic("t", 0, None))
        large = SavedOccurrence(200, "t", "b", 0.0, bytes(20 * 1024 * 1024))
        assert [store.occurrences.append((large,), SavedTopic("t", 0, None)) for _ in range(2)] == [True, False]


async def test_the_store_knows_a_number_that_no_other_one_reaches(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite3", clock=lambda: 0.0) as store:
        assert await store.occurrences.load_journal() == SavedJournal("", 0)
        store.occurrences.append((SavedOccurrence(9, "t", "a", 0.0, b"{}"),), SavedTopic("t", 0, None))
        assert await store.occurrences.load_journal() == SavedJournal("", 9)
        store.occurrences.save_journal(SavedJournal("life", 7))
        assert await store.occurrences.load_journal() == SavedJournal("life", 9)
        store.occurrences.save_journal(SavedJournal("other", 70))
        assert await store.occurrences.load_journal() == SavedJournal("other", 70)


async def test_the_store_keeps_it_within_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_OCCURRENCES", 3)
    now = 1000.0
    async with open_store(tmp_path / "store.sqlite3", clock=lambda: now) as store:
        journal = Journal(lambda: now, store.occurrences)
        await journal.begin()
        log, quiet = await journal.open("t"), await journal.open("q")
        add(journal, quiet, "quiet", "7")
        for number in range(5):
            add(journal, log, str(number), str(number))
        store.occurrences.trim()
        again = Journal(lambda: now, store.occurrences)
        await again.begin()
        assert again.life == journal.life
        read = await again.open("t")
        assert [each.event_id for each in read.after(read.since, 10).events] == ["2", "3", "4"]
        assert (read.cursor, read.since) == ("4", log.head - 3)
        assert read.after(log.head - 4, 10).truncated
        before = await again.open("q")
        assert (before.cursor, before.since, before.after(before.since, 9).events) == ("7", quiet.head, [])
        monkeypatch.setattr(tables, "MAX_OCCURRENCE_BYTES", 3)
        store.occurrences.trim()
        last = await Journal(lambda: now, store.occurrences).open("t")
        assert [each.event_id for each in last.after(last.since, 10).events] == ["4"]
        now += tables.OCCURRENCE_KEPT_S + 1
        store.occurrences.trim()
        none = await Journal(lambda: now, store.occurrences).open("t")
        assert (none.after(none.since, 10).events, none.cursor, none.since) == ([], "4", log.head)
