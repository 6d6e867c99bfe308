"""`connect`: on files as clients have them, from an empty home on."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click import UsageError
from click.testing import CliRunner, Result
from msgspec import structs

from actors.launch import launch_name
from supervisor.cli import cli
from supervisor.clients.doors import Offered
from supervisor.commands import edits
from supervisor.commands.connect import _look
from supervisor.commands.outcomes import NoDaemon
from supervisor.daemon_client.client import DaemonClient
from tests.supervisor.clients.files import CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, SAMPLES, VSCODE, Sample

BY_EFFECT = "http://127.0.0.1:3001/mcp?execute=by-effect"

samples = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.client)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, with no program of a client anywhere."""
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "MCPVISOR_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("supervisor.commands.connect.ask", no_daemon)
    return tmp_path


def no_daemon(*_: object, **__: object) -> Offered:
    raise NoDaemon("none runs")


OFFERED = Offered(tools=612, tokens=81_000, servers=("git", "time"), meta_tokens=350, by_effect=True)


@pytest.fixture
def daemon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.commands.connect.ask", lambda *_, **__: OFFERED)


def entries(file: Path) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads(file.read_text())["mcpServers"]
    return servers


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin, catch_exceptions=False)


def snapshot(home: Path) -> dict[str, bytes]:
    return {str(file.relative_to(home)): file.read_bytes() for file in home.rglob("*") if file.is_file()}


def changes(diff: list[str], signs: str) -> list[tuple[int, str]]:
    """The lines that come and go, each with the place of its sign in `signs`."""
    return [(signs.index(line[0]), line[1:]) for line in diff[2:] if line[:1] in signs and line]


@samples
def test_a_client_is_connected_and_gets_back_every_byte(sample: Sample, home: Path) -> None:
    file = sample.write(home)
    file.chmod(0o640)
    result = invoke("connect", sample.client, "--yes")
    assert result.exit_code == 0
    assert "canary" not in result.output
    assert "mcpvisor" in result.stdout
    shown = result.stdout.splitlines()
    connected = file.read_bytes()
    assert b"mcpvisor" in connected
    assert file.stat().st_mode & 0o777 == 0o640
    assert "is connected already" in invoke("connect", sample.client, "--yes").stderr
    assert file.read_bytes() == connected
    result = invoke("connect", sample.client, "--undo", "--yes")
    assert result.exit_code == 0
    assert sorted(changes(result.stdout.splitlines(), "+-")) == sorted(changes(shown, "-+"))
    assert file.read_bytes() == sample.text.encode()
    assert "is not connected" in invoke("connect", sample.client, "--undo", "--yes").stderr


def test_without_a_client_those_that_are_here_are_listed(home: Path) -> None:
    result = invoke("connect")
    assert "No client was found" in result.stderr
    CURSOR.write(home)
    VSCODE.write(home).write_text('{\n"servers": 1}')
    invoke("connect", "windsurf", "--yes")
    result = invoke("connect")
    rows = [line.split()[:4] for line in result.stdout.splitlines()]
    assert rows[1] == ["cursor", "no", "-", "2"]
    assert rows[2][0] == "vscode"
    assert "mcp.json:2: servers: must be an object" in result.stdout
    assert rows[3] == ["windsurf", "as", "mcpvisor", "four"]
    assert "codex" in result.stderr


def test_a_file_that_we_made_goes_with_us(home: Path) -> None:
    result = invoke("connect", "gemini", "--yes")
    assert "was not found on this machine" in result.stderr
    file = home / ".gemini" / "settings.json"
    assert json.loads(file.read_text())["mcpServers"]["mcpvisor"]["url"] == "http://127.0.0.1:3001/mcp"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "was not found" not in invoke("connect", "gemini", "--dry-run").stderr
    result = invoke("connect", "gemini", "--undo", "--yes")
    assert [line for line in result.stdout.splitlines() if line.startswith("+")] == [f"+++ {file}"]
    assert not file.exists()


