"""`import`: what clients have comes over, once, and no secret is shown on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.commands import edits
from supervisor.config import load
from supervisor.daemon_client.client import ConfigurationSource
from tests.supervisor.clients.files import CLAUDE_CODE, CODEX, CURSOR, SAMPLES, VSCODE, ZED, Sample
from tests.supervisor.commands.test_connect import home as home
from tests.supervisor.commands.test_connect import invoke, samples, snapshot

OURS = Path(".config/mcpvisor/mcp.json")


def servers(file: Path) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(file.read_text())["mcpServers"]
    return members


def test_all_that_clients_have_comes_over_and_a_second_time_nothing(home: Path) -> None:
    files = [sample.write(home) for sample in SAMPLES]
    (home / ".claude").mkdir()
    before = [file.read_bytes() for file in files]
    result = invoke("import", "--yes")
    assert result.exit_code == 0
    assert "canary" not in result.output
    ours = home / OURS
    assert set(servers(ours)) == {name for sample in SAMPLES for name in sample.servers} | {"github-cursor"}
    assert ours.stat().st_mode & 0o777 == 0o600
    assert ours.parent.stat().st_mode & 0o777 == 0o700
    assert servers(ours)["github"]["env"]["GITHUB_PERSONAL_ACCESS_TOKEN"] == "canary-github-token"
    assert [file.read_bytes() for file in files] == before
    text = ours.read_bytes()
    again = invoke("import", "--yes")
    assert again.exit_code == 0
    assert ours.read_bytes() == text
    assert "new" not in again.stdout
    assert f"{ours} has all of them." in again.stderr


@pytest.mark.case("X13")
def test_what_comes_is_shown_with_the_names_of_its_secrets(home: Path) -> None:
    for sample in (CLAUDE_CODE, CURSOR, CODEX, VSCODE, ZED):
        sample.write(home)
    (home / ".claude").mkdir()
    result = invoke("import", "--dry-run")
    assert result.exit_code == 0
    assert not (home / OURS).exists()
    for words in (
        "github: env.GITHUB_PERSONAL_ACCESS_TOKEN",
        "linear: url (?key)",
        "docs: env.DOCS_KEY",
        "issues: headers.X-Team",
        "postgres: env.PGPASSWORD",
        "set PERPLEXITY_KEY in the environment",
        "linear: has no meaning here: auth",
        "ISSUES_TOKEN is not set",
    ):
        assert words in result.stderr
    table = {tuple(line.split("  ")[0].split()): line for line in result.stdout.splitlines()[1:8]}
    assert table["github",].endswith("new") or "github-cursor" in table["github",]
    assert "extension-one  Zed" in result.stdout
    assert "canary" not in result.output


@samples
def test_servers_move_and_the_rest_of_the_file_stays(sample: Sample, home: Path) -> None:
    file = sample.write(home)
    result = invoke("import", sample.client, "--move", "--yes")
    assert result.exit_code == 0
    assert "canary" not in result.output
    left = file.read_bytes().decode()
    stays = ("perplexity",) if sample.client == "vscode" else ()
    assert [name for name in sample.servers if f'"{name}"' in left or f"servers.{name}" in left] == list(stays)
    assert f"Connect it with: mcpvisor connect {sample.client}" in result.stderr
    assert file.with_name(file.name + ".mcpvisor.bak").read_bytes() == sample.text.encode()
    assert set(servers(home / OURS)) == set(sample.servers)
    if stays:
        assert "perplexity stays in VS Code" in result.stderr


def test_a_client_is_connected_and_its_servers_move_and_we_never_come_in(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("connect", "cursor", "--yes")
    invoke("connect", "claude-desktop", "--yes")
    result = invoke("import", "--move", "--yes")
    assert result.exit_code == 0
    assert set(servers(home / OURS)) == {"github", "linear"}
    assert set(servers(file)) == {"mcpvisor"}
    assert "There is nothing to take over" in invoke("import", "--yes").stderr


def test_comments_of_our_file_stay_and_names_do_not_clash(home: Path) -> None:
    CURSOR.write(home)
    ours = home / "mine.json"
    text = '{\n  // mine\n  "mcpServers": {\n    "GitHub": {"command": "x"} // ours\n  },\n  "supervisor": {}\n}\n'
    ours.write_text(text)
    result = invoke("import", "cursor", "--into", str(ours), "--yes")
    assert "new, as github-cursor" in result.stdout
    after = ours.read_text()
    assert after.startswith(text[: text.index(" // ours")] + ", // ours\n")
    assert after.endswith('  },\n  "supervisor": {}\n}\n')
    names = [server.name for server in load(ours, {"GITHUB_TOKEN": "t"}).servers]
    assert names == ["GitHub", "github-cursor", "linear"]


def test_a_file_with_servers_as_vs_code_has_them_gets_more_of_them(home: Path) -> None:
    CURSOR.write(home)
    ours = home / "mine.json"
    ours.write_text('{"servers": {"x": {"command": "x"}}, "supervisor": {"listen": "127.0.0.1:5"}}')
    invoke("import", "cursor", "--into", str(ours), "--yes")
    assert set(json.loads(ours.read_text())["servers"]) == {"x", "github", "linear"}


def test_the_address_of_our_own_file_is_us_too(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"us": {"url": "http://localhost:5/mcp"}}}')
    ours = home / "mine.json"
    ours.write_text('{"supervisor": {"listen": "127.0.0.1:5"}}')
    assert "nothing to take over" in invoke("import", "cursor", "--into", str(ours), "--yes").stderr


def test_servers_of_this_directory_come_and_the_others_stay(home: Path) -> None:
    text = CLAUDE_CODE.text.replace("/home/me/other", str(home / "work"))
    CLAUDE_CODE.write(home).write_text(text)
    result = invoke("import", "claude-code", "--move", "--yes")
    assert "Claude Code (this directory)" in result.stdout
    assert set(servers(home / OURS)) == {"github", "sentry", "local"}
    left = json.loads((home / CLAUDE_CODE.path).read_text())
    assert left["projects"][str(home / "work")] == {"mcpServers": {}, "history": []}
    assert left["primaryApiKey"] == "canary-api-key"


def test_the_file_of_a_project_is_read_once_though_two_clients_share_it(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".copilot").mkdir()
    project = home / "work" / ".mcp.json"
    project.write_text('{"mcpServers": {"a": {"command": "./run"}}}')
    result = invoke("import", "--project", "--move", "--yes")
    assert result.exit_code == 0
    assert servers(home / OURS) == {"a": {"command": str(home / "work" / "run"), "cwd": str(home / "work")}}
    assert servers(project) == {}


def test_a_file_that_is_ours_too_keeps_its_servers(home: Path) -> None:
    file = CURSOR.write(home)
    link = home / "mine.json"
    link.symlink_to(file)
    result = invoke("import", "cursor", "--into", str(link), "--move", "--yes")
    assert result.exit_code == 0
    assert "nothing to take over: in 0 files" in result.stderr
    assert file.read_text() == CURSOR.text


def test_a_daemon_with_another_file_is_told_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CURSOR.write(home)
    paths = [str(home / OURS), "/etc/other.json"]
    answers = (ConfigurationSource(path=path) for path in paths)
    monkeypatch.setattr("supervisor.commands.import_.ask", lambda url, question: next(answers))
    assert "Note: the daemon" not in invoke("import", "--dry-run").stderr
    assert "reads /etc/other.json; --into takes it" in invoke("import", "--dry-run").stderr


@pytest.mark.case("X13")
def test_nothing_is_written_without_a_yes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CURSOR.write(home)
    before = snapshot(home)
    result = invoke("import", "cursor")
    assert result.exit_code == 1
    assert "add --yes" in result.stderr
    assert invoke("import", "cursor", "--move", "--dry-run").exit_code == 0
    monkeypatch.setattr(edits, "is_terminal", lambda: True)
    assert invoke("import", "cursor", stdin="n\n").exit_code == 1
    assert snapshot(home) == before
    result = invoke("import", "cursor", "--move", stdin="y\nn\n")
    assert result.exit_code == 0
    kept = f"{OURS}.mcpvisor.imports"
    assert snapshot(home) == {**before, **{name: (home / name).read_bytes() for name in (str(OURS), kept)}}
    result = invoke("import", "cursor")
    assert "They are still in Cursor" in result.stderr


def test_what_cannot_be_read_is_said_and_the_rest_comes(home: Path) -> None:
    CURSOR.write(home)
    VSCODE.write(home).write_text("{")
    result = invoke("import", "--yes")
    assert result.exit_code == 0
    assert "VS Code is left out: " in result.stderr
    assert set(servers(home / OURS)) == {"github", "linear"}
    result = invoke("import", "vscode", "--yes")
    assert result.exit_code == 1
    assert "mcp.json:1: " in result.stderr


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {}, "mcpServers": {}}', '{"oops": 1}']
)
def test_our_own_file_is_not_touched_if_it_is_broken(home: Path, text: str) -> None:
    CURSOR.write(home)
    ours = home / "mine.json"
    ours.write_text(text)
    result = invoke("import", "cursor", "--into", str(ours), "--yes")
    assert result.exit_code == 1
    assert "mine.json:" in result.stderr
    assert ours.read_text() == text


def test_what_a_client_wrote_survives_a_move_and_a_connect_and_comes_back_by_undo(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("import", "cursor", "--move", "--yes")
    invoke("connect", "cursor", "--yes")
    copies = [copy.read_text() for copy in home.rglob("*.mcpvisor.bak*")]
    assert CURSOR.text in copies
    result = invoke("import", "--undo", "--yes")
    assert result.exit_code == 0
    assert "canary" not in result.output
    theirs = servers(file)
    assert theirs.pop("mcpvisor")["url"].endswith("/mcp")
    assert theirs == json.loads(CURSOR.text)["mcpServers"]
    assert servers(home / OURS) == {}


@samples
def test_undo_puts_back_every_byte_and_takes_our_entries_out(sample: Sample, home: Path) -> None:
    ours = home / OURS
    ours.parent.mkdir(parents=True)
    ours.write_text(before := '{"mcpServers": {"mine": {"command": "mine"}}}')
    file = sample.write(home)
    invoke("import", sample.client, "--move", "--yes")
    dry = invoke("import", "--undo", "--dry-run")
    assert file.read_bytes() != sample.text.encode()
    assert "canary" not in dry.output
    result = invoke("import", "--undo", "--yes")
    assert result.exit_code == 0
    assert "canary" not in result.output
    assert file.read_bytes() == sample.text.encode()
    assert ours.read_text() == before
    assert "There is no import" in invoke("import", "--undo", "--yes").stderr


def test_imports_are_undone_one_after_the_other(home: Path) -> None:
    CURSOR.write(home)
    CLAUDE_CODE.write(home)
    invoke("import", "cursor", "--move", "--yes")
    invoke("import", "claude-code", "--yes")
    invoke("import", "--undo", "--yes")
    assert set(servers(home / OURS)) == {"github", "linear"}
    invoke("import", "--undo", "--yes")
    assert servers(home / OURS) == {}
    assert (home / CURSOR.path).read_text() == CURSOR.text


def test_undo_overwrites_no_server_that_came_since_and_leaves_an_entry_that_was_changed(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("import", "cursor", "--move", "--yes")
    file.write_text('{"mcpServers": {"github": {"command": "another"}}}')
    result = invoke("import", "--undo", "--yes")
    assert result.exit_code == 1
    assert 'has a server "github" again' in result.stderr
    assert set(servers(home / OURS)) == {"github", "linear"}
    file.write_text('{"mcpServers": {}}')
    ours = json.loads((home / OURS).read_text())
    ours["mcpServers"]["linear"]["disabled"] = True
    (home / OURS).write_text(json.dumps(ours))
    result = invoke("import", "--undo", "--yes")
    assert result.exit_code == 0
    assert "linear stays in" in result.stderr
    assert set(servers(home / OURS)) == {"linear"}
    assert servers(file) == json.loads(CURSOR.text)["mcpServers"]


def test_without_the_copy_nothing_is_undone(home: Path) -> None:
    file = CURSOR.write(home)
    invoke("import", "cursor", "--move", "--yes")
    file.with_name(file.name + ".mcpvisor.bak").unlink()
    result = invoke("import", "--undo", "--yes")
    assert "the copy of what it held before the import is gone" in result.stderr
    assert set(servers(home / OURS)) == {"github", "linear"}
