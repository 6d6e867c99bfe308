"""What people mistype: the likely command or client is named, and no message leads to a page that is not there."""

from __future__ import annotations

import ast
import re

from click.testing import CliRunner, Result

from supervisor.cli import GROUPS, cli
from supervisor.commands.logs import line
from tests.e2e.daemons import ROOT


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_every_summary_of_a_command_is_whole() -> None:
    text = " ".join(invoke("--help").stdout.split()).partition("Daemon:")[2]
    assert "..." not in text
    assert all(f" {command} " in text for commands in GROUPS.values() for command in commands)


def test_a_line_of_a_log_keeps_its_indentation() -> None:
    shown = line({"time": 0.0, "source": "stderr", "text": "\tat main (a.js:1)   x\x1b[31m\r"}).plain
    assert shown.endswith(" stderr           at main (a.js:1)   x")


def test_no_message_leads_to_a_file_that_an_installed_user_has_not_got() -> None:
    named, page = [], re.compile(r"docs/[a-z]+/[\w-]+\.md")
    for file in sorted([*(ROOT / "supervisor").rglob("*.py"), *(ROOT / "actors").rglob("*.py")]):
        if not page.search(text := file.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
        texts = {id(value) for value in statements if isinstance(value, ast.Constant)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                named += [(file.name, each) for each in page.findall(node.value)]
    assert [each for each in named if each[0] not in DOCUMENTATION] == []


DOCUMENTATION = {"events.py"}
"""Say it in the description of the API, which is a document itself."""
