"""What a configuration means, derived once, and what a newer one changes."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from actors.protocol.agreement.capabilities import NOBODY, OF_CLIENTS
from actors.transport.http.remote import HttpLimits
from supervisor.config import load
from supervisor.servers.deployment import deploy
from supervisor.servers.safety import UNKNOWN
from tests.fakes.deployments import KEY, read


def test_what_runs_what_rests_and_what_is_wrong_are_told_apart() -> None:
    found = read(
        {
            "good": {"command": "x", "description": "Does it."},
            "off": {"command": "x", "disabled": True, "description": "Rests."},
            "far": {"url": "wss://example.com/mcp"},
            "near": {"url": "https://example.com/mcp"},
            "typo": {"comand": "x"},
        }
    )
    assert list(found.servers) == ["good", "far", "near"]
    assert list(found.entries) == ["good", "off", "far", "near"]
    assert {(each.name, each.kind, each.disabled) for each in found.resting} == {
        ("off", "stdio", True),
        ("typo", "stdio", False),
    }
    assert found.server_names == {"good", "off", "far", "near", "typo"}
    assert found.described == {"good": "Does it.", "off": "Rests."}
    assert found.digests == {name: found.servers[name].digest for name in ("good", "far", "near")}
    assert found.names.servers == found.server_names


def test_a_server_has_its_own_deadline_or_that_of_the_daemon() -> None:
    found = read({"a": {"command": "x", "call_timeout_s": 5}, "b": {"command": "x"}}, call_timeout_s=7)
    assert [found.rules_of(name).timeout_s for name in ("a", "b", "unknown")] == [5, 7, 7]


def test_a_line_of_what_was_published_is_none_of_the_file(tmp_path: Path) -> None:
    given = {"x": {"NAME": "a"}}
    for name, users in (("mcp.json", {}), ("published.json", {"ana": {"values": given}})):
        (tmp_path / name).write_text(json.dumps({"supervisor": {"identity": {"users": users}} if users else {}}))
    read_so = load(tmp_path / "mcp.json", {}, published=tmp_path / "published.json")
    place = ("identity", "users", "ana", "values", "x", "NAME")
    assert (read_so.origins["", place].line, deploy(read_so, key=KEY).line_of(place)) == (1, None)
    alone = load(tmp_path / "published.json", {})
    assert deploy(alone, key=KEY).line_of(place) == 1


def test_secrets_and_placeholders_are_those_of_the_server_that_has_them() -> None:
    env = {"API_KEY": "hunter22hunter22", "TOKEN": "<your token>"}
    found = read({"a": {"command": "x", "env": env}, "b": {"command": "x"}})
    assert found.mask("a")("it was hunter22hunter22") == "it was ***"
    assert found.mask("b")("it was hunter22hunter22") == found.mask("?")("it was hunter22hunter22")
    assert (found.unset("a"), found.unset("b"), found.unset("?")) == (("TOKEN",), (), ())


def test_what_is_set_of_a_server_arrives_where_it_has_the_same_name() -> None:
    own = {"idle_timeout_s": 11, "max_line_bytes": 4096, "max_restarts": 12, "probe_interval_s": 13}
    server = read({"a": {"command": "npx", "args": ["-y", "pkg"], "cwd": "/tmp", **own}}).servers["a"]
    assert (server.settings.idle_timeout_s, server.settings.probe_interval_s) == (11, 13)
    assert (server.policy.max_restarts, server.policy.probe_interval_s) == (12, 13)
    assert server.limits.max_line_bytes == 4096
    assert (server.launch.command, server.launch.args, server.launch.cwd) == ("npx", ("-y", "pkg"), "/tmp")
    assert server.settings.installer is not None


def test_the_bounds_of_a_remote_server_arrive_where_they_have_the_same_name() -> None:
    own = {"connect_timeout_s": 2.5, "max_event_bytes": 4096, "max_line_bytes": 8192, "write_timeout_s": 3}
    limits = read({"a": {"url": "http://localhost/mcp", **own}}).servers["a"].remote_limits
    assert limits == replace(HttpLimits(), **own)
    assert read({"a": {"url": "http://localhost/mcp"}}).servers["a"].remote_limits == HttpLimits()


def test_what_a_server_may_ask_is_what_its_entry_says() -> None:
    entries = {
        "a": {"command": "x", "ask": "none"},
        "b": {
            "command": "x",
            "confirm": ["drop_*", "send"],
            "confirm_except": ["drop_table"],
            "autoApprove": ["drop_index"],
            "question_timeout_s": 7,
            "call_max_s": 1,
        },
        "c": {"command": "x", "ask": "everyone", "era": "legacy", "roots": ["/srv"]},
    }
    found = read(entries)
    a, b, c, unknown = (found.rules_of(name) for name in ("a", "b", "c", "unknown"))
    assert [each.asks for each in (a, b, c, unknown)] == [False, True, True, False]
    assert [each.asks_everyone for each in (a, b, c, unknown)] == [False, False, True, False]
    tools = ("drop_all", "send", "sender", "drop_table", "drop_index")
    assert [b.confirms(tool, UNKNOWN) for tool in tools] == [True, True, False, False, False]
    assert not a.confirms("drop_all", UNKNOWN)
    assert not unknown.confirms("drop_all", UNKNOWN)
    assert [each.question_timeout_s for each in (a, b, c, unknown)] == [300, 7, 300, 0]
    assert b.max_s == b.timeout_s
    terms = {name: found.servers[name].settings.terms for name in "abc"}
    assert [terms[name].capabilities for name in "abc"] == [NOBODY, OF_CLIENTS, OF_CLIENTS]
    assert terms["b"].only is None
    assert terms["c"].only == "legacy"
    assert json.loads(terms["c"].roots) == {"roots": [{"uri": "file:///srv", "name": "srv"}]}
