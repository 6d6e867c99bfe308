"""`explain`: what holds for a server or the daemon, read as `run` reads it, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from supervisor.cli import cli
from tests.supervisor.commands.test_cli import NOWHERE

CONFIG = """{
  "mcpServers": {
    "time": {"command": "cat", "args": ["--token", "${MY_TOKEN}"], "timeout": 30},
    "maps": {"url": "https://maps.example/mcp"},
    "wrong": {"comand": "cat"}
  },
  "supervisor": {"listen": "127.0.0.1:0"}
}"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a configuration where `run` looks for it, and a working directory without one."""
    file = tmp_path / "home" / ".config" / "mcpvisor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(CONFIG)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MY_TOKEN", "correct-horse")
    monkeypatch.setenv("MCPVISOR_URL", NOWHERE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return file


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *arguments])


def rows(result: Result) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}


def test_it_finds_the_file_that_run_finds_and_says_where_values_come_from(home: Path) -> None:
    result = explain("time")
    assert result.exit_code == 0
    shown = rows(result)
    assert shown["command"] == ["cat", "mcp.json:3"]
    assert shown["call_timeout_s"] == ["30.0", "mcp.json:3", "mcpServers.time.timeout"]
    assert shown["idle_timeout_s"] == ["null", "default"]
    assert "correct-horse" not in result.output


def test_an_entry_that_is_left_out_says_what_is_wrong_with_it(home: Path) -> None:
    result = explain("wrong")
    assert result.exit_code == 1
    assert f'{home}:5: mcpServers.wrong.comand: unknown key (did you mean "command"?)' in result.stderr
    assert "wrong is left out until this is mended" in result.stderr


def test_notes_on_the_server_stand_below(home: Path) -> None:
    home.write_text('{"mcpServers": {"a": {"command": "npx", "args": ["-y", "b"]}, "b": {"command": "cat"}}}')
    assert "note: " in explain("a").stdout
    assert "note: " not in explain("b").stdout


def test_a_name_that_is_served_otherwise_is_known_by_both(home: Path) -> None:
    home.write_text('{"mcpServers": {"a": {"command": "cat", "slug": "b"}}}')
    assert explain("a").stdout == explain("b").stdout


def test_a_file_that_no_daemon_starts_with_ends_with_its_code(home: Path) -> None:
    home.write_text("{")
    result = explain("time")
    assert (result.exit_code, result.stdout) == (78, "")
    home.unlink()
    assert "there is no configuration; looked for" in explain().stderr


def test_without_a_place_for_data_there_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("MY_TOKEN")
    home.write_text("{}")
    assert rows(explain("--config", str(home)))["data_dir"][0] == '""'


def test_with_a_user_it_shows_what_the_user_and_the_user_s_teams_are_asked(home: Path) -> None:
    people = {
        "users": {"ben": {"confirm": ["time:*"]}, "cem": {}},
        "teams": {"new": {"members": ["ben"], "confirm": "safe"}},
    }
    config = {"mcpServers": {"time": {"command": "cat"}}, "supervisor": {"identity": people}}
    home.write_text(json.dumps(config, indent=1))
    lines = home.read_text().splitlines()
    line = next(at for at, each in enumerate(lines, 1) if '"safe"' in each)
    shown = explain("time", "--user", "ben", "--json")
    by_key = {each["key"]: each for each in json.loads(shown.stdout)["values"]}
    assert by_key["confirm of user ben"]["value"] == ["time:*"]
    assert (by_key["confirm of team new"]["value"], by_key["confirm of team new"]["line"]) == ("safe", line)
    assert "confirm of" not in explain("time", "--user", "cem").stdout
    assert f"mcp.json:{line}" in explain("time", "--team", "new").stdout
