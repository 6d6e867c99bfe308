"""What is read of the database of every earlier version: all of it, and none of it is lost on the way."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace

from actors.catalogue.lists import read_again
from actors.catalogue.marks import digest
from actors.catalogue.offer import decode_offer
from actors.principal import LOCAL
from supervisor.identity.audit import AuditQuery
from supervisor.identity.people import Given
from supervisor.oauth.accounts import Vault
from supervisor.phrases.sources import Sources
from supervisor.servers.approvals import Approvals
from supervisor.service.events.webhooks import Terms
from supervisor.store import ToolUsage, open_store
from supervisor.store.database import SCHEMA_VERSION
from supervisor.store.records import DroppedRecords, FleetRecord, SavedEra
from supervisor.store.sealing import Sealing
from supervisor.usage.history import History
from tests.supervisor.store.earlier import (
    DIGEST,
    FIRST,
    SESSIONS_END_AT,
    VERSIONS,
    WRITTEN_AT,
    make_database,
    make_directory,
    schema_of,
)

EARLIER = [version for version in VERSIONS if schema_of(version) < SCHEMA_VERSION]


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for (name,) in tables}


def user_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def test_there_is_a_directory_of_every_schema() -> None:
    assert {schema_of(version) for version in VERSIONS} == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_in_a_database_of_any_version_is_read(tmp_path: Path, version: str) -> None:
    data = tmp_path / "data"
    make_directory(data, version)
    schema = schema_of(version)
    async with open_store(data / "store.sqlite3", clock=lambda: WRITTEN_AT) as store:
        servers = await store.servers.load_shared()
        offers = {name: read_again(decode_offer(row.payload)) for name, row in servers.items()}
        assert {name: [tool.name for tool in offer.tools] for name, offer in offers.items()} == {
            "notes": ["add_note"],
            "off": ["add_note"],
        }
        assert await store.eras.load_all(WRITTEN_AT) == {row.digest: "legacy" for row in servers.values()}
        assert await store.sessions.load_ended() == {"ab" * 16: SESSIONS_END_AT}
        (usage,) = await store.usage.load()
        assert usage == ToolUsage(
            principal=LOCAL,
            server="notes",
            tool="add_note",
            calls=3,
            failures=0,
            total_ms=12.5,
            waited_ms=2.5 if schema >= 6 else 0.0,
        )
        assert [row.name for row in await store.switched_off.load()] == ([] if version == FIRST else ["off"])
        assert await store.vectors.load_vectors([DIGEST]) == ({DIGEST: b"\x01\x02\x03\x04"} if schema >= 3 else {})
        replaced = await store.definitions.load_of("notes", "add_note")
        assert [row.number for row in replaced] == ([1] if schema >= 7 else [])
        grants = await store.grants.load()
        vault = Vault((data / "oauth.key").read_bytes())
        opened = [(grant.server, vault.open(grant)) for grant in grants]
        tokens = {server: grant.tokens.access for server, grant in opened if grant and grant.tokens}
        assert tokens == ({"tickets": "an-access-token"} if schema >= 5 else {})
        own = [(token.user, token.role, token.label) for token in await store.tokens.load()]
        assert own == ([("ana", "admin", "laptop")] if schema >= 8 else [])
        sealing = Sealing((data / "values.key").read_bytes())
        values = [sealing.open(row.sealed, astuple(row)[:-1], Given) for row in await store.values.load()]
        assert values == ([Given(value="a-value", locked=True)] if schema >= 9 else [])
        audit = [(record.id, record.action, record.target) for record in await store.audit.find(AuditQuery(), 9) or ()]
        assert audit == ([(1, "token.create", "8f8dc83f6ab2")] if schema >= 9 else [])
        assert await store.dropped.load() == ([DroppedRecords("tool.call", 3)] if schema >= 9 else [])
        approvals = Approvals(store, lambda server: "strict")
        await approvals.read(["notes", "off"])
        assert approvals.pinning.is_read
        assert approvals.pinning.has("notes", "add_note", digest(offers["notes"].tools[0])) == (schema >= 9)
        consents = [(row.principal, row.server, row.tool) for row in await store.consents.load()]
        assert consents == ([("local", "notes", "add_note")] if schema >= 10 else [])
        assert await store.fleet_records.load() == (
            [FleetRecord("token/8f8dc83f6ab2", b"sealed")] if schema >= 12 else []
        )
        history = History(store.periods, store.calls, lambda: WRITTEN_AT, 10)
        await history.load()
        assert [each.calls for each in await history.periods("day", 0)] == ([3] if schema >= 10 else [])
        assert [record.client for _, record in history.calls()] == (["e2e"] * 3 if schema >= 10 else [])
        assert [number for number, _ in await store.events.find(9, None, "", "")] == ([1] if schema >= 11 else [])
        sealing = Sealing((data / "webhooks.key").read_bytes())
        terms = [sealing.open(row.sealed, (row.id,), Terms) for row in await store.webhooks.read() or ()]
        assert [each.name for each in terms if each is not None] == (["notes:added"] if schema >= 14 else [])
        sources = Sources()
        sources.recall(await store.phrases.load())
        assert [*sources.asked()] == ([1795600000.0] if schema >= 15 else [])
        assert (store.state, store.status().lost_writes) == ("ok", 0)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_database_of_any_version_is_added_to(path: Path, version: str) -> None:
    make_database(path, version)
    async with open_store(path) as store:
        (earlier,) = await store.usage.load()
        store.usage.add([replace(earlier, waited_ms=5.0)])
        store.eras.put(SavedEra("another", "modern"))
    async with open_store(path) as store:
        (added,) = await store.usage.load()
        assert (added.calls, added.total_ms, added.waited_ms) == (6, 25.0, earlier.waited_ms + 5.0)
        assert len(await store.eras.load_all(WRITTEN_AT)) == 3
    fresh = path.with_name("fresh.sqlite3")
    async with open_store(fresh):
        pass
    assert rows_of(path).keys() == rows_of(fresh).keys()


@pytest.mark.parametrize("version", EARLIER)
async def test_what_an_earlier_version_wrote_stays_beside_it_to_go_back_to(path: Path, version: str) -> None:
    make_database(path, version)
    before = rows_of(path)
    async with open_store(path):
        pass
    copy = path.with_name(f"{path.name}.schema-{schema_of(version)}")
    assert rows_of(copy) == before
    assert user_version(copy) == schema_of(version)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert user_version(path) == SCHEMA_VERSION
    assert {file.name for file in path.parent.iterdir()} == {path.name, copy.name}


def go_back(path: Path, copy: Path) -> None:
    """Put a copy in the place of the database, and use it; an older copy lies about."""
    copy.replace(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE tool_usage SET calls = 4")
        connection.commit()
    copy.write_bytes(b"an older copy")


async def test_whoever_goes_back_and_forth_has_the_newest_copy(path: Path) -> None:
    make_database(path, "5")
    async with open_store(path):
        pass
    copy = path.with_name(f"{path.name}.schema-5")
    go_back(path, copy)
    async with open_store(path) as store:
        assert [usage.calls for usage in await store.usage.load()] == [4]
    assert [row[3] for row in rows_of(copy)["tool_usage"]] == [4]


async def test_a_database_that_cannot_be_copied_is_not_changed(path: Path) -> None:
    make_database(path, "5")
    path.with_name(f"{path.name}.schema-5").mkdir()
    async with open_store(path, close_s=0.01) as store:
        assert store.state == "degraded"
    assert user_version(path) == 5


async def test_the_present_database_is_not_copied(path: Path) -> None:
    make_database(path, str(SCHEMA_VERSION))
    async with open_store(path):
        pass
    assert [file.name for file in path.parent.iterdir()] == [path.name]
