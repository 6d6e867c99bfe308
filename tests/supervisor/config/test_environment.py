"""What the daemon's own environment sets: defaults, over which the file goes; a bad text is told by its variable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import Configuration, parse
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
