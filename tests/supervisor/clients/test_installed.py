"""Which clients are here, and which of their files is read."""

from __future__ import annotations

from pathlib import Path

from supervisor.clients.installed import is_installed, user_file
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import Machine
from tests.supervisor.config.test_client_table import BY_NAME


def machine(home: Path, **environ: str) -> Machine:
    return Machine(platform="linux", environ={"PATH": "", **environ}, home=str(home))


def test_a_client_is_known_by_its_folder_its_file_or_its_program(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".claude.json").write_text("{}")
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here = machine(tmp_path, PATH=str(program.parent))
    assert [client.name for client in CLIENTS if is_installed(client, here)] == ["claude-code", "cursor", "codex"]


def test_the_file_that_is_there_is_read_else_the_usual_one_would_be_made(tmp_path: Path) -> None:
    opencode, folder = BY_NAME["opencode"], tmp_path / ".config" / "opencode"
    assert user_file(opencode, machine(tmp_path)).path == folder / "opencode.json"
    assert user_file(opencode, machine(tmp_path)).text is None
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{}")
    assert user_file(opencode, machine(tmp_path)).path == folder / "opencode.jsonc"
    assert user_file(opencode, machine(tmp_path)).text == "{}"
