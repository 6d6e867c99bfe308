"""Servers added, changed and removed at a whole daemon over memory transports: in its file, and in what runs."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import DataDir
from supervisor.host.files import BACKUP_SUFFIX, read_if_there
from supervisor.host.files import replace_text as replace_in_file
from supervisor.servers.reloading import reload
from supervisor.servers.reloading.port import Reloaded
from supervisor.servers.reloading.reload import Reload
from tests.scenario.daemon import World, world

FILE = """\
{
  // ours
  "mcpServers": {
    "good": {"command": "x"}, // stays
    "github-john-abc123": {"command": "x"},
    "typo": {"comand": "x"}
  },
  "supervisor": {"drain_s": 0.2, "reload_on_change": false, "starts_per_s": 1000}
}
"""
ENTRY = {"command": "y"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(FILE)
    return path


def write(path: Path, text: str) -> None:
    path.write_text(text)


def text_of(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


STARTED = {"good", "github", "typo"}


def daemon(file: Path, data: DataDir) -> AbstractAsyncContextManager[World]:
    """Run a daemon with this file."""
    return world(file.parent, data, None, file=file.name)


async def test_a_server_is_added_changed_and_removed_in_the_file_and_in_what_runs(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        assert await api.add("new", {"command": "y", "args": ["-v"]}) == "1 server added (new)"
        added = FILE.replace(
            '"typo": {"comand": "x"}\n',
            '"typo": {"comand": "x"},\n    "new": {\n      "command": "y",\n      "args": ["-v"]\n    }\n',
        )
        assert text_of(file) == added
        assert text_of(backup_of(file)) == FILE
        assert {*await api.rows()} == STARTED | {"new"}
        await api.ready()
        assert (await api.row("new"))["tools"] == 2
        assert await api.change("new", {"args": None, "idle_timeout_s": 60}) == "1 server replaced (new)"
        assert '"new": {\n      "command": "y",\n      "idle_timeout_s": 60\n    }' in str(text_of(file))
        assert await api.change("new", {"idle_timeout_s": 60}) == "nothing has changed"
        assert await api.remove("new") == "1 server removed (new)"
        assert text_of(file) == FILE
        assert {*await api.rows()} == STARTED


async def test_what_a_change_did_is_said_also_where_the_file_was_read_before_it_was_asked_for(
    file: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(file, data) as api:

        def replace_text(path: Path, before: str | None, after: str) -> None:
            replace_in_file(path, before, after)
            assert trio.from_thread.run(api.reload)["outcome"] == "applied"

        monkeypatch.setattr(reload, "replace_text", replace_text)
        assert await api.add("new") == "1 server added (new)"
        assert await api.change("new", {"idle_timeout_s": 9}) == "1 server replaced (new)"
        assert await api.remove("new") == "1 server removed (new)"

        read = Reload.reload

        async def read_twice(of: Reload) -> Reloaded:
            await read(of)
            return await read(of)

        monkeypatch.setattr(Reload, "reload", read_twice)
        assert await api.add("new", ephemeral=True) == "1 server added (new)"
        assert await api.remove("new") == "1 server removed (new)"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("bad", {"comand": "y"}, 'did you mean "command"?'),
    ("bad", {"command": "${NO_SUCH}"}, "NO_SUCH is not set"),
    ("GOOD", ENTRY, "capitals make no difference"),
    ("github", ENTRY, "its tools are called by the name 'github' already"),
    ("other", {"command": "y", "slug": "good"}, "the slug is used by another entry"),
    ("a:b", ENTRY, 'for example to "a-b"'),
]


async def test_what_is_refused_leaves_file_and_daemon_as_they_were(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        for name, entry, words in REFUSED:
            for ephemeral in (False, True):
                assert words in await api.add(name, entry, 422, ephemeral=ephemeral)
        assert {*await api.rows()} == STARTED
        assert (await api.reload())["outcome"] == "unchanged"
        assert (await api.source())["refused"] == []
    assert text_of(file) == FILE
    assert text_of(backup_of(file)) is None


async def test_a_change_that_makes_an_entry_useless_is_refused_and_one_that_mends_it_is_not(
    file: Path, data: DataDir
) -> None:
    async with daemon(file, data) as api:
        assert "good.command" in await api.change("good", {"command": 1}, 422)
        assert text_of(file) == FILE
        assert await api.change("typo", {"comand": None, "command": "x"}) == "1 server changed (typo)"
        await api.ready()
        assert (await api.row("typo"))["last_error"] is None


async def test_edits_at_the_same_time_all_happen(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(api.add, f"n{number}")
            nursery.start_soon(api.remove, "good")
            nursery.start_soon(api.change, "github", {"idle_timeout_s": 5})
        assert {*await api.rows()} == STARTED - {"good"} | {f"n{number}" for number in range(5)}
        assert '"github-john-abc123": {"command": "x", "idle_timeout_s": 5}' in str(text_of(file))


async def test_of_two_who_remove_the_same_server_one_is_told_that_there_is_none(file: Path, data: DataDir) -> None:
    statuses: list[int] = []

    async def remove(api: World, name: str) -> None:
        try:
            await api.remove(name)
            statuses.append(200)
        except AssertionError:
            await api.remove(name, 404)
            statuses.append(404)

    async with daemon(file, data) as api:
        await api.add("mine", ephemeral=True)
        for name in ("good", "mine"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(remove, api, name)
                nursery.start_soon(remove, api, name)
    assert sorted(statuses) == [200, 200, 404, 404]


async def test_what_was_written_into_the_file_meanwhile_stays_and_is_taken_over(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        write(file, FILE.replace('"good": {"command": "x"}', '"mine": {"command": "z"}'))
        assert await api.add("new") == "2 servers added (mine, new); 1 server removed (good)"
        write(file, "{")
        assert f"{file}:1: the file ends before" in await api.add("more", ENTRY, 422)
        assert text_of(file) == "{"
        assert {*await api.rows()} == STARTED - {"good"} | {"mine", "new"}


async def test_a_file_that_changes_between_look_and_rename_is_left_alone(
    file: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_if_there

    def outrun(path: Path) -> str | None:
        text = read(path)
        write(path, f"// a person\n{FILE}")
        return text

    monkeypatch.setattr(reload, "read_if_there", outrun)
    async with daemon(file, data) as api:
        assert "has changed meanwhile" in await api.add("new", ENTRY, 422)
        assert {*await api.rows()} == STARTED
    assert text_of(file) == f"// a person\n{FILE}"


async def test_a_server_of_a_generated_name_is_changed_and_removed_by_the_one_it_is_called_by(
    file: Path, data: DataDir
) -> None:
    async with daemon(file, data) as api:
        assert "did you mean github?" in await api.remove("github-john-abc123", 404)
        assert (await api.remove("github")).startswith("1 server removed (github)")
        assert text_of(file) == FILE.replace('    "github-john-abc123": {"command": "x"},\n', "")


async def test_an_entry_whose_name_is_of_no_use_can_be_removed(file: Path, data: DataDir) -> None:
    write(file, FILE.replace('"typo"', '"github.com/acme/maps"'))
    async with daemon(file, data) as api:
        assert await api.remove("github.com%2Facme%2Fmaps") == "1 server removed (github.com/acme/maps)"
    assert "acme" not in str(text_of(file))


@pytest.fixture
def locked(file: Path) -> Path:
    file.chmod(0o444)
    return file


async def test_a_file_that_nobody_may_write_is_left_alone(locked: Path, data: DataDir) -> None:
    file = locked
    async with daemon(file, data) as api:
        for said in (await api.add("new", ENTRY, 422), await api.remove("good", 422)):
            assert f"{file}: the file may not be written" in said
        assert {*await api.rows()} == STARTED
        await api.add("mine", ephemeral=True)
        assert {*await api.rows()} == STARTED | {"mine"}
    assert text_of(file) == FILE


async def test_a_link_stays_one(tmp_path: Path, file: Path, data: DataDir) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    async with daemon(link, data) as api:
        await api.add("new")
        assert {*await api.rows()} == STARTED | {"new"}
    assert link.is_symlink()
    assert '"new"' in str(text_of(file))


# Until the daemon ends ------------------------------------------------------------------------------------------------


async def test_an_ephemeral_server_outlives_readings_of_the_file_and_not_the_daemon(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        assert await api.add("mine", ephemeral=True) == "1 server added (mine)"
        assert "already" in await api.add("Mine", ENTRY, 422, ephemeral=True)
        assert "not in the file" in await api.change("mine", {"cwd": "/"}, 422)
        write(file, FILE.replace('"good"', '"better"'))
        await api.reload()
        assert {*await api.rows()} == STARTED - {"good"} | {"better", "mine"}
        assert await api.add("new") == "1 server added (new)"
        assert '"mine"' not in str(text_of(file))
        assert await api.remove("mine") == "1 server removed (mine)"
        await api.remove("mine", 404)
        await api.reload()
        assert "mine" not in {*await api.rows()}
        await api.add("mine", ephemeral=True)
    async with daemon(file, data) as api:
        assert {*await api.rows()} == STARTED - {"good"} | {"better", "new"}


async def test_an_ephemeral_server_gives_way_to_one_of_the_file_for_good(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        for name in ("mine", "other", "third"):
            await api.add(name, ephemeral=True)
        write(
            file,
            FILE.replace('"typo": {"comand": "x"}', '"Mine": {"command": "z"}, "s": {"command": "x", "slug": "third"}'),
        )
        await api.reload()
        assert {*await api.rows()} == {"good", "github", "Mine", "other", "third"}
        assert await api.add("other", {"command": "kept"}) == "1 server replaced (other)"
        await api.add("fourth", ephemeral=True)
        assert await api.add("fourth") == "fourth runs on, and is in the file now"
        await api.remove("fourth")
        assert '"kept"' in str(text_of(file))
        assert await api.remove("Mine") == "1 server removed (Mine)"
        assert await api.remove("other") == "1 server removed (other)"
        assert await api.remove("third") == "1 server removed (third)"
        assert {*await api.rows()} == {"good", "github"}


async def test_faults_of_the_file_have_its_lines_whatever_was_added_beside_it(file: Path, data: DataDir) -> None:
    async with daemon(file, data) as api:
        await api.add("mine", {"command": "y", "env": {"A": "1", "B": "2"}}, ephemeral=True)
        write(file, FILE.replace('"drain_s": 0.2', '"drain_s": "x"'))
        assert f"{file}:8: supervisor.drain_s" in (await api.reload(422))["error"]["message"]
        assert {*await api.rows()} == STARTED | {"mine"}


async def test_so_many_ephemeral_servers_are_enough(file: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reload.MAX_EPHEMERAL == 100
    monkeypatch.setattr(reload, "MAX_EPHEMERAL", 2)
    async with daemon(file, data) as api:
        for name in ("a", "b"):
            await api.add(name, ephemeral=True)
        assert "there are 2 servers already" in await api.add("c", ENTRY, 422, ephemeral=True)
        await api.remove("a")
        await api.add("c", ephemeral=True)
        assert {*await api.rows()} == STARTED | {"b", "c"}


async def test_an_ephemeral_server_is_not_there_if_the_file_broke_before_it_was_read(
    file: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Reload.plan

    async def outrun(self: Reload, *arguments: Any, **named: Any) -> Any:
        planned = await plan(self, *arguments, **named)
        write(file, "{")
        return planned

    async with daemon(file, data) as api:
        await api.add("there", ephemeral=True)
        with monkeypatch.context() as patched:
            patched.setattr(Reload, "plan", outrun)
            assert "ends before" in await api.add("mine", ENTRY, 422, ephemeral=True)
        assert "ends before" in await api.remove("there", 422)
        write(file, FILE)
        await api.reload()
        assert {*await api.rows()} == STARTED | {"there"}
