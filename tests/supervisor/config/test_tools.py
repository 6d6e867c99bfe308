"""Which tools of a server are seen: our key, what other programs write for it, and what is wrong with either."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from actors.catalogue.tool_rules import NO_RULES, EntryRules, ToolRules
from actors.kit.documented import descriptions
from supervisor.config import ServerConfig
from tests.supervisor.config.test_servers import server

C = {"command": "c"}


@pytest.mark.parametrize(
    ("entry", "rules"),
    [
        ({}, NO_RULES),
        ({"tools": {}}, NO_RULES),
        ({"tools": ["*"]}, NO_RULES),
        ({"tools": ["a", "b_*"]}, ToolRules(allow=("a", "b_*"))),
        ({"tools": []}, ToolRules(allow=())),
        ({"tools": {"deny": ["a"], "_why": "dangerous"}}, ToolRules(deny=("a",))),
        (
            {"tools": {"allow": ["a"], "deny": ["b"], "rename": {"a": "c"}, "describe": {"a": "text"}}},
            ToolRules(allow=("a",), deny=("b",), rename={"a": "c"}, describe={"a": "text"}),
        ),
        ({"disabledTools": ["a"], "excludeTools": ["b"], "disabled_tools": ["c"]}, ToolRules(deny=("a", "b", "c"))),
        ({"tools": {"deny": ["a"]}, "disabledTools": ["b"]}, ToolRules(deny=("a", "b"))),
        ({"includeTools": ["a"], "enabledTools": ["b"], "enabled_tools": ["c"]}, ToolRules(allow=("a", "b", "c"))),
        ({"tools": {"allow": ["a"]}, "includeTools": ["b"]}, ToolRules(allow=("a",))),
        ({"tools": {"rename": {"a": "b"}}, "includeTools": ["a"]}, ToolRules(allow=("a",), rename={"a": "b"})),
        ({"tools": None}, NO_RULES),
        ({"disabledTools": None, "enabled_tools": None, "autoApprove": None}, NO_RULES),
    ],
)
def test_what_an_entry_says_of_its_tools(entry: dict[str, Any], rules: ToolRules) -> None:
    assert server({**C, **entry}).tools == rules
    assert server({**C, **entry, "disabled": True}).tools == rules


def test_what_other_programs_run_without_asking_needs_no_yes() -> None:
    entry = {**C, "confirm_except": ["a"], "alwaysAllow": ["b"], "autoApprove": ["c"]}
    assert server(entry).confirm_except == ("a", "b", "c")
    assert server(C).confirm_except == ()


def test_all_keys_that_name_tools_are_looked_at() -> None:
    """A key of an entry that takes patterns of tools belongs to its `tool_rules`, or its slips are never told."""
    plain = ServerConfig(name="s", command="x")
    assert plain.tool_rules is plain.tools
    taking = {name for name, text in descriptions(ServerConfig).items() if "`*` for any rest" in text}
    assert taking == {"confirm", "confirm_except", "confirm_within_s", "read_only", "result_token_budget"}
    given: dict[str, Any] = {
        "confirm": ("a",),
        "confirm_except": ("b",),
        "confirm_within_s": {"c": 1.0},
        "read_only": ("d",),
    }
    rules = structs.replace(plain, **given, result_token_budget={"e": 100}).tool_rules
    assert isinstance(rules, EntryRules)
    assert rules.beside == {**given, "confirm_within_s": ("c",), "result_token_budget": ("e",)}
