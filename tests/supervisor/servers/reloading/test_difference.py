"""What a newer configuration changes; and that what is said to take effect at once is read when it is needed."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.config import Settings
from supervisor.servers.deployment import Deployment
from supervisor.servers.reloading.difference import LIVE, Difference, diff, in_force
from tests.fakes.deployments import read
from tests.sources import nodes

ROOT = Path(__file__).parents[4]

URL = "https://example.com/mcp"
ENTRIES: tuple[dict[str, Any] | None, ...] = (
    None,
    {"command": "x"},
    {"command": "y"},
    {"command": "x", "idle_timeout_s": 3},
    {"command": "x", "description": "Does it."},
    {"command": "x", "call_timeout_s": 3},
    {"command": "x", "disabled": True},
    {"comand": "x"},
    {"url": "https://example.com/mcp"},
    {"url": "https://example.com/mcp", "headers": {"X-Key": "hunter22hunter22"}},
)


def of(entry: dict[str, Any] | None) -> Deployment:
    return read({} if entry is None else {"a": entry})


# Servers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "replaced", "relaunched"),
    [
        ({"command": "y"}, True, True),
        ({"command": "x", "args": ["-v"]}, True, True),
        ({"command": "x", "env": {"KEY": "1"}}, True, True),
        ({"command": "x", "ask": "none"}, True, True),
        ({"url": "https://example.com/mcp"}, True, True),
        ({"command": "x", "idle_timeout_s": 3}, True, False),
        ({"command": "x", "max_line_bytes": 4096}, True, False),
        ({"command": "x", "max_restarts": 1}, True, False),
        ({"command": "x", "description": "It does."}, False, False),
        ({"command": "x", "call_timeout_s": 3}, False, False),
        ({"command": "x", "confirm": ["drop_*"]}, False, False),
        ({"command": "x", "max_questions_per_min": 1}, False, False),
        ({"command": "x", "disabled": True}, False, False),
        ({"comand": "x"}, False, False),
    ],
)
def test_what_an_actor_is_made_of_replaces_it_and_what_is_read_with_each_call_does_not(
    entry: dict[str, Any], replaced: bool, relaunched: bool
) -> None:
    for found in (diff(of({"command": "x"}), of(entry)), diff(of(entry), of({"command": "x"}))):
        assert (found.changed, found.applicable) == (("a",), True)
        assert (bool(found.replaced), bool(found.relaunched)) == (replaced, relaunched)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"command": "x"}, {"command": "x", "instances": 3}),
        ({"command": "x", "instances": 3}, {"command": "x", "instances": "per_client"}),
        ({"url": URL}, {"url": URL, "replicas": ["https://two.example/mcp"]}),
    ],
)
def test_other_instances_replace_nothing(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = of(before), of(after)
    found = diff(old, new)
    assert (found.resized, found.replaced, found.changed) == (("a",), (), ("a",))
    assert old.digests == new.digests
    changed = diff(old, of({**after, "env": {"KEY": "1"}} if "command" in after else {"url": f"{URL}/2"}))
    assert (changed.resized, changed.replaced) == ((), ("a",))


def test_environment_of_all_local_servers_is_a_part_of_each_of_them() -> None:
    servers = {"a": {"command": "x"}, "b": {"url": "https://example.com/mcp"}}
    found = diff(read(servers), read(servers, env={"KEY": "1"}))
    assert (found.replaced, found.unchanged, found.settings) == (("a",), ("b",), ("env",))


@given(*2 * [st.lists(st.sampled_from(ENTRIES), min_size=4, max_size=4)])
def test_every_name_is_in_one_place_and_there_and_back_are_opposites(
    before: list[dict[str, Any] | None], after: list[dict[str, Any] | None]
) -> None:
    old, new = (
        read({name: entry for name, entry in zip("abcd", entries, strict=True) if entry is not None})
        for entries in (before, after)
    )
    there, back = diff(old, new), diff(new, old)
    named = [*there.added, *there.removed, *there.changed, *there.unchanged]
    assert sorted(named) == sorted(old.server_names | new.server_names)
    assert (there.added, there.changed, there.replaced) == (back.removed, back.changed, back.replaced)
    assert set(there.relaunched) <= set(there.replaced) <= set(there.changed)
    assert there.applicable == (old.server_names != new.server_names or bool(there.changed))
    again = read({name: entry for name, entry in zip("dcba", after[::-1], strict=True) if entry is not None})
    assert diff(new, again) == Difference(unchanged=tuple(sorted(new.server_names))), "whatever their order"


# Settings -------------------------------------------------------------------------------------------------------------


def test_a_setting_is_either_live_or_waits_for_a_restart() -> None:
    assert set(Settings.__struct_fields__) >= LIVE
    old = read({})
    new = read({}, max_sessions=7, show_debug=False)
    found = diff(old, new)
    assert (found.settings, found.restart, found.applicable) == (("show_debug",), ("max_sessions",), True)
    kept = in_force(old, new).settings
    assert (kept.max_sessions, kept.show_debug) == (old.settings.max_sessions, False)
    assert not diff(old, read({}, max_sessions=7)).applicable


def test_another_number_of_nodes_waits_for_a_restart() -> None:
    found = diff(read({}, fleet={"nodes": 2}), read({}, fleet={"nodes": 3}))
    assert (found.restart, found.applicable) == (("fleet",), False)


ONCE = {
    ("house", "max_in_flight"),
    ("house", "rerank"),
    ("house", "tokenizer_timeout_s"),
    ("daemon", "drain_within_s"),
    ("house", "address"),
    ("front/wiring", "auth"),
    ("front/wiring", "drain_within_s"),
    ("front/ui/orders", "public_url"),
    ("front/ui/pages", "auth"),
    ("front/ui/people", "auth"),
    ("oauth/accounts", "auth"),
    ("oauth/late", "auth"),
    ("service/calls/meta_calls", "rerank"),
    ("servers/fleet/node", "fleet"),
    ("servers/fleet/late", "fleet"),
    ("servers/fleet/configuration", "fleet"),
    ("servers/reloading/reload", "reload_poll_s"),
}
"""Read from a deployment, which has what they were at the start: see `in_force`."""


AS_VALUES = {("house", "metrics_tools"), ("house", "calls_keep_arguments"), ("front/wiring", "webhook_origins")}
"""Live settings that are read where the parts are made, and asked for anew each time, by a function."""
MADE_IN = {module for module, _ in ONCE if "/" not in module} | {"front/wiring"}
NAMESAKES = {("service/plugins", "self.memory"), ("service/plugins", "exchange.identity")}
"""Attributes that are called as a setting is."""


@cache
def reads() -> set[tuple[str, str, str]]:
    """Where settings are read: the module, the setting, and what it is read from."""
    names = "|".join(name for name in dir(Settings) if not name.startswith("_"))
    read = re.compile(rf"([\w.]*(?:settings|configured))\.({names})\b")
    found = set()
    for file in (ROOT / "supervisor").rglob("*.py"):
        module = str(file.relative_to(ROOT / "supervisor").with_suffix(""))
        found |= {(module, name, source) for source, name in read.findall(file.read_text(encoding="utf-8"))}
    return found


def live_reads() -> set[tuple[str, str]]:
    """Where live settings are read: the module and the setting."""
    return {(module, name) for module, name, _ in reads() if name in LIVE}


def test_each_live_setting_is_read_and_where_parts_are_made_as_a_function_alone() -> None:
    assert {name for _, name in live_reads()} == LIVE
    assert {(module, name) for module, name in live_reads() if module in MADE_IN} == AS_VALUES


def test_where_a_live_setting_is_read_nothing_of_a_deployment_is_kept() -> None:
    """What is read in a constructor is read once; the deployment itself, or its cell, may be kept."""
    kept = []
    for module in {module for module, _ in live_reads()} - {"config/load", "commands/run"}:
        tree = nodes(ROOT / "supervisor" / f"{module}.py")
        makers = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        reading = (ast.unparse(node) for maker in makers for node in ast.walk(maker) if isinstance(node, ast.Attribute))
        kept += [(module, text) for text in reading if text.endswith(".settings") or text.rpartition(".")[2] in LIVE]
    assert set(kept) <= NAMESAKES


def test_what_is_read_from_the_newest_deployment_is_live_or_known_to_be_read_once() -> None:
    cell = ("deployment.value.settings", "self._settings", "new.settings", "configured")
    ours = {module for module, _, source in reads() if source.endswith("deployment.value.settings")}
    read = {(module, name) for module, name, source in reads() if module in ours and source.endswith(cell)}
    assert {(module, name) for module, name in read if name not in LIVE} <= ONCE
