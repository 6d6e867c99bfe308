"""What `check` and `doctor` say of plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from supervisor.cli import cli
from tests.fakes.plugins import install_example


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("access", "redaction"):
        install_example(name, tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "mcp.json"


def write(file: Path, **plugins: object) -> None:
    body = {"mcpServers": {}, "supervisor": {"listen": "127.0.0.1:0", "plugins": plugins}}
    file.write_text(json.dumps(body, indent=1), encoding="utf-8")


@pytest.mark.parametrize(
    ("plugins", "code", "said"),
    [
        ({"redaction": {"patterns": ["email"]}}, 0, ""),
        ({"redacton": {}}, 78, "mcp.json:6: supervisor.plugins.redacton: no plugin of this name is installed (did you"),
        ({"access": {"rules": [{"tools": ["time"]}]}}, 78, "rule 1 has a tool without a server"),
        ({"access": {"rules": [{"tools": ["a:b"], "effect": "no"}]}}, 78, "rules[0].effect: is none of the values"),
    ],
)
def test_check_says_what_is_wrong_with_plugins(file: Path, plugins: dict[str, object], code: int, said: str) -> None:
    write(file, **plugins)
    done = CliRunner().invoke(cli, ["check", str(file)])
    assert done.exit_code == code, done.output
    assert said in done.output


def test_doctor_shows_the_versions_of_plugins(file: Path) -> None:
    write(file, access={})
    rows = json.loads(CliRunner().invoke(cli, ["doctor", "--config", str(file), "--json"]).stdout)["checks"]
    assert [row["seen"] for row in rows if row["check"] == "plugins"] == [
        "access: mcpvisor-example-access 1.0.0",
        "installed, but the configuration does not name them: redaction",
    ]
