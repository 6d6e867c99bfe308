"""`audit`: the newest records, the last one at the bottom, for people and for programs."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from supervisor.commands import audit as module
from supervisor.commands.status import list_damage, list_lost
from supervisor.host.datadir import DataDir
from tests.supervisor.commands.test_cli import ask
from tests.supervisor.commands.test_completion import offered
from tests.supervisor.test_identity_of_daemon import doorway


async def test_it_shows_who_did_what(tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    async with doorway(tmp_path, data) as at:
        token = await at.admit("ana", role="admin", team="core")
        assert (await at["ana"].ask("POST", "/api/servers/clock/sleep")).status_code == 200
        shown = (await ask(at.url, "audit")).stdout.splitlines()
        assert shown[0].split() == ["WHEN", "WHO", "FROM", "ACTION", "ENDED", "TARGET", "DETAIL"]
        day = r"\d\d-\d\d \d\d:\d\d +"
        assert re.fullmatch(day + r"daemon +- +daemon\.start +done +- +version .*sha256 \w{16}", shown[1])
        assert re.fullmatch(day + rf"operator +127\.0\.0\.1 +token\.create +done +{token} +admin ana of core", shown[2])
        assert re.fullmatch(day + r"ana \(core\) +127\.0\.0\.1 +server\.sleep +done +clock *", shown[3])
        assert len(shown) == 4
        of_ana = await ask(at.url, "audit", "--user", "ana", "--json")
        (record,) = json.loads(of_ana.stdout)["records"]
        assert (record["action"], record["door"]) == ("server.sleep", "/api/servers/clock/sleep")
        monkeypatch.setattr(module, "PAGE_RECORDS", 1)
        pages = json.loads((await ask(at.url, "audit", "--json")).stdout)["records"]
        assert [each["id"] for each in pages] == sorted(each["id"] for each in pages)
        assert len(pages) == 3
        newest = await ask(at.url, "audit", "--limit", "2")
        assert [line.split()[-3:-1] for line in newest.stdout.splitlines()][2:] == [["server.sleep", "done"]]
        assert newest.stderr == "There are more: see --limit and --since.\n"


async def test_it_shows_what_is_since_a_moment(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, {}) as at:
        tomorrow, today = datetime.now() + timedelta(days=1), datetime.now() - timedelta(hours=1)
        for since, count in ((tomorrow.isoformat(), 0), (today.date().isoformat(), 1), ("1h", 1), ("9999y", 1)):
            shown = await ask(at.url, "audit", "--since", since, "--action", "daemon")
            assert len(shown.stdout.splitlines()) == count + 1


def test_actions_are_completed() -> None:
    assert offered("audit", "--action", "tok") == ["token", "token.create", "token.revoke", "token.expire"]


def test_what_is_old_is_shown_with_its_year() -> None:
    assert module._when(0.0, 1e9) == "1970-01-01"


def test_what_is_not_there_is_said() -> None:
    told = {"days": 0, "next": None, "dropped": {"tool.call": 7, "page.ask": 2}, "lost": 3}
    assert module._remarks(told) == [
        "Nothing is recorded: the setting audit_days is 0.",
        "Removed as they were too many, the oldest first: 7 of tool.call, 2 of page.ask.",
        "3 records could not be written; mcpvisor status says what is wrong.",
    ]
    assert [line.plain for line in list_lost({"days": 90, "calls": False, "lost": 3})] == [
        "3 records of the audit could not be written; mcpvisor audit shows where they are missing"
    ]
    assert [*list_lost({"lost": 0}), *list_lost({})] == []
    assert [line.plain for line in list_damage({"damaged": "store.sqlite3.corrupt-20270101-120000"})] == [
        "the database was damaged: it is store.sqlite3.corrupt-20270101-120000 now, and a fresh one was made;"
        " see mcpvisor doctor"
    ]
    assert [*list_damage({"damaged": ""}), *list_damage({})] == []
