"""What the daemon's own environment sets: defaults, over which the file goes; a bad text is told by its variable. And
what of it passes on to all local servers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import Configuration, ServerConfig, launch_digest, parse
from supervisor.config.settings_reader import VARIABLES, WITHOUT_EFFECT
from supervisor.servers.deployment import deploy

FILE = Path("/etc/mcp/mcp.json")


def read(
    environ: dict[str, str],
    supervisor: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    listen: str | None = None,
) -> Configuration:
    document = {"mcpServers": {"s": {"command": "c", **(entry or {})}}, "supervisor": supervisor or {}}
    return parse(json.dumps(document), FILE, environ, listen=listen)


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("LOG_LEVEL", "WARN", "log_level", "warning"),
        ("LOG_LEVEL", " fatal ", "log_level", "error"),
        ("LOG_LEVEL", "", "log_level", "info"),
        ("DEPLOYSTACK_STATUS_SHOW_MCP_DEBUG_ROUTE", "false", "show_debug", False),
        ("DEPLOYSTACK_STATUS_SHOW_MCP_DEBUG_ROUTE", "1", "show_debug", True),
        ("MCPVISOR_CATALOGUE_MAX_AGE_S", "30", "catalogue_max_age_s", 30.0),
        ("PORT", "8080", "listen", "127.0.0.1:8080"),
        ("HOST", "0.0.0.0", "listen", "127.0.0.1:3001"),
    ],
)
def test_a_variable_sets_its_setting_unless_the_file_does(name: str, text: str, key: str, value: Any) -> None:
    assert getattr(read({name: text}).settings, key) == value
    written = {"log_level": "debug", "show_debug": True, "catalogue_max_age_s": 7.0, "listen": "127.0.0.1:1"}
    assert getattr(read({name: text}, written).settings, key) == written[key]


def test_the_idle_time_of_each_server_is_that_of_the_variable_unless_its_entry_has_one() -> None:
    environ = {"MCP_PROCESS_IDLE_TIMEOUT_SECONDS": "0"}
    assert read(environ).servers[0].idle_timeout_s == 0
    assert read(environ, entry={"idle_timeout_s": 9}).servers[0].idle_timeout_s == 9
    assert read({}).servers[0].idle_timeout_s is None


@pytest.mark.parametrize(
    ("environ", "supervisor", "entry", "seconds"),
    [
        ({}, {}, {}, 86_400),
        ({"MCPVISOR_CATALOGUE_MAX_AGE_S": "120"}, {}, {}, 120),
        ({"MCPVISOR_CATALOGUE_MAX_AGE_S": "120"}, {"catalogue_max_age_s": 600}, {}, 600),
        ({"MCPVISOR_CATALOGUE_MAX_AGE_S": "120"}, {"catalogue_max_age_s": 600}, {"catalogue_max_age_s": 30}, 30),
        ({}, {"catalogue_max_age_s": 0}, {}, 0),
    ],
)
def test_lists_of_every_server_are_read_again_after_the_time_of_the_daemon(
    environ: dict[str, str], supervisor: dict[str, Any], entry: dict[str, Any], seconds: float
) -> None:
    deployed = deploy(read(environ, supervisor, entry), key=b"k" * 16)
    assert deployed.servers["s"].settings.catalogue_max_age_s == seconds


@pytest.mark.parametrize(
    ("environ", "listen", "found"),
    [
        ({"PORT": "80", "HOST": "::1"}, None, "[::1]:80"),
        ({"PORT": "80", "HOST": "[::1]"}, None, "[::1]:80"),
        ({"PORT": "80", "HOST": "localhost"}, None, "localhost:80"),
        ({"PORT": "no port"}, "127.0.0.1:0", "127.0.0.1:0"),
    ],
)
def test_the_address_is_made_of_port_and_host_unless_an_option_says_it(
    environ: dict[str, str], listen: str | None, found: str
) -> None:
    assert read(environ, listen=listen).settings.listen == found


def test_an_address_of_the_environment_is_noted_and_so_is_what_sets_nothing() -> None:
    environ = {"PORT": "80", **dict.fromkeys(WITHOUT_EFFECT, "1")}
    notes = [str(note) for note in read(environ).notes]
    assert any("PORT of the environment sets the address" in note for note in notes)
    for name, why in WITHOUT_EFFECT.items():
        assert any(f"{name} of the environment has no effect ({why})" in note for note in notes)
    assert not any("environment" in str(note) for note in read({}).notes)


@pytest.mark.parametrize("name", ["PORT", *(variable.name for variable in VARIABLES)])
def test_a_bad_text_is_an_error_that_names_the_variable_and_shows_nothing_of_it(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} of the environment must be") as caught:
        read({name: "kitten-5"})
    assert "kitten" not in str(caught.value)
    assert f"unset {name}" in caught.value.hint


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError, match="HOST of the environment must be"):
        read({"PORT": "80", "HOST": "a b"})


@given(st.sampled_from(VARIABLES), st.text(max_size=20))
def test_whatever_a_variable_holds_it_is_taken_or_told(variable: Any, text: str) -> None:
    told = ""
    try:
        assert read({variable.name: text}).problems == ()
    except ConfigError as error:
        told = str(error)
    assert (variable.name in told) == bool(text.strip() and variable.read(text.strip()) is None)


# The deadline of other programs ---------------------------------------------------------------------------------------


def seconds_of(configuration: Configuration) -> tuple[float, float]:
    """The deadlines of a call and of a listing."""
    deployed = deploy(configuration, key=b"k" * 16)
    return deployed.rules_of("s").timeout_s, deployed.servers["s"].settings.discovery_timeout_s


@pytest.mark.parametrize(
    ("timeout", "seconds", "noted"),
    [
        (None, 60.0, ""),
        ("", 60.0, ""),
        ("120000", 120.0, ""),
        (" 7500.5 ", 7.5005, ""),
        ("5000", 5.0, ""),
        ("4999", 5.0, "counts as 5 s"),
        ("30", 5.0, "counts as 5 s"),
        ("0", 60.0, "no number of milliseconds"),
        ("-1", 60.0, "no number of milliseconds"),
        ("1e9", 60.0, "no number of milliseconds"),
        ("a minute", 60.0, "no number of milliseconds"),
        ("9" * 400, 60.0, "no number of milliseconds"),
    ],
)
def test_that_variable_is_the_deadline_of_calls_and_listings(timeout: str | None, seconds: float, noted: str) -> None:
    configuration = read({} if timeout is None else {"MCP_TOOL_TIMEOUT": timeout})
    assert seconds_of(configuration) == (seconds, seconds)
    notes = [str(note) for note in configuration.notes if "MCP_TOOL_TIMEOUT" in str(note)]
    assert len(notes) == bool(noted)
    assert all(noted in note for note in notes)


@pytest.mark.parametrize(
    ("supervisor", "entry", "seconds"),
    [
        ({}, {}, (90.0, 90.0)),
        ({"call_timeout_s": 7}, {}, (7.0, 90.0)),
        ({"call_timeout_s": 7}, {"call_timeout_s": 8}, (8.0, 90.0)),
        ({}, {"timeout": 9}, (9.0, 90.0)),
        ({}, {"call_timeout_s": 3}, (3.0, 90.0)),
        ({}, {"discovery_timeout_s": 30}, (90.0, 30.0)),
    ],
)
def test_what_the_file_says_goes_over_it(
    supervisor: dict[str, Any], entry: dict[str, Any], seconds: tuple[float, float]
) -> None:
    assert seconds_of(read({"MCP_TOOL_TIMEOUT": "90000"}, supervisor, entry)) == seconds


def test_a_fault_of_the_file_is_told_as_without_it() -> None:
    document = json.dumps({"mcpServers": {"s": ["command"], "t": {"command": "c", "discovery_timeout_s": 1}}})
    with_it = parse(document, FILE, {"MCP_TOOL_TIMEOUT": "90000"})
    assert [str(problem) for problem in with_it.problems] == [
        str(problem) for problem in parse(document, FILE, {}).problems
    ]


# What passes on -------------------------------------------------------------------------------------------------------

ENVIRON = {
    "HOME": "/home/me",
    "KUBECONFIG": "/k",
    "AWS_PROFILE": "dev",
    "AWS_REGION": "eu",
    "AWSX": "no",
    "EVIL": "() { :; }",
}


def server(supervisor: dict[str, Any], entry: dict[str, Any] | None = None) -> ServerConfig:
    (found,) = read(ENVIRON, supervisor, entry).servers
    return found


def test_variables_that_are_named_pass_to_every_local_server() -> None:
    assert server({"pass_env": ["KUBECONFIG", "NOT_SET"]}).env == {"KUBECONFIG": "/k"}
    assert server({"pass_env": ["AWS_*"]}).env == {"AWS_PROFILE": "dev", "AWS_REGION": "eu"}
    assert server({}).env == {}


def test_a_function_of_a_shell_does_not_pass() -> None:
    assert server({"pass_env": ["E*", "H*"]}).env == {"HOME": "/home/me"}


def test_variables_that_are_set_for_all_are_expanded_and_give_way_to_an_entrys_own() -> None:
    supervisor = {"pass_env": ["KUBECONFIG", "AWS_REGION"], "env": {"AWS_REGION": "us", "ROOT": "${HOME}/r"}}
    found = server(supervisor, {"env": {"ROOT": "/own"}})
    assert found.env == {"KUBECONFIG": "/k", "AWS_REGION": "us", "ROOT": "/own"}
    assert found.passed == ("KUBECONFIG",)


def test_a_remote_or_disabled_server_gets_none() -> None:
    shared = {"env": {"A": "b"}}
    assert server(shared, {"disabled": True}).env == {}
    remote = json.dumps({"mcpServers": {"s": {"url": "https://x.example"}}, "supervisor": shared})
    assert parse(remote, FILE, ENVIRON).servers[0].env == {}


def test_what_is_known_of_a_server_outlives_a_passed_variable_that_changes_but_not_one_that_is_set() -> None:
    def digest(supervisor: dict[str, Any], environ: dict[str, str]) -> str:
        document = {"mcpServers": {"s": {"command": "c"}}, "supervisor": supervisor}
        (found,) = parse(json.dumps(document), FILE, environ).servers
        return launch_digest(found, {}, key=b"k" * 32)

    passing = {"pass_env": ["DISPLAY"]}
    assert digest(passing, {"DISPLAY": ":0"}) == digest(passing, {"DISPLAY": ":1"})
    setting = {"env": {"DISPLAY": "${DISPLAY}"}}
    assert digest(setting, {"DISPLAY": ":0"}) != digest(setting, {"DISPLAY": ":1"})


def test_values_are_not_shown() -> None:
    text = json.dumps({"supervisor": {"env": {"TOKEN": "canary"}}})
    assert "canary" not in repr(parse(text, FILE, ENVIRON).settings)
