"""Where values come from: what is shown holds, its origin is where it stands, and no secret is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from supervisor.config import Configuration, parse
from supervisor.config.expansion import Origin
from supervisor.config.provenance import EffectiveValue, explain_daemon, explain_server, withhold

FILE = Path("/etc/mcp/mcp.json")
ENVIRON = {"HOME": "/home/me", "KUBECONFIG": "/k", "PAT": "xy", "GITHUB_TOKEN": "correct-horse", "HOST": "mcp.example"}
DATA = EffectiveValue(key="data_dir", value="/state/mcpvisor", origin=Origin(source="derived", place="the environment"))
SECRETS = ("correct-horse", "hunter2", "Tr0ub4dor3xyz", "xy")


def configuration(document: dict[str, Any], environ: dict[str, str] | None = None, env_file: str = "") -> Configuration:
    text = json.dumps(document, indent=1)
    return parse(text, FILE, ENVIRON if environ is None else environ, read_file=lambda path: env_file)


def explained(
    entry: dict[str, Any],
    supervisor: dict[str, Any] | None = None,
    env_file: str = "",
    environ: dict[str, str] | None = None,
) -> dict[str, EffectiveValue]:
    document = {"mcpServers": {"s": entry}, "supervisor": supervisor or {}}
    environ = ENVIRON if environ is None else environ
    read = configuration(document, environ, env_file)
    assert not read.problems
    return {each.key: each for each in explain_server(read, read.servers[0], environ)}


def words(values: dict[str, EffectiveValue], key: str) -> tuple[Any, str]:
    return values[key].value, values[key].words("mcp.json", of_daemon=False)


def test_each_variable_comes_from_the_layer_that_holds() -> None:
    supervisor = {"pass_env": ["KUBECONFIG", "HOST"], "env": {"A": "all", "B": "all", "C": "all", "HOST": "all"}}
    entry = {"command": "c", "envFile": "s.env", "env": {"C": "own"}}
    values = explained(entry, supervisor, env_file="\nB=file\nC=file\n")
    assert {key: words(values, key) for key in values if key.startswith("env.")} == {
        "env.KUBECONFIG": ("/k", "KUBECONFIG of the environment"),
        "env.HOST": ("all", "mcp.json:20 supervisor.env.HOST"),
        "env.A": ("all", "mcp.json:17 supervisor.env.A"),
        "env.B": ("file", "/etc/mcp/s.env:2"),
        "env.C": ("own", "mcp.json:7"),
        "env.HOME": ("/home/me", "HOME of the environment"),
        "env.PATH": ("/usr/local/bin:/usr/bin:/bin", "default"),
    }


def test_the_deadline_of_calls_is_that_of_the_daemon_where_the_entry_has_none() -> None:
    assert words(explained({"command": "c"}), "call_timeout_s") == (60.0, "default")
    daemons = explained({"command": "c"}, {"call_timeout_s": 20})
    assert words(daemons, "call_timeout_s") == (20.0, "mcp.json:8 supervisor.call_timeout_s")
    variable = explained({"command": "c"}, environ={"MCP_TOOL_TIMEOUT": "7000"})
    assert words(variable, "call_timeout_s") == (7.0, "MCP_TOOL_TIMEOUT of the environment")
    assert words(variable, "discovery_timeout_s") == (7.0, "MCP_TOOL_TIMEOUT of the environment")


def test_a_disabled_server_is_explained_as_it_is_written() -> None:
    values = explained({"command": "c", "env": {"A": "${NOPE}"}, "oauth": {"scope": "${NOPE}"}, "disabled": True})
    assert words(values, "env.A") == ("${NOPE}", "mcp.json:5 mcpServers.s.env")


def test_nothing_of_a_fleet_is_shown_that_is_secret() -> None:
    fleet = {"engine": "rediss://ana:${WORD}@valkey.example:6379", "keys": ["${KEY}"], "node": "a"}
    environ = {"WORD": "hunter2", "KEY": "k" * 40}
    read = parse(json.dumps({"supervisor": {"fleet": fleet}}), FILE, environ)
    assert read.settings.fleet.engine == "rediss://ana:hunter2@valkey.example:6379"
    values = {each.key: each.value for each in explain_daemon(read, DATA, environ)}
    assert values["fleet.node"] == "a"
    assert values["fleet.prefix"] == "mcpvisor:"
    assert "hunter2" not in repr((values, read.settings))
    assert "kkkk" not in repr((values, read.settings))


def test_nothing_of_where_traces_go_is_shown_that_may_be_secret() -> None:
    supervisor = {
        "trace_endpoint": "https://traces.example/v1/" + "sk-" + "a" * 30,
        "trace_headers": {"x-team": "plain", "authorization": "Bearer ${TOKEN}"},
    }
    read = parse(json.dumps({"supervisor": supervisor}), FILE, {"TOKEN": "hunter2"})
    assert read.settings.trace_headers == {"x-team": "plain", "authorization": "Bearer hunter2"}
    values = {each.key: each.value for each in explain_daemon(read, DATA, {"TOKEN": "hunter2"})}
    assert (values["trace_headers.x-team"], values["trace_headers.authorization"]) == ("***", "***")
    assert "aaaa" not in values["trace_endpoint"]
    assert "hunter2" not in repr(read.settings)


def test_an_address_of_the_command_line_follows_from_it() -> None:
    read = parse("{}", FILE, {}, listen="127.0.0.1:0")
    values = {each.key: each for each in explain_daemon(read, DATA, {})}
    assert values["listen"].words("f", of_daemon=True) == "follows from --listen"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "c", "args": ["--token", "hunter2"]},
        {"command": "c", "args": ["--host=${GITHUB_TOKEN}"]},
        {"command": "c", "env": {"A_TOKEN": "hunter2"}},
        {"command": "c", "env": {"A": "${PAT}"}},
        {"command": "c", "env": {"PIN": "xy"}},
        {"command": "c", "args": ["--pin", "xy", "plain"]},
        {"command": "c", "args": ["--pin=xy", "a=b"]},
        {"command": "c", "args": ["in hunter2 words"], "env": {"PASSWORD": "hunter2"}},
        {"command": "c", "description": "with hunter2", "env": {"PASSWORD": "hunter2"}},
        {"command": "c", "envFile": "e"},
        {"url": "https://x.example/${GITHUB_TOKEN}/mcp"},
        {"url": "https://x.example/Tr0ub4dor3xyz/mcp?a=1"},
        {"url": "https://me:hunter2@x.example/"},
        {"url": "https://x.example/", "headers": {"Authorization": "Bearer hunter2"}},
        {"url": "https://x.example/", "headers": {"X": "${GITHUB_TOKEN}"}},
        {"url": "https://x.example/", "oauth": {"client_id": "c", "client_secret": "xy"}},
    ],
)
def test_no_secret_is_shown(entry: dict[str, Any]) -> None:
    values = explained(entry, env_file="MY_KEY=hunter2")
    text = json.dumps([[each.value, each.words("f", of_daemon=False)] for each in values.values()])
    assert "***" in text
    assert not [secret for secret in SECRETS if secret in text]


plain_words = st.text(alphabet="abc", min_size=1, max_size=5)
entries = st.fixed_dictionaries(
    {"command": plain_words},
    optional={
        "args": st.lists(plain_words, max_size=3),
        "env": st.dictionaries(plain_words, plain_words, max_size=3),
        "idle_timeout_s": st.integers(0, 500),
        "description": plain_words,
        "max_restarts": st.integers(0, 9),
        "restart": st.sampled_from(["permanent", "temporary"]),
    },
)


@given(entries, st.dictionaries(plain_words, plain_words, max_size=3))
def test_what_is_shown_is_what_holds_and_stands_where_it_says(entry: dict[str, Any], shared: dict[str, str]) -> None:
    document = {"mcpServers": {"s": entry}, "supervisor": {"env": shared}}
    lines = json.dumps(document, indent=1).splitlines()
    read = configuration(document)
    server = read.servers[0]
    values = {each.key: each for each in explain_server(read, server, ENVIRON)}
    held = {**asdict(server), **{f"env.{name}": value for name, value in server.env.items()}}
    held |= {"call_timeout_s": 60.0, "refresh_asleep": False, "slug": "s", "expose": "dangerous", "confirm": "none"}
    for key, each in values.items():
        expected = held.get(key, each.value)
        assert each.value == (list(expected) if isinstance(expected, tuple) else expected)
        if each.origin.source == "file":
            last = key.rpartition(".")[2]
            assert f'"{last}": ' in lines[each.origin.line - 1]
    assert {key for key in entry if key != "env"} == {
        key for key, each in values.items() if each.origin.source == "file" and "." not in key
    }


def test_what_a_server_has_not_is_that_of_the_daemon_with_its_place() -> None:
    levels = {"expose": "moderate", "confirm": "dangerous", "result_token_budget": 5000, "catalogue_max_age_s": 60}
    values = explained({"command": "c"}, levels)
    assert {key: words(values, key)[0] for key in levels} == levels
    assert all(f"supervisor.{key}" in words(values, key)[1] for key in levels)
    own = {"expose": "safe", "confirm": ["a"], "result_token_budget": {"a": 2000}, "catalogue_max_age_s": 9}
    values = explained({"command": "c", **own}, levels)
    assert [values[key].origin.place for key in own] == [f"mcpServers.s.{key}" for key in own]
    assert {key: list(v) if isinstance(v := values[key].value, tuple) else v for key in own} == own


def test_what_the_environment_of_the_daemon_sets_names_its_variable() -> None:
    environ = {
        "MCP_PROCESS_IDLE_TIMEOUT_SECONDS": "9",
        "MCPVISOR_CATALOGUE_MAX_AGE_S": "30",
        "MCP_TOOL_TIMEOUT": "7000",
    }
    values = explained({"command": "c"}, environ=environ)
    assert words(values, "idle_timeout_s") == (9.0, "MCP_PROCESS_IDLE_TIMEOUT_SECONDS of the environment")
    assert words(values, "catalogue_max_age_s") == (30.0, "MCPVISOR_CATALOGUE_MAX_AGE_S of the environment")
    assert words(values, "discovery_timeout_s") == (7.0, "MCP_TOOL_TIMEOUT of the environment")
    assert words(values, "call_timeout_s") == (7.0, "MCP_TOOL_TIMEOUT of the environment")


def test_who_may_not_read_the_file_sees_of_variables_and_headers_what_can_be_no_secret() -> None:
    env = {"WORD": "plain", "LOG_LEVEL": "debug", "PORT": "3000", "CONFIG": "/etc/x", "PIN_CODE": "1234", "KEY": "5678"}
    local = explained({"command": "c", "args": ["--verbose"], "env": {**env, "EMPTY": ""}})
    shown = {each.key: each.value for each in withhold(local.values())}
    assert shown.keys() == local.keys()
    assert {key: value for key, value in shown.items() if key in {f"env.{name}" for name in (*env, "EMPTY")}} == {
        "env.WORD": "***",
        "env.LOG_LEVEL": "debug",
        "env.PORT": "3000",
        "env.CONFIG": "/etc/x",
        "env.PIN_CODE": "***",
        "env.KEY": "***",
        "env.EMPTY": "",
    }
    assert (shown["command"], shown["args"]) == ("c", ["--verbose"])
    remote = explained({"url": "https://h.example/mcp", "headers": {"X-Own": "word", "X-Trace": "true"}})
    shown = {each.key: each.value for each in withhold(remote.values())}
    assert [shown[key] for key in ("url", "headers.X-Own", "headers.X-Trace")] == [
        "https://h.example/mcp",
        "***",
        "true",
    ]


@given(st.dictionaries(st.text("ABC", min_size=1), st.text("abc123/:-", max_size=12), max_size=5))
def test_what_is_shown_to_others_is_shown_to_the_operator_too(env: dict[str, str]) -> None:
    values = explained({"command": "c", "env": env})
    for each in withhold(values.values()):
        assert each.value in ("***", values[each.key].value)
        assert each.origin == values[each.key].origin
