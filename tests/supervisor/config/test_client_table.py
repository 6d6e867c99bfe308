"""The rows of the clients: where each keeps its file on each system, and what variables move it."""

from __future__ import annotations

import re

import pytest

from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import URL, ClientProgram, Fact, Machine
from supervisor.config.keys import name_fault

BY_NAME = {client.name: client for client in CLIENTS}
HOMES = {"linux": "/home/me", "darwin": "/Users/me", "win32": "C:/Users/me"}


def machine(platform: str = "linux", **environ: str) -> Machine:
    return Machine(platform=platform, environ=environ, home=HOMES[platform])


def test_every_client_has_a_name_of_its_own_that_servers_can_be_called_after() -> None:
    assert len(BY_NAME) == len(CLIENTS)
    assert [name for name in BY_NAME if name_fault(f"x-{name}")] == []


@pytest.mark.parametrize("platform", HOMES)
@pytest.mark.parametrize("client", CLIENTS, ids=BY_NAME)
def test_every_client_has_a_place_on_every_system(client: ClientProgram, platform: str) -> None:
    places = client.places(machine(platform))
    assert places
    assert all(place.startswith(HOMES[platform]) for place in places)
    assert all(folder.startswith(HOMES[platform]) for folder in client.folders(machine(platform)))
    assert client.programs or list(client.folders(machine(platform)))


@pytest.mark.parametrize("client", CLIENTS, ids=BY_NAME)
def test_every_row_says_what_is_needed(client: ClientProgram) -> None:
    assert client.remote is None or URL in client.remote.values()
    assert client.servers
    assert client.applied.endswith(".")
    assert client.afterwards == f"{client.applied} {client.then}".strip()
    assert client.afterwards.endswith(".")
    command = client.command.format(name="n", url="http://u")
    assert not command or ("n" in command and "http://u" in command)


@pytest.mark.parametrize("client", CLIENTS, ids=BY_NAME)
def test_every_fact_says_where_it_is_from(client: ClientProgram) -> None:
    facts = [fact for name in client.facts.__struct_fields__ if (fact := getattr(client.facts, name)) is not None]
    assert all(isinstance(fact, Fact) for fact in facts)
    assert [fact.source for fact in facts if not re.fullmatch(r"https://\S+|\d+\.\d+\.\d+", fact.source)] == []


@pytest.mark.parametrize("client", CLIENTS, ids=BY_NAME)
def test_what_keeps_tools_loaded_is_a_key_that_the_client_has(client: ClientProgram) -> None:
    kept = client.facts.keeps_loaded
    assert all(client.find(key) is not None for key in (kept.value if kept is not None else {}))


SUPPORT = "/Users/me/Library/Application Support"


@pytest.mark.parametrize(
    ("name", "platform", "place"),
    [
        ("claude-desktop", "linux", "/home/me/.config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", f"{SUPPORT}/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "C:/Users/me/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("vscode", "darwin", f"{SUPPORT}/Code/User/mcp.json"),
        ("cline", "linux", "/home/me/.cline/data/settings/cline_mcp_settings.json"),
        ("zed", "win32", "C:/Users/me/AppData/Roaming/Zed/settings.json"),
    ],
)
def test_a_file_that_is_not_there_yet_would_be_made_in_its_usual_place(name: str, platform: str, place: str) -> None:
    assert BY_NAME[name].places(machine(platform))[-1] == place


def test_a_packaged_claude_desktop_on_windows_reads_another_file_first() -> None:
    first, _ = BY_NAME["claude-desktop"].places(machine("win32", LOCALAPPDATA="L:"))
    assert first.startswith("L:/Packages/Claude_")


@pytest.mark.parametrize(
    ("name", "variable", "value", "place"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "/c", "/c/.claude.json"),
        ("gemini", "GEMINI_CLI_HOME", "/c", "/c/.gemini/settings.json"),
        ("cline", "CLINE_MCP_SETTINGS_PATH", "/c/x.json", "/c/x.json"),
        ("cline", "CLINE_DATA_DIR", "/c", "/c/settings/cline_mcp_settings.json"),
        ("cline", "CLINE_DIR", "/c", "/c/data/settings/cline_mcp_settings.json"),
        ("opencode", "OPENCODE_CONFIG", "/c/o.json", "/c/o.json"),
    ],
)
def test_a_variable_of_the_client_moves_its_file(name: str, variable: str, value: str, place: str) -> None:
    assert BY_NAME[name].places(machine(**{variable: value})) == [place]
    assert variable not in str(BY_NAME[name].places(machine(**{variable: ""})))


def test_the_folders_of_the_desktop_move_those_that_heed_them() -> None:
    assert BY_NAME["vscode"].places(machine(XDG_CONFIG_HOME="/x")) == ["/x/Code/User/mcp.json"]
    assert BY_NAME["vscode"].places(machine(XDG_CONFIG_HOME="relative")) == ["/home/me/.config/Code/User/mcp.json"]
    assert BY_NAME["vscode"].places(machine("win32", APPDATA="R:")) == ["R:/Code/User/mcp.json"]
