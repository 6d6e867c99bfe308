"""The store on real files: what is kept, and what happens when the disk does not play along."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import trio

from actors.errors import ConfigError
from actors.kit import Conditions
from actors.principal import LOCAL
from supervisor.identity.tokens import SavedToken
from supervisor.store import ALL_UNTIL, ERA_TTL_S, Store, ToolUsage, database, open_store
from supervisor.store.database import Database, Write, damaged_copies, examine, move_aside
from supervisor.store.records import (
    PHRASES,
    VECTORS,
    SavedEra,
    SavedGrant,
    SavedPhrases,
    SavedPins,
    SavedServer,
    SavedValue,
    SwitchedOff,
)
from tests.fakes.want import no_threads

NOW = 1_000_000.0


def used(tool: str, *, calls: int = 1, failures: int = 0, total_ms: float = 10.0) -> ToolUsage:
    return ToolUsage(principal=LOCAL, server="files", tool=tool, calls=calls, failures=failures, total_ms=total_ms)


def insert(name: str, payload: bytes) -> Write:
    return Write(("server", name), (("INSERT OR REPLACE INTO servers VALUES (?, 'd', ?, 0.0)", (name, payload)),))


def servers_in(database: Database) -> dict[str, bytes]:
    return dict(database.load(tuple[str, bytes], "SELECT name, payload FROM servers"))


def corrupted(path: Path) -> None:
    path.write_bytes(b"this is not a database, it only looks like a file" * 100)


def content(path: Path) -> bytes:
    return path.read_bytes()


async def test_what_nodes_have_in_common_can_be_forgotten_and_nothing_else_is(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW) as store:
        store.tokens.put(SavedToken(digest=b"d" * 32, user="ana", role="member"))
        store.grants.put(SavedGrant(principal=LOCAL, server="files", issuer="i", resource="r", sealed=b"s"))
        store.values.put(SavedValue(tier="user", owner="ana", server="files", name="KEY", sealed=b"s"))
        store.pins.put(SavedPins("files", b"pins"))
        store.switched_off.put(SwitchedOff("files"))
        store.servers.put(SavedServer("files", "d1", b"snapshot"))
        store.usage.add([used("read")])
    async with open_store(path, clock=lambda: NOW) as store:
        store.forget_replicated()
        assert await store.secure()
        assert not await store.tokens.load()
        assert not await store.grants.load()
        assert not await store.values.load()
        assert await store.pins.load() == []
        assert not await store.switched_off.load()
        assert len(await store.usage.load()) == len(await store.servers.load_shared()) == 1


async def test_everything_saved_is_found_after_a_restart(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW) as store:
        store.servers.put(SavedServer("files", "d1", b"snapshot"))
        store.eras.put(SavedEra("d1", "modern"))
        store.sessions.end("ab12", NOW + 60)
        store.usage.add([used("read", failures=1)])
    async with open_store(path, clock=lambda: NOW) as store:
        assert await store.servers.load_shared() == {"files": SavedServer("files", "d1", b"snapshot")}
        assert await store.eras.load_all(NOW) == {"d1": "modern"}
        assert await store.sessions.load_ended() == {"ab12": NOW + 60}
        assert await store.usage.load() == [used("read", failures=1)]
        assert (store.state, store.status().lost_writes) == ("ok", 0)


async def test_usage_is_added_up_in_the_queue_and_on_disk(path: Path) -> None:
    async with open_store(path, linger_s=3600) as store:
        store.usage.add([used("read"), used("read", calls=2, failures=1), used("write")])
        assert store.status().pending_writes == 2
        assert await store.flush()
        store.usage.add([used("read", total_ms=5)])
        assert await store.usage.load() == [used("read", calls=4, failures=1, total_ms=25), used("write")]


async def test_a_legacy_verdict_expires_after_seven_days_and_a_modern_one_does_not(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW) as store:
        store.eras.put(SavedEra("old", "legacy"))
        store.eras.put(SavedEra("new", "modern"))
        assert set(await store.eras.load_all(NOW + ERA_TTL_S["legacy"] - 1)) == {"old", "new"}
        assert set(await store.eras.load_all(NOW + 7 * 86_400)) == {"new"}
        assert set(await store.eras.load_all(NOW)) == {"new"}, "what expired is removed"


async def test_a_verdict_dated_in_the_far_future_by_a_wrong_clock_expires(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW + 30 * 86_400) as store:
        store.eras.put(SavedEra("d1", "legacy"))
        assert await store.eras.load_all(NOW) == {}


async def test_expired_sessions_are_purged_when_another_ends(path: Path) -> None:
    now = NOW
    async with open_store(path, clock=lambda: now) as store:
        store.sessions.end("short", NOW + 1)
        assert await store.sessions.load_ended() == {"short": NOW + 1}
        now = NOW + 2
        store.sessions.end("long", NOW + 60)
        assert await store.sessions.load_ended() == {"long": NOW + 60}


async def test_the_file_is_private_whatever_the_umask(path: Path) -> None:
    async with open_store(path) as store:
        store.servers.put(SavedServer("files", "d1", b"x"))
        assert await store.flush()
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}


async def test_a_locked_database_loses_nothing_but_time(path: Path) -> None:
    async with open_store(path, busy_timeout_s=0.01) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.servers.put(SavedServer("files", "d1", b"one"))
            assert not await store.flush()
            assert (store.state, store.status().lost_writes) == ("degraded", 1)
            assert "locked" in store.status().last_error
            assert not await store.flush()
            assert store.status().lost_writes == 1, "a write is counted once, however often it is tried"
            other.execute("ROLLBACK")
        store.servers.put(SavedServer("mail", "d2", b"two"))
        assert await store.flush()
        assert set(await store.servers.load_shared()) == {"files", "mail"}
        assert (store.state, store.status().lost_writes) == ("ok", 1)


async def test_a_store_whose_disk_is_missing_at_start_works_once_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "later" / "store.sqlite3"
    async with open_store(path) as store:
        assert store.status().state == "degraded"
        assert await store.servers.load_shared() == {}
        store.servers.put(SavedServer("files", "d1", b"x"))
        path.parent.mkdir()
        assert set(await store.servers.load_shared()) == {"files"}
        assert store.status().state == "ok"


async def test_a_value_that_cannot_be_stored_does_not_hold_up_the_others(path: Path) -> None:
    async with open_store(path, linger_s=3600) as store:
        store.servers.put(SavedServer("half a pair \ud800", "d1", b"x"))
        store.usage.add([used("read", calls=2**70)])
        store.servers.put(SavedServer("files", "d1", b"x"))
        assert await store.flush()
        assert set(await store.servers.load_shared()) == {"files"}
        assert (store.state, store.status().lost_writes) == ("ok", 2)


async def test_a_full_queue_drops_new_keys_and_counts_them(path: Path) -> None:
    async with open_store(path, linger_s=3600, max_keys=2) as store:
        for name in ("a", "b", "c", "a"):
            store.servers.put(SavedServer(name, "d", b"x"))
        assert (store.status().pending_writes, store.status().lost_writes, store.state) == (2, 1, "degraded")
        assert set(await store.servers.load_shared()) == {"a", "b"}


async def test_a_damaged_file_is_moved_aside_and_replaced_and_that_is_told(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corrupted(path)
    told: list[tuple[str, str]] = []
    conditions = Conditions()
    async with open_store(path, conditions=conditions) as store:
        assert await store.servers.load_shared() == {}
        store.servers.put(SavedServer("files", "d1", b"x"))
        damaged = store.status().damaged
        assert await store.flush()
    aside = path.with_name(damaged)
    assert re.fullmatch(re.escape(path.name) + r"\.corrupt-\d{8}-\d{6}", damaged)
    assert aside.read_bytes().startswith(b"this is not a database")
    assert "is damaged" in caplog.text
    conditions.tell = lambda what, why: told.append((what, why))  # events begin after the store
    assert told == [("database", f"it was damaged, so it is {damaged} now, and a fresh one was made")]
    async with open_store(path) as store:
        assert set(await store.servers.load_shared()) == {"files"}
        assert store.status().damaged == ""


async def test_a_file_that_takes_too_long_to_examine_is_used_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(path) as store:
        for number in range(200):
            store.servers.put(SavedServer(f"server {number}", "d1", b"x" * 1000))
    monkeypatch.setattr(database, "_CHECK_S", -1.0)
    monkeypatch.setattr(database, "_CHECK_STEPS", 1)
    async with open_store(path) as store:
        assert len(await store.servers.load_shared()) == 200
    assert {each.name for each in path.parent.iterdir()} == {path.name}


async def test_damage_inside_a_table_is_found_at_open(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(200):
            store.servers.put(SavedServer(f"server {number}", "d1", b"x" * 1000))
    with path.open("r+b") as file:
        file.seek(4096 * 8)
        file.write(b"\xff" * 4096 * 20)
    async with open_store(path) as store:
        assert await store.servers.load_shared() == {}
        assert store.state == "ok"
    assert len(damaged_copies(path)) == 1


def test_the_logs_of_a_damaged_file_go_with_it(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).write_text(suffix)
    copy = move_aside(path, 86_400.0)  # directly: which logs SQLite leaves behind depends on the damage
    names = {each.name: each.read_text() for each in path.parent.iterdir()}
    assert names == {f"{path.name}.corrupt-19700102-000000{suffix}": suffix for suffix in ("", "-wal", "-shm")}
    assert damaged_copies(path) == [copy]


def test_damaged_copies_do_not_pile_up_and_the_newest_stay(path: Path) -> None:
    for number in (1, 2):  # as earlier versions called them
        path.with_name(f"{path.name}.corrupt-{number}").touch()
    for number in range(5):
        corrupted(path)
        path.with_name(f"{path.name}-wal").touch()
        move_aside(path, 60.0 * number)
    names = [f"{path.name}.corrupt-19700101-000{number}00" for number in (2, 3, 4)]
    assert [copy.name for copy in damaged_copies(path)] == names
    assert {each.name for each in path.parent.iterdir()} == {f"{name}{more}" for name in names for more in ("", "-wal")}


@pytest.mark.case("D12")
async def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    before = content(path)
    with pytest.raises(ConfigError, match="newer version"):
        async with open_store(path):
            pass
    assert content(path) == before


async def test_closing_waits_for_a_locked_disk_only_until_its_deadline(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        with trio.fail_after(30):
            async with open_store(path, close_s=0.05, busy_timeout_s=0.5) as store:
                other.execute("BEGIN IMMEDIATE")
                store.servers.put(SavedServer("files", "d1", b"x"))
            assert store.status().pending_writes == 1
        await store._disk.use(store._database.close)  # the abandoned thread has ended by itself
        other.execute("ROLLBACK")


async def test_a_flush_gives_up_at_its_deadline_and_the_write_goes_on(path: Path) -> None:
    async with open_store(path, busy_timeout_s=5) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.servers.put(SavedServer("files", "d1", b"x"))
            assert not await store.flush(deadline_s=0.01)
            other.execute("ROLLBACK")
        assert await store.flush()
        assert (store.state, store.status().lost_writes) == ("ok", 0)


async def test_a_system_without_threads_degrades_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_arguments: object, **_options: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    async with open_store(path) as store:
        with monkeypatch.context() as patched:
            patched.setattr(trio.to_thread, "run_sync", refuse)
            store.servers.put(SavedServer("files", "d1", b"x"))
            assert await store.servers.load_shared() == {}
            assert store.status().last_error == "can't start new thread"
        assert set(await store.servers.load_shared()) == {"files"}
        assert store.status().state == "ok"


async def test_what_could_not_be_saved_is_saved_by_itself_once_the_lock_is_gone(path: Path) -> None:
    conditions = Conditions()
    async with open_store(path, busy_timeout_s=0.01, linger_s=0.01, conditions=conditions) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.servers.put(SavedServer("files", "d1", b"old"))
            assert not await store.flush()
            assert [condition.what for condition in conditions.now()] == ["store"]
            store.servers.put(SavedServer("files", "d2", b"new"))
            other.execute("ROLLBACK")
        await saved(store)
        assert conditions.now() == []
    assert servers_in(Database(path)) == {"files": b"new"}


async def saved(store: Store) -> None:
    """Wait until nothing waits for the disk, without asking for it."""
    with trio.fail_after(20):
        while store.status().pending_writes:  # noqa: ASYNC110 - the store tells nobody
            await trio.sleep(0.01)


async def test_a_file_that_is_locked_at_the_start_holds_nobody_up_and_is_opened_later(path: Path) -> None:
    async with open_store(path) as store:
        store.servers.put(SavedServer("files", "d1", b"x"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        started = trio.current_time()
        async with open_store(path) as store:
            assert trio.current_time() - started < 2.0
            assert not store.ready.is_set()
            assert "locked" in store.status().last_error
            other.execute("ROLLBACK")
            other.close()
            with trio.fail_after(20):
                await store.ready.wait()
            assert set(await store.servers.load_shared()) == {"files"}
            assert store.state == "ok"


async def test_what_is_saved_can_be_read_while_another_process_writes(path: Path) -> None:
    async with open_store(path) as store:
        store.servers.put(SavedServer("files", "d1", b"x"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with open_store(path, close_s=0.1) as store:
            assert set(await store.servers.load_shared()) == {"files"}


async def test_a_disk_that_does_not_answer_holds_nobody_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    real = Database.open

    def hang(self: Database) -> None:
        answer.wait(20)
        real(self)

    monkeypatch.setattr(Database, "open", hang)
    async with open_store(path, open_s=0.05) as store:
        assert "did not answer" in store.status().last_error
        answer.set()
        with trio.fail_after(20):
            await store.ready.wait()


async def test_at_the_end_what_waits_is_saved_even_if_no_thread_can_be_had(path: Path) -> None:
    with ExitStack() as stack:
        async with open_store(path, linger_s=3600) as store:
            store.servers.put(SavedServer("files", "d1", b"x"))
            stack.enter_context(no_threads())
        assert store.status().pending_writes == 0
    assert set(servers_in(Database(path))) == {"files"}


async def test_damage_that_shows_while_running_is_moved_aside(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(200):
            store.servers.put(SavedServer(f"server {number}", "d1", b"x" * 1000))
        assert await store.flush()
        connection = store._database.open()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA shrink_memory")  # what SQLite remembers of the file is whole
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 4096 * 60)
        assert await store.servers.load_shared() == {}
        assert "malformed" in store.status().last_error
        store.servers.put(SavedServer("files", "d1", b"x"))
        await saved(store)
        assert set(await store.servers.load_shared()) == {"files"}
        assert store.status().last_error == ""
    assert len(damaged_copies(path)) == 1


async def test_a_file_that_vanished_is_made_anew(path: Path) -> None:
    async with open_store(path) as store:
        store.servers.put(SavedServer("files", "d1", b"x"))
        assert await store.flush()
        for file in path.parent.iterdir():
            file.unlink()
        store.servers.put(SavedServer("mail", "d2", b"y"))
        assert await store.flush()
    assert set(servers_in(Database(path))) == {"mail"}


async def test_rows_with_values_of_other_types_are_not_used(path: Path) -> None:
    async with open_store(path) as store:
        store.usage.add([used("read"), used("write")])
        store.servers.put(SavedServer("files", "d1", b"x"))
        store.eras.put(SavedEra("d1", "legacy"))
        store.sessions.end("ab12", NOW * NOW)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE tool_usage SET calls = 'many' WHERE tool = 'read'")
        other.execute("INSERT INTO servers VALUES ('number', 'd1', 5, 1.0)")
        other.execute("INSERT INTO eras VALUES ('d2', 'baroque', 1e99)")
        other.execute("INSERT INTO ended_sessions VALUES ('cd34', 'never')")
        other.execute("INSERT INTO vectors VALUES (?, 'text', 1.0)", (b"a",))
        other.commit()
    async with open_store(path) as store:
        assert await store.usage.load() == [used("write")]
        assert set(await store.servers.load_shared()) == {"files"}
        assert set(await store.eras.load_all(NOW)) <= {"d1"}
        assert set(await store.sessions.load_ended()) == {"ab12"}
        assert await store.vectors.load_vectors([b"a"]) == {}


async def test_all_sessions_up_to_a_moment_take_one_row(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW) as store:
        for number in range(10):
            store.sessions.end(f"id{number}", NOW + number)
        store.sessions.end_until(NOW + 7)
        assert await store.sessions.load_ended() == {ALL_UNTIL: NOW + 7, "id8": NOW + 8, "id9": NOW + 9}


def test_a_newer_file_is_seen_although_it_is_locked(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 99")
        newer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigError, match="schema 99"):
            examine(path)


def test_a_file_that_others_can_write_is_refused(path: Path) -> None:
    examine(path)
    Database(path).open()
    examine(path)
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="others may have written"):
        examine(path)


def test_a_file_that_others_can_read_is_made_private(path: Path) -> None:
    path.touch()
    path.chmod(0o644)
    Database(path).open()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_cancelling_the_block_still_saves_what_was_queued(path: Path) -> None:
    with trio.CancelScope() as scope:
        async with open_store(path, linger_s=3600) as store:
            store.servers.put(SavedServer("files", "d1", b"x"))
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with open_store(path) as store:
        assert set(await store.servers.load_shared()) == {"files"}


async def test_a_write_after_closing_is_counted_and_raises_nothing(path: Path) -> None:
    async with open_store(path) as store:
        pass
    store.servers.put(SavedServer("files", "d1", b"x"))
    assert store.status().lost_writes == 1


def test_a_batch_is_saved_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(path)
    database.open()
    batch = [insert(name, b"x") for name in ("a", "b")]
    failing = [*batch, insert("c", b"x" * 100_000)]
    database.open().execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        database.write(failing)
    assert servers_in(database) == {}
    database.write(batch)
    assert set(servers_in(database)) == {"a", "b"}
    database.close()


async def test_vectors_are_kept_by_digest_and_those_used_longest_ago_are_dropped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VECTORS, "most", 3)
    monkeypatch.setattr("supervisor.store.records._AT_ONCE", 2)
    now = [NOW]
    async with open_store(path, clock=lambda: now[0]) as store:
        assert await store.vectors.load_vectors([b"a"]) == {}
        store.vectors.save_vectors({b"a": b"1", b"b": b"2", b"c": b"3"})
        assert await store.vectors.load_vectors([b"a", b"x", b"c", b"b"]) == {b"a": b"1", b"b": b"2", b"c": b"3"}
        now[0] += 60
        assert await store.vectors.load_vectors([b"a", b"c"]) == {b"a": b"1", b"c": b"3"}
        now[0] += 60
        store.vectors.save_vectors({b"d": b"4"})
        assert await store.vectors.load_vectors([b"a", b"b", b"c", b"d"]) == {b"a": b"1", b"c": b"3", b"d": b"4"}
        assert await store.vectors.load_vectors([]) == {}
    async with open_store(path) as store:
        assert await store.vectors.load_vectors([b"d", b"b"]) == {b"d": b"4"}
        store.vectors.save_vectors({b"d": b"5"})
        assert await store.vectors.load_vectors([b"d"]) == {b"d": b"5"}


async def test_phrases_are_kept_by_digest_and_those_used_longest_ago_are_dropped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PHRASES, "most", 2)
    now = [NOW]
    async with open_store(path, clock=lambda: now[0]) as store:
        assert await store.phrases.read() == []
        store.phrases.put(SavedPhrases(b"a", b"1"), SavedPhrases(b"b", b"2"))
        now[0] += 60
        store.phrases.touch(b"a")
        assert await store.phrases.read() == [SavedPhrases(b"b", b"2"), SavedPhrases(b"a", b"1")]
        now[0] += 60
        store.phrases.put(SavedPhrases(b"c", b"3"))
        assert await store.phrases.read() == [SavedPhrases(b"a", b"1"), SavedPhrases(b"c", b"3")]
    async with open_store(path) as store:
        assert await store.phrases.read() == [SavedPhrases(b"a", b"1"), SavedPhrases(b"c", b"3")]


async def test_a_store_that_cannot_be_opened_has_no_vectors_and_does_not_know_which_phrases_are_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "store.sqlite3").mkdir()
    async with open_store(tmp_path / "store.sqlite3", close_s=0.01) as store:
        assert await store.vectors.load_vectors([b"a"]) == {}
        assert await store.phrases.read() is None
