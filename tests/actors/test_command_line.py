"""Commands that are told to people."""

from __future__ import annotations

import shlex

import pytest

from actors.command_line import command
from actors.server.calls.errors import log_hint


@pytest.mark.parametrize("name", ["shop", "my shop", "a;b", "it's", "shop~0123456789abcdef"])
def test_a_name_is_one_word_of_a_shell(name: str) -> None:
    assert shlex.split(command("restart", name)) == ["mcpvisor", "restart", name]


def test_a_plain_name_stands_as_it_is() -> None:
    assert command("config", "set", "shop", "KEY", "--team", "TEAM") == "mcpvisor config set shop KEY --team TEAM"


def test_hints_are_of_that_kind() -> None:
    assert log_hint("my shop") == "`mcpvisor logs 'my shop'` shows what it says"