def test_a_file_that_changed_since_loses_our_entry_alone(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("connect", "cursor", "--yes")
    file.write_text(file.read_text().replace('"linear"', '"lines"'))
    invoke("connect", "cursor", "--undo", "--yes")
    assert file.read_text() == CURSOR.text.replace('"linear"', '"lines"')


def test_an_entry_that_was_replaced_does_not_come_back(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("connect", "cursor", "--url", "127.0.0.1:4000", "--yes")
    invoke("connect", "cursor", "--yes")
    assert file.read_text().count("mcpvisor") == 1
    invoke("connect", "cursor", "--undo", "--yes")
    assert file.read_text() == CURSOR.text


def test_a_client_that_writes_over_it_at_once_is_told_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CLAUDE_CODE.write(home)
    write = edits.FileChange.write

    def lose(change: edits.FileChange) -> None:
        write(change)
        file.write_text(CLAUDE_CODE.text)

    monkeypatch.setattr(edits.FileChange, "write", lose)
    result = invoke("connect", "claude-code", "--yes")
    assert result.exit_code == 1
    assert "Claude Code runs and has written over" in result.stderr


def test_a_client_is_told_what_it_needs_when_something_came_and_when_it_went(home: Path) -> None:
    VSCODE.write(home)
    assert "asks whether you trust the server" in invoke("connect", "vscode", "--yes").stderr
    lines = invoke("connect", "vscode", "--undo", "--yes").stderr.splitlines()
    assert lines[-1] == "VS Code: It reads the file by itself."


def test_a_link_stays_one(home: Path) -> None:
    target = home / "dotfiles" / "mcp.json"
    target.parent.mkdir()
    target.write_text(CURSOR.text)
    (home / ".cursor").mkdir()
    link = home / ".cursor" / "mcp.json"
    link.symlink_to(target)
    invoke("connect", "cursor", "--yes")
    assert link.is_symlink()
    assert "mcpvisor" in target.read_text()
    invoke("connect", "cursor", "--undo", "--yes")
    assert target.read_text() == CURSOR.text


def test_a_link_to_nothing_is_filled_where_its_directory_is_and_said_where_not(home: Path) -> None:
    target = home / "dotfiles" / "mcp.json"
    (home / ".cursor").mkdir()
    link = home / ".cursor" / "mcp.json"
    link.symlink_to(target)
    said = invoke("connect", "cursor", "--yes").stderr
    assert f"it is a link to {target}, in a directory that is not there" in said
    assert not target.parent.exists()
    target.parent.mkdir()
    invoke("connect", "cursor", "--yes")
    assert link.is_symlink()
    assert "mcpvisor" in target.read_text()


def test_who_is_asked_reads_where_a_link_leads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = home / "mcp.json"
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(target)
    asked = list[str]()

    def agrees(question: str, *, yes: bool) -> bool:
        asked.append(question)
        return yes

    monkeypatch.setattr("supervisor.commands.connect.agrees", agrees)
    invoke("connect", "cursor")
    assert asked == [f"Write this to {home / '.cursor' / 'mcp.json'} (a link to {target})?"]


def test_nothing_is_written_by_a_look_a_no_or_where_nobody_can_be_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CURSOR.write(home)
    before = snapshot(home)
    assert invoke("connect", "cursor", "--dry-run").exit_code == 0
    result = invoke("connect", "cursor")
    assert result.exit_code == 1
    assert "add --yes" in result.stderr
    monkeypatch.setattr(edits, "is_terminal", lambda: True)
    result = invoke("connect", "cursor", stdin="n\n")
    assert (result.exit_code, snapshot(home)) == (1, before)
    assert "nothing was written" in result.stderr
    result = invoke("connect", "cursor", stdin="y\n")
    assert result.exit_code == 0
    assert snapshot(home) != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"mcpServers": {', "mcp.json:1: "),
        ('{\n"mcpServers": {},\n"mcpServers": {}}', "mcp.json:3: mcpServers: the key is written twice"),
        ('{\n"mcpServers": []}', "mcp.json:2: mcpServers: must be an object"),
        ("[]", "must be an object"),
        ('{"mcpServers": {"mcpvisor2": {"command": "x"}}}', "another server is called"),
    ],
)
def test_what_cannot_be_changed_safely_is_not_touched(home: Path, text: str, words: str) -> None:
    file = CURSOR.write(home)
    file.write_text(text)
    result = invoke("connect", "cursor", "--name", "mcpvisor2", "--yes")
    assert result.exit_code == 1
    assert words in result.stderr
    assert snapshot(home) == {".cursor/mcp.json": text.encode()}


def test_a_client_with_a_command_of_its_own_is_told_it_when_its_file_is_broken(home: Path) -> None:
    CLAUDE_CODE.write(home).write_text("{")
    result = invoke("connect", "claude-code", "--yes")
    assert "claude mcp add --transport http --scope user mcpvisor http://127.0.0.1:3001/mcp" in result.stderr


def test_a_client_that_only_starts_programs_gets_ours_by_its_absolute_path(home: Path) -> None:
    program = home / "bin" / "mcpvisor"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = CLAUDE_DESKTOP.write(home)
    result = invoke("connect", "claude-desktop", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["mcpvisor"]
    assert entry == {"command": str(program), "args": ["stdio"]}
    assert "It writes this file itself while it runs" in result.stderr
    invoke("connect", "claude-desktop", "--url", "127.0.0.1:4000", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["mcpvisor"]
    assert entry == {"command": str(program), "args": ["stdio", "--url", "http://127.0.0.1:4000/mcp"]}


@pytest.mark.parametrize(
    ("argv", "command"),
    [("/opt/mcpvisor", ["/opt/mcpvisor", "stdio"]), ("/x/pytest", ["-m", "supervisor", "stdio"])],
)
def test_a_program_that_is_not_on_the_path_is_found_by_how_it_was_started(
    home: Path, monkeypatch: pytest.MonkeyPatch, argv: str, command: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", [argv])
    file = CLAUDE_DESKTOP.write(home)
    invoke("connect", "claude-desktop", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["mcpvisor"]
    assert [entry["command"], *entry["args"]][-len(command) :] == command


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("127.0.0.1:4000", "http://127.0.0.1:4000/mcp"),
        ("http://[::1]:4000/mcp/", "http://[::1]:4000/mcp"),
        ("http://localhost:4000/mcp/all", "http://localhost:4000/mcp/all"),
        ("http://localhost:4000/mcp?profile=work", "http://localhost:4000/mcp?profile=work"),
        ("http://localhost:4000/ui/servers", "http://localhost:4000/mcp"),
        ("ws://localhost:4000/mcp/servers/git/", "http://localhost:4000/mcp/servers/git"),
        ("http://localhost:4000/proxy/mcp?execute=", "http://localhost:4000/proxy/mcp"),
        ("http://localhost:4000/mcp?execute=by-effect", "http://localhost:4000/mcp?execute=by-effect"),
    ],
)
def test_the_daemon_may_be_elsewhere(home: Path, url: str, written: str) -> None:
    invoke("connect", "cursor", "--url", url, "--yes")
    file = home / ".cursor" / "mcp.json"
    assert json.loads(file.read_text())["mcpServers"]["mcpvisor"]["url"] == written
    assert "as mcpvisor" in invoke("connect", "--url", url).stdout
    assert "elsewhere" in invoke("connect").stdout


def test_a_project_has_a_file_of_its_own(home: Path) -> None:
    invoke("connect", "claude-code", "--project", "--yes")
    file = home / "work" / ".mcp.json"
    assert "mcpvisor" in json.loads(file.read_text())["mcpServers"]
    (home / ".claude").mkdir()
    assert "as mcpvisor" in invoke("connect", "--project").stdout
    assert "has no file for a project" in invoke("connect", "windsurf", "--project", "--yes").stderr


def test_several_entries_of_us_are_told_apart_by_name_and_go_together_without_one(home: Path) -> None:
    file = CURSOR.write(home)
    for name in ("one", "two", "three"):
        result = invoke("connect", "cursor", "--name", name, "--yes")
    assert "it leads here already as one, two" in result.stderr
    invoke("connect", "cursor", "--undo", "--name", "one", "--yes")
    assert entries(file).keys() & {"one", "two", "three"} == {"two", "three"}
    invoke("connect", "cursor", "--undo", "--yes")
    assert file.read_text() == CURSOR.text


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(
    ("client", "file", "entry"),
    [
        ("cursor", ".cursor/mcp.json", {"type": "http", "url": "http://127.0.0.1:3001/mcp/all"}),
        ("qwen", ".qwen/settings.json", {"httpUrl": BY_EFFECT, "alwaysLoadTools": True}),
        ("claude-code", ".claude.json", {"type": "http", "url": BY_EFFECT}),
        ("windsurf", ".codeium/windsurf/mcp_config.json", {"serverUrl": "http://127.0.0.1:3001/mcp"}),
    ],
)
def test_a_client_gets_the_door_that_is_best_for_it_and_is_told_why(
    home: Path, client: str, file: str, entry: dict[str, Any]
) -> None:
    result = invoke("connect", client, "--yes")
    assert entries(home / file) == {"mcpvisor": entry}
    (line,) = [line for line in result.stderr.splitlines() if " gets " in line]
    assert ", as " in line
    assert "612" in line
    invoke("connect", client, "--undo", "--yes")
    assert not (home / file).exists()


@pytest.mark.usefixtures("daemon")
def test_another_door_is_given_to_who_asks_for_it_and_takes_the_place_of_the_one_before(home: Path) -> None:
    file = CURSOR.write(home)
    at = "http://127.0.0.1:3001/mcp"
    others = entries(file)
    for door, urls in {
        "four": {"mcpvisor": at},
        "servers": {"git": f"{at}/servers/git", "time": f"{at}/servers/time"},
        "by-effect": {"mcpvisor": BY_EFFECT},
        "all": {"mcpvisor": f"{at}/all"},
    }.items():
        result = invoke("connect", "cursor", "--door", door, "--yes")
        assert "as you asked for it" in result.stderr
        assert {name: entry["url"] for name, entry in entries(file).items() if name not in others} == urls
        assert [line.split()[-3] for line in invoke("connect").stdout.splitlines()[1:]] == [door]
    invoke("connect", "cursor", "--undo", "--yes")
    assert file.read_text() == CURSOR.text


@pytest.mark.usefixtures("daemon")
def test_an_entry_for_each_server_is_called_as_the_server_and_kept_up_to_date(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = invoke("connect", "codex", "--door", "servers", "--yes")
    assert "give the same command again" in result.stderr
    file = home / ".codex" / "config.toml"
    assert tomllib.loads(file.read_text())["mcp_servers"].keys() == {"git", "time"}
    now = structs.replace(OFFERED, servers=("git", "sentry"))
    monkeypatch.setattr("supervisor.commands.connect.ask", lambda *_, **__: now)
    invoke("connect", "codex", "--door", "servers", "--yes")
    assert tomllib.loads(file.read_text())["mcp_servers"].keys() == {"git", "sentry"}
    invoke("connect", "codex", "--undo", "--yes")
    assert not file.exists()
    invoke("connect", "codex", "--door", "servers", "--name", "us", "--yes")
    assert tomllib.loads(file.read_text())["mcp_servers"].keys() == {"us-git", "us-sentry"}


@pytest.mark.parametrize("at_door", [{"result": {"tools": []}}, {"error": {"code": -32602, "message": "no door"}}])
async def test_what_a_daemon_has_is_what_it_says_of_itself(at_door: dict[str, Any]) -> None:
    names = ("time", "git", launch_name("git", "0" * 64), "x; reboot", "\x1b[2J")
    rows = [*({"server": name, "status": "online"} for name in names), {"server": "off", "status": None}]
    tokens = {"exposed_tokens": 700, "meta_tokens": 350, "counted": True}
    page = {"servers": rows, "totals": {"tools": 7}, "tokens": tokens}

    def respond(request: httpx2.Request) -> httpx2.Response:
        is_ping = b'"ping"' in request.content
        answer = {"result": {}} if is_ping else at_door
        return httpx2.Response(200, json=page if request.url.path == "/api/status" else answer)

    client = DaemonClient(httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), "http://daemon")
    there = Offered(tools=7, tokens=700, servers=("git", "time"), meta_tokens=350)
    assert await _look(client, "/mcp") == there
    tokens["counted"] = False
    at_door = {"result": {"tools": [{"name": "execute_read_only_mcp_tool"}]}}
    assert await _look(client, "/mcp") == structs.replace(there, tokens=None, by_effect=True)


async def test_a_door_that_the_daemon_has_not_is_said_in_its_own_words() -> None:
    error = {"code": -32600, "message": "no server 'tme' is configured; there are: time", "data": {"type": "not_found"}}

    def respond(request: httpx2.Request) -> httpx2.Response:
        assert request.url.raw_path == b"/mcp/servers/tme?profile=work"
        return httpx2.Response(404, json={"jsonrpc": "2.0", "id": None, "error": error})

    client = DaemonClient(httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), "http://daemon")
    with pytest.raises(UsageError, match="there are: time"):
        await _look(client, "/mcp/servers/tme?profile=work")


@pytest.mark.usefixtures("daemon")
def test_a_door_that_is_asked_for_takes_the_place_of_that_in_the_address(home: Path) -> None:
    url = f"{BY_EFFECT}&profile=work"
    for more, path in ((), "?profile=work&execute=by-effect"), (("--door", "all"), "/all?profile=work"):
        invoke("connect", "cursor", "--url", url, *more, "--yes")
        assert entries(home / ".cursor" / "mcp.json")["mcpvisor"]["url"] == f"http://127.0.0.1:3001/mcp{path}"


@pytest.mark.usefixtures("daemon")
def test_a_client_that_only_starts_programs_gets_one_for_the_door(home: Path) -> None:
    invoke("connect", "claude-desktop", "--door", "servers", "--yes")
    written = entries(home / ".config" / "Claude" / "claude_desktop_config.json")
    at = "http://127.0.0.1:3001/mcp/servers"
    assert {name: entry["args"][-2:] for name, entry in written.items()} == {
        name: ["--url", f"{at}/{name}"] for name in ("git", "time")
    }


@pytest.mark.usefixtures("daemon")
def test_the_own_command_of_a_client_is_for_a_shell_and_adds_each_entry(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = "claude mcp add --transport http --scope user"
    assert f"{added} mcpvisor '{BY_EFFECT}'" in invoke("connect", "claude-code", "--yes").stderr
    at = "http://127.0.0.1:3001/mcp/servers"
    both = f"{added} git {at}/git && {added} time {at}/time"
    assert both in invoke("connect", "claude-code", "--door", "servers", "--yes").stderr
    spaced = structs.replace(OFFERED, servers=("my git",))
    monkeypatch.setattr("supervisor.commands.connect.ask", lambda *_, **__: spaced)
    told = invoke("connect", "claude-code", "--door", "servers", "--yes").stderr
    assert f"{added} 'my git' {at}/my%20git" in told
    VSCODE.write(home).write_text("{")
    written = f"""code --add-mcp '{{"name": "mcpvisor", "type": "http", "url": "{BY_EFFECT}"}}'"""
    assert written in invoke("connect", "vscode", "--door", "by-effect").stderr


@pytest.mark.usefixtures("daemon")
def test_an_address_with_a_door_in_it_is_left_as_it_is(home: Path) -> None:
    at = "http://127.0.0.1:3001/mcp/servers/git"
    result = invoke("connect", "claude-code", "--url", at, "--name", "git", "--yes")
    assert " gets " not in result.stderr
    assert entries(home / ".claude.json") == {"git": {"type": "http", "url": at}}
    result = invoke("connect", "claude-code", "--url", at, "--door", "all")
    assert result.exit_code == 2
    assert "--url names a door already" in result.stderr


def test_the_list_says_where_another_door_would_be_chosen_now(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for client in ("cursor", "windsurf"):
        invoke("connect", client, "--yes")
    assert "Another door" not in invoke("connect").stderr
    monkeypatch.setattr("supervisor.commands.connect.ask", lambda *_, **__: OFFERED)
    result = invoke("connect")
    assert "Another door would be chosen now for: cursor (all)" in result.stderr


def test_a_file_that_changes_while_somebody_is_asked_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CURSOR.write(home)

    def agree_late(question: str, *, yes: bool) -> bool:
        file.write_text("{}")
        return yes

    monkeypatch.setattr("supervisor.commands.connect.agrees", agree_late)
    result = invoke("connect", "cursor", "--yes")
    assert result.exit_code == 1
    assert "has changed meanwhile" in result.stderr
    assert file.read_text() == "{}"
