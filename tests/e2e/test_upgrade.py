"""A daemon on the data directory of every earlier version, and one on that of a later version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.daemons import log_of, running, spawn, write_config
from tests.scenario.client import PATIENCE_S
from tests.supervisor.store.earlier import FIRST, SERVERS, VERSIONS, make_directory, schema_of

pytestmark = pytest.mark.e2e

READ_AGAIN = ["4"]
"""Their digests of launches have a setting in them that later ones leave out where it is not set."""


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_daemon_goes_on_with_what_an_earlier_version_left(tmp_path: Path, version: str) -> None:
    make_directory(tmp_path / "data", version)
    with running(tmp_path, SERVERS) as daemon:
        rows = await daemon.rows()
        if version not in READ_AGAIN:
            assert rows["notes"]["tools"] == 1  # before anything was started
        assert (rows["off"]["state"] == "stopped") is (version != FIRST)
        await daemon.ready()
        page = await daemon.page("/api/tools")
        calls = {row["path"]: row["calls"] for row in page["tools"]}
        assert calls["notes:add_note"] == 3
        logout = (await daemon.at("/api/servers/tickets/logout").post({})).json()
        known = (
            "logged out; its authorization server cannot revoke" if schema_of(version) >= 5 else "there was no login"
        )
        assert known in logout["message"]
        assert (await daemon.page("/api/status"))["store"]["state"] == "ok"
        again = "started another way than when they were read, so they are read again: notes"
        assert (again in daemon.log) is (version in READ_AGAIN)


def test_the_directory_of_a_later_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    make_directory(tmp_path / "data", VERSIONS[-1])
    database = tmp_path / "data" / "store.sqlite3"
    with closing(sqlite3.connect(database)) as later:
        later.execute("PRAGMA user_version = 99")
    before = database.read_bytes()
    write_config(tmp_path, SERVERS)
    with spawn(tmp_path) as process:
        assert process.wait(PATIENCE_S) == 78
    said = log_of(tmp_path).read_text()
    assert f"the database was written by a newer version (schema 99, this one knows {schema_of(VERSIONS[-1])})" in said
    assert "run the newer version, or put the copy of this one in its place" in said
    assert database.read_bytes() == before
