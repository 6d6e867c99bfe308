"""What a newer configuration changes; and that what is said to take effect at once is read when it is needed."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.config import Settings, parse
from supervisor.servers.deployment import Deployment, deploy
from supervisor.servers.reloading.difference import LIVE, Difference, diff, in_force
from tests.fakes.deployments import KEY
from tests.sources import nodes

ROOT = Path(__file__).parents[4]

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


def read(servers: dict[str, Any], **settings: Any) -> Deployment:
    """Return the deployment of a file."""
    text = json.dumps({"mcpServers": servers, "supervisor": settings})
    return deploy(parse(text, Path("/etc/mcp.json"), {}), key=KEY)


def of(entry: dict[str, Any] | None) -> Deployment:
    return read({} if entry is None else {"a": entry})


# Servers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "relaunched"),
    [
        ({"command": "y"}, True),
        ({"command": "x", "args": ["-v"]}, True),
        ({"command": "x", "env": {"KEY": "1"}}, True),
        ({"command": "x", "idle_timeout_s": 3}, False),
        ({"command": "x", "max_line_bytes": 4096}, False),
        ({"command": "x", "max_restarts": 1}, False),
        ({"command": "x", "ask": "none"}, True),
        ({"url": "https://example.com/mcp"}, True),
    ],
)
def test_what_an_actor_is_made_of_replaces_it(entry: dict[str, Any], relaunched: bool) -> None:
    found = diff(of({"command": "x"}), of(entry))
    assert (found.replaced, found.changed, found.applicable) == (("a",), ("a",), True)
    assert bool(found.relaunched) == relaunched


@pytest.mark.parametrize(
    "more", [{"description": "It does."}, {"call_timeout_s": 3}, {"confirm": ["drop_*"]}, {"max_questions_per_min": 1}]
)
def test_what_is_read_with_each_call_replaces_nothing(more: dict[str, Any]) -> None:
    found = diff(of({"command": "x"}), of({"command": "x", **more}))
    assert (found.replaced, found.changed, found.applicable) == ((), ("a",), True)


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
    assert diff(new, new) == Difference(unchanged=tuple(sorted(new.server_names)))


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


READ_IN: dict[str, set[str]] = {
    "trust": {"servers/deployment"},
    "env": {"config/load", "config/provenance"},
    "pass_env": {"config/load"},
    "call_timeout_s": {"config/entry", "servers/deployment"},
    "log_level": {"servers/reloading/reload", "commands/run"},
    "max_question_bytes": {"service/asking/exchange"},
    "discover_limit_max": {"service/calls/meta_calls"},
    "discover_structured": {"service/calls/meta_calls"},
    "discover_token_budget": {"service/calls/meta_calls", "metatools/discovery"},
    "instructions_token_budget": {"service/introduction"},
    "first_discovery_wait_s": {"service/calls/meta_calls", "service/doors/everything", "service/gateway"},
    "max_query_chars": {"metatools/discovery"},
    "rank_by_use": {"service/calls/meta_calls"},
    "warm_up": {"servers/warm_up"},
    "warm_up_unused_s": {"servers/warm_up"},
    "client_hints": {"service/gateway"},
    "notify_catalogue_changes": {"service/gateway"},
    "list_changed_debounce_s": {"service/gateway"},
    "show_debug": {"front/pages/status"},
    "profile": {"service/doors/addresses"},
    "audit_days": {"store/audit_trail"},
    "audit_calls": {"store/audit_trail"},
    "calls_keep_arguments": {"front/wiring", "front/ui/pages"},
    "server_log_bytes": {"servers/journals/keeper"},
    "server_log_files": {"servers/journals/keeper"},
    "metrics_tools": {"house", "front/pages/metrics"},
    "profiles": {"config/load", "config/identity", "service/doors/addresses", "service/gateway"},
    "reload_on_change": {"servers/reloading/reload"},
    "reload_drain_s": {"servers/fleet/launch_messages", "servers/launches/running", "servers/reloading/reload"},
    "catalogue_max_age_s": {"config/load"},
    "expose": {"config/call_rules"},
    "confirm": {"config/call_rules"},
    "result_token_budget": {"config/call_rules", "service/gateway"},
    "memory": {"config/provenance", "servers/capacity", "commands/diagnosis/gathering"},
    "plugins": {"servers/reloading/reload", "config/provenance", "commands/diagnosis/gathering"},
    "plugin_call_timeout_s": {"plugins/hooks"},
    "plugin_discovery_timeout_s": {"plugins/hooks", "servers/reloading/reload"},
    "plugin_threads": {"servers/reloading/reload"},
    "max_kept_result_bytes": {"service/results/keeper"},
    "result_kept_s": {"service/results/keeper"},
    "identity": {
        *("config/load", "config/provenance", "config/identity", "servers/deployment", "service/realms"),
        "commands/explain",
        *("values/rows", "values/table", "servers/safety"),
        *(
            "front/admission",
            "front/pages/view",
            "front/ui/people",
            "oauth/accounts",
            "oauth/bearer/verifier",
            "service/doors/addresses",
            "service/plugins",
        ),
        "delivery/events",
    },
    "event_sinks": {"config/provenance", "delivery/delivery"},
    "webhook_origins": {"front/wiring"},
}
"""Where each live setting is read, from the newest deployment each time, or when a deployment is made. `run` sets the
level of the log at the start, `reload` afterwards; a search gets the settings of its moment as an argument."""
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
    ("servers/fleet/node", "fleet"),
    ("servers/fleet/late", "fleet"),
    ("servers/fleet/configuration", "fleet"),
    ("servers/reloading/reload", "reload_poll_s"),
}
"""Read from a deployment, which has what they were at the start: see `in_force`."""


NAMESAKES = {("service/plugins", "self.memory"), ("service/plugins", "exchange.identity")}
"""Attributes that are called as a setting is."""


@cache
def reads() -> set[tuple[str, str, str]]:
    """Where settings are read: the module, the setting, and what it is read from."""
    names = {name for name in dir(Settings) if not name.startswith("_")}
    any_of_them = re.compile(rf"\.\s*(?:{'|'.join(names)})\b")
    found = set()
    for file in sorted((ROOT / "supervisor").rglob("*.py")):
        module = str(file.relative_to(ROOT / "supervisor").with_suffix(""))
        if not any_of_them.search(file.read_text(encoding="utf-8")):
            continue  # and need not be parsed
        for node in nodes(file):
            if isinstance(node, ast.Attribute) and node.attr in names:
                found.add((module, node.attr, ast.unparse(node.value)))
    return found


def test_each_live_setting_is_read_where_it_is_said_to_be() -> None:
    settings = {(module, name) for module, name, source in reads() if source.endswith(("settings", "configured"))}
    found = {name: {module for module, read in settings if read == name} for name in LIVE}
    assert found == READ_IN


def test_where_a_live_setting_is_read_nothing_of_a_deployment_is_kept() -> None:
    """What is read in a constructor is read once; the deployment itself, or its cell, may be kept."""
    kept = []
    for module in set[str]().union(*READ_IN.values()) - {"config/load", "commands/run"}:
        tree = nodes(ROOT / "supervisor" / f"{module}.py")
        makers = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        reading = (ast.unparse(node) for maker in makers for node in ast.walk(maker) if isinstance(node, ast.Attribute))
        kept += [(module, text) for text in reading if text.endswith(".settings") or text.rpartition(".")[2] in LIVE]
    assert set(kept) <= NAMESAKES


def test_what_is_read_from_the_newest_deployment_is_live_or_known_to_be_read_once() -> None:
    cell = ("deployment.value.settings", "self._settings", "new.settings")
    ours = {module for module, _, source in reads() if source.endswith("deployment.value.settings")}
    read = {(module, name) for module, name, source in reads() if module in ours and source.endswith(cell)}
    assert {(module, name) for module, name in read if name not in LIVE} <= ONCE
