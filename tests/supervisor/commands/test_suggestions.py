"""What people mistype: the likely command or client is named, and no message leads to a page that is not there."""

from __future__ import annotations

import ast
import re

import pytest
from click.testing import CliRunner, Result

from supervisor.cli import GROUPS, cli
from supervisor.commands.edits import find_client
from supervisor.commands.logs import line
from supervisor.daemon_client.client import base_url
from tests.e2e.daemons import ROOT


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stauts",), "did you mean status?"),
        (("Status",), "did you mean status?"),
        (("qqqq",), "mcpvisor --help lists them"),
        (("token", "lst"), "Did you mean 'list'?"),
    ],
)
def test_a_mistyped_command_gets_the_likely_one(arguments: tuple[str, ...], said: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude", "claude-code or claude-desktop"),
        ("VS Code", "vscode or vscode-insiders"),
        ("cursr", "did you mean cursor?"),
        ("codex-cli", "did you mean codex?"),
        ("qqqq", "known are claude-code"),
    ],
)
def test_a_mistyped_client_gets_the_likely_ones(name: str, said: str) -> None:
    result = invoke("connect", name, "--dry-run")
    assert result.exit_code == 2
    assert said in result.stderr
    assert find_client("cursor").name == "cursor"


def test_every_summary_of_a_command_is_whole() -> None:
    text = " ".join(invoke("--help").stdout.split()).partition("Daemon:")[2]
    assert "..." not in text
    assert all(f" {command} " in text for commands in GROUPS.values() for command in commands)


@pytest.mark.parametrize(
    "address", ["http://h:1/ui", "http://h:1/ui/", "http://h:1/ui/servers/a?x=1#y", "h:1/ui/mcp", "http://h:1/mcp/"]
)
def test_the_address_of_a_page_is_one_of_the_daemon(address: str) -> None:
    assert base_url(address) == "http://h:1"
    assert base_url(address.replace("h:1", "h:1/prefix")) == "http://h:1/prefix"


def test_a_line_of_a_log_keeps_its_indentation() -> None:
    shown = line({"time": 0.0, "source": "stderr", "text": "\tat main (a.js:1)   x\x1b[31m\r"}).plain
    assert shown.endswith(" stderr           at main (a.js:1)   x")


def test_no_message_leads_to_a_file_that_an_installed_user_has_not_got() -> None:
    named = []
    for file in sorted([*(ROOT / "supervisor").rglob("*.py"), *(ROOT / "actors").rglob("*.py")]):
        tree = ast.parse(file.read_text())
        statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
        texts = {id(value) for value in statements if isinstance(value, ast.Constant)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                named += [(file.name, each) for each in re.findall(r"docs/[a-z]+/[\w-]+\.md", node.value)]
    assert [each for each in named if each[0] not in DOCUMENTATION] == []


DOCUMENTATION = {"events.py"}
"""Say it in the description of the API, which is a document itself."""
