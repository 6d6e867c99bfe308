"""Which tools surely only read: levels, rules and pins, in every combination."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.trust import Standing, Trust
from actors.kit import Latest
from actors.principal import LOCAL
from actors.search.index import Index
from supervisor.config import ServerConfig
from supervisor.servers.safety import NotReadOnly, SafetyRules
from tests.fakes.deployments import deployment
from tests.fakes.kept_audit import KeptAudit
from tests.fakes.tool_catalogue import entry

HINTS: tuple[dict[str, bool], ...] = (
    {},
    {"readOnlyHint": True},
    {"readOnlyHint": False},
    {"readOnlyHint": True, "destructiveHint": True},
)
NAMES = ("read_file", "frobnicate", "write_file", "delete_file", "read_and_delete")
"""What reads by its words, what says nothing, what writes, what destroys."""
LEVELS = ("none", "safe", "moderate", "dangerous")


def rules(
    name: str,
    hints: dict[str, Any],
    standing: Standing | None = None,
    *,
    daemon: dict[str, Any] | None = None,
    **members: Any,
) -> SafetyRules:
    """Return what holds for the tool of a server with these members in its entry."""
    listed = entry("s", {"name": name, "description": "Does it.", "annotations": hints})
    listed = replace(listed, standing=standing or Standing())
    cell = deployment(ServerConfig(name="s", command="x", **members), **(daemon or {}))
    return SafetyRules(cell, Latest(Catalogue(entries={"s": listed}, index=Index.empty())))


@pytest.mark.parametrize(
    ("name", "hints", "members", "why"),
    [
        ("read_file", {"readOnlyHint": True}, {}, None),
        ("read_file", {}, {}, "undeclared"),
        ("read_file", {"readOnlyHint": False}, {}, "undeclared"),
        ("frobnicate", {"readOnlyHint": True}, {}, "unworded"),
        ("write_file", {"readOnlyHint": True}, {}, "unworded"),
        ("delete_file", {"readOnlyHint": True}, {}, "destructive"),
        ("read_file", {"readOnlyHint": True, "destructiveHint": True}, {}, "destructive"),
        ("read_file", {"readOnlyHint": True, "requiresConfirmation": True}, {}, "destructive"),
        ("frobnicate", {}, {"read_only": ("frob*",)}, None),
        ("read_file", {"readOnlyHint": True}, {"read_only": ()}, "unnamed"),
        ("delete_file", {"readOnlyHint": True}, {"read_only": ("*",)}, "destructive"),
        ("read_file", {"readOnlyHint": True}, {"confirm": ("read_*",), "read_only": ("*",)}, "confirmed"),
        ("read_file", {"readOnlyHint": True}, {"confirm": "safe"}, "confirmed"),
        ("read_file", {"readOnlyHint": True}, {"confirm": "safe", "confirm_except": ("read_file",)}, None),
    ],
)
def test_the_reason_is_the_first_that_there_is(
    name: str, hints: dict[str, Any], members: dict[str, Any], why: str | None
) -> None:
    assert rules(name, hints, **members).doubt(LOCAL, "s", name) == why


@given(
    name=st.sampled_from(NAMES),
    hints=st.sampled_from(HINTS),
    trust=st.sampled_from(("open", "notice", "strict")),
    pinned=st.booleans(),
    level=st.sampled_from(LEVELS),
    confirms=st.booleans(),
    named=st.sampled_from((None, (), ("read_*",), ("*",))),
)
def test_of_all_levels_rules_and_pins_each_can_refuse_and_none_alone_lets_through(
    name: str,
    hints: dict[str, Any],
    trust: Trust,
    pinned: bool,
    level: str,
    confirms: bool,
    named: tuple[str, ...] | None,
) -> None:
    standing = Standing(trust, unpinned=frozenset() if pinned else frozenset({name}))
    members = {"confirm": (name,) if confirms else (), "read_only": named}
    known = rules(name, hints, standing, daemon={"confirm": level}, **members)
    harmless = "delete" not in name and not hints.get("destructiveHint")
    says_so = hints.get("readOnlyHint") is True and name == "read_file"
    listed = named is not None and (named == ("*",) or (bool(named) and name.startswith("read_")))
    asked = known.confirms(LOCAL, "s", name)
    runs = pinned and harmless and not asked and (says_so if named is None else listed)
    assert (known.doubt(LOCAL, "s", name) is None) == runs


def test_what_no_list_has_does_not_surely_read() -> None:
    cell = deployment(ServerConfig(name="s", command="x", read_only=("*",)))
    assert SafetyRules(cell, Latest(Catalogue(index=Index.empty()))).doubt(LOCAL, "s", "read_file") == "unlisted"


def test_a_refusal_names_the_other_tool_and_is_in_the_audit() -> None:
    error, audit = NotReadOnly("s", "add", "s:add", "undeclared"), KeptAudit()
    error.record(audit)
    assert "its server does not declare that it only reads; nothing was called" in error.message
    assert error.message.endswith("Call execute_mcp_tool with the same tool_path and arguments")
    assert error.data() == {
        "type": "not_read_only",
        "outcome": "not_sent",
        "retryable": False,
        "server": "s",
        "reason": "undeclared",
        "instead": "execute_mcp_tool",
    }
    assert audit.notes == [("tool.refuse", "s:add", "refused", "not surely read-only")]
