"""`config`: values are typed or piped in, never arguments, shown masked; `explain --user` says whose each is."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from supervisor.commands import config as module
from supervisor.config import load
from supervisor.host.datadir import DataDir
from tests.scenario.daemon import World
from tests.supervisor.commands.test_cli import NOWHERE, ask, invoke
from tests.supervisor.test_values_of_daemon import CANARIES, GIVEN_TEAM, GIVEN_USER, IDENTITY, SERVERS, doorway


def url(at: World) -> str:
    return str(at.http.base_url)


def lines(result: Result) -> list[list[str]]:
    return [re.split(r"  +", line) for line in result.stdout.splitlines()]


async def done(at: World, *words: str, stdin: str | None = None) -> str:
    result = await ask(url(at), "config", *words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_a_value_is_piped_in_listed_and_taken_back(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data) as at:
        await at.admit("ben")
        monkeypatch.setenv("MCPVISOR_TOKEN", at.keys["ben"])
        assert await done(at, "set", "github", "TOKEN", "-", stdin=f"{GIVEN_USER}\r\n") == (
            "TOKEN of github for the user ben is given\n"
        )
        given = json.loads(await done(at, "set", "github", "LOG", "--json", stdin="debug"))
        assert given == {"tier": "user", "owner": "ben", "server": "github", "name": "LOG", "locked": False}
        listed = await ask(url(at), "config", "list", "github")
        shown = {row[1]: row[2:] for row in lines(listed)[1:]}
        assert shown["TOKEN"] == ["***", "user ben", "mcpvisor config"]
        assert shown["LOG"] == ["debug", "user ben", "mcpvisor config", "one of info, debug"]
        assert shown["PIN"] == ["***", "user ben", "the file, line 1"]
        assert shown["KEY"] == ["***", "team core", "the file, line 1", "the team gives it"]
        assert shown["EXTRA"] == ["-", "-", "-"]
        assert json.loads(await done(at, "list", "--json"))["user"] == "ben"
        assert ["maps", "MAPS_TOKEN", "-", "-", "-", "missing"] in lines(await ask(url(at), "config", "list"))
        assert await done(at, "unset", "github", "TOKEN") == "TOKEN of github for the user ben is taken back\n"
        gone = await ask(url(at), "config", "unset", "github", "TOKEN")
        assert (gone.exit_code, gone.stderr) == (1, "Error: nobody gave 'TOKEN' of github for the user ben\n")


async def test_an_admin_gives_for_a_user_or_a_team(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        locked = await done(at, "set", "github", "LOG", "--team", "core", "--locked", stdin="info\n")
        assert locked == "LOG of github for the team core is given, and locked\n"
        assert "for the user ben" in await done(at, "set", "github", "TOKEN", "--user", "ben", stdin=GIVEN_USER)
        shown = {row[1]: row[2:] for row in lines(await ask(url(at), "config", "list", "github", "--user", "ben"))[1:]}
        assert shown["LOG"][-1] == "locked by the team; one of info, debug"
        assert "HIDDEN" in {row[1] for row in lines(await ask(url(at), "config", "list", "--team", "core"))}
        assert json.loads(await done(at, "unset", "github", "LOG", "--team", "core", "--json"))["tier"] == "team"
        assert "taken back" in await done(at, "unset", "github", "TOKEN", "--user", "ben")
        for words in (("list",), ("set", "github", "TOKEN"), ("unset", "github", "TOKEN")):
            refused = await ask(url(at), "config", *words, stdin="x")
            assert refused.exit_code == 1
            assert "say whose values, as the operator has none" in refused.stderr
            assert "--user or --team" in refused.stderr


async def test_it_is_asked_for_at_a_terminal_and_shown_if_it_is_no_secret(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_terminal", lambda: True)
    own = SERVERS["github"]
    several = {**own, "args": ["${user:EXTRA:-}"], "values": {**own["values"], "EXTRA": {"several": True}}}
    monkeypatch.setitem(SERVERS, "github", several)
    async with doorway(tmp_path, data) as at:
        typed = await ask(url(at), "config", "set", "github", "TOKEN", "--user", "ben", stdin=f"{GIVEN_USER}\n")
        assert typed.exit_code == 0
        assert GIVEN_USER not in typed.output
        plain = await ask(url(at), "config", "set", "github", "LOG", "--user", "ben", stdin="debug\n")
        assert "debug" in plain.output
        lines_of = await ask(url(at), "config", "set", "github", "EXTRA", "--user", "ben", stdin="a b\nc\n\n")
        assert lines_of.exit_code == 0
        shown = json.loads(await done(at, "list", "github", "--user", "ben", "--json"))["values"]
        assert next(row for row in shown if row["name"] == "EXTRA")["value"] == ["a b", "c"]
        monkeypatch.setattr(module, "is_terminal", lambda: False)
        await done(at, "set", "github", "EXTRA", "--user", "ben", stdin="d\ne f\n")
        shown = json.loads(await done(at, "list", "github", "--user", "ben", "--json"))["values"]
        assert next(row for row in shown if row["name"] == "EXTRA")["value"] == ["d", "e f"]


async def test_a_server_that_waits_for_its_team_is_named(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"command": "x", "env": {"KEY": "${team:KEY}"}, "values": {"KEY": {"hidden": True}}}
    monkeypatch.setitem(SERVERS, "search", own)
    async with doorway(tmp_path, data) as at:
        listed = await done(at, "list", "search", "--user", "cem")
        assert listed.splitlines()[1:] == ["search waits for a value that its team has to give"]


# explain --user -------------------------------------------------------------------------------------------------------


async def explain(at: World | None, file: Path, *words: str) -> Result:
    return await ask(url(at) if at is not None else NOWHERE, "explain", *words, "--config", str(file))


async def test_what_holds_for_a_user_is_explained(tmp_path: Path, data: DataDir) -> None:
    file = tmp_path / "mcp.json"
    async with doorway(tmp_path, data) as at:
        await done(at, "set", "github", "TOKEN", "--user", "ben", stdin=GIVEN_USER)
        await done(at, "set", "github", "HIDDEN", "--team", "core", stdin=GIVEN_TEAM)
        ben = await explain(at, file, "github", "--user", "ben")
        assert (ben.exit_code, ben.stderr) == (0, "")
        settings, values = (
            {row[0]: row[1:] for row in (re.split(r"  +", line) for line in part.splitlines())}
            for part in ben.stdout.split("\n\n")
        )
        assert settings["env.TOKEN"] == ["***", "mcp.json:1"]
        assert settings["args"][0].endswith('"none"]')
        assert values["TOKEN"] == ["***", "user ben", "mcpvisor config"]
        assert values["PIN"] == ["***", "user ben", "mcp.json:1"]
        assert values["KEY"] == ["***", "team core", "mcp.json:1"]
        assert values["HIDDEN"] == ["***", "team core", "mcpvisor config"]
        assert values["LOG"] == ["-", "default", "-"]
        maps = await explain(at, file, "maps", "--user", "ben")
        assert maps.exit_code == 1
        assert maps.stderr == "MAPS_TOKEN is missing: its user gives it by mcpvisor config set maps MAPS_TOKEN\n"
        in_json = json.loads((await explain(at, file, "github", "--user", "cem", "--json")).stdout)
        assert in_json["missing"] == {"TOKEN": "user", "KEY": "team"}
        cem = await explain(at, file, "github", "--user", "cem")
        assert "an admin gives it by mcpvisor config set github KEY --team NAME" in cem.stderr
        core = await explain(at, file, "github", "--team", "core")
        assert "TOKEN is missing: its user gives it" in core.stderr
        said = [each.output for each in (ben, maps, cem, core)]
    assert [text for text in said for canary in CANARIES if canary in text] == []


async def test_without_the_daemon_the_file_alone_is_explained(tmp_path: Path, data: DataDir) -> None:
    file, other = tmp_path / "mcp.json", tmp_path / "other.json"
    async with doorway(tmp_path, data) as at:
        other.write_text(file.read_text())
        elsewhere = await explain(at, other, "github", "--user", "ben")
        assert f"it runs with another file, {file}" in elsewhere.stderr
    alone = await explain(None, file, "github", "--user", "ben")
    assert alone.exit_code == 1
    assert "note: this is the file alone, without what the daemon was given: no daemon answers" in alone.stderr
    assert "TOKEN is missing" in alone.stderr
    assert "no user 'zed'" in (await explain(None, file, "github", "--user", "zed")).stderr
    assert "are about a server" in (await explain(None, file, "--user", "ben")).stderr


def test_no_value_of_users_and_teams_is_shown_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    identity: dict[str, Any] = {
        **IDENTITY,
        "users": {**IDENTITY["users"], "cem": {"values": {"github": {"NO": "plain"}}}},
    }
    file.write_text(json.dumps({"mcpServers": SERVERS, "supervisor": {"identity": identity}}, indent=1))
    shown = invoke("explain", "--config", str(file))
    assert shown.exit_code == 0, shown.output
    assert '"values": {"github": {"PIN": {"value": "***"' in shown.stdout
    said = [shown.output, invoke("explain", "--json", "--config", str(file)).output]
    said += [invoke("explain", "github", "--config", str(file)).output, invoke("check", str(file)).output]
    assert "the server 'github' takes no such value" in said[-1]
    assert [text for text in said for canary in (*CANARIES, "plain") if canary in text] == []
    assert load(file, os.environ).notes
