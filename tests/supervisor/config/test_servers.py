"""Entries of `mcpServers`: what becomes a server, what is a problem, and that neighbours stay."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import Configuration, ServerConfig, parse
from supervisor.config.entry import root_uri, roots_result
from supervisor.config.keys import name_fault, nearest, suggest_name
from supervisor.config.values import KINDS, MAX_LAUNCH_BYTES, MAX_PROBLEMS, MAX_STRING_BYTES

ENVIRON = {"HOME": "/home/me", "TOKEN": "canary-secret"}
FILE = Path("/etc/mcp/mcp.json")


def no_file(path: PurePath) -> str:
    raise ConfigError("cannot read the file: No such file or directory", path=str(path), hint="check path")


def parse_text(text: str, files: dict[str, str] | None = None) -> Configuration:
    def read_file(path: PurePath) -> str:
        return files[str(path)] if files and str(path) in files else no_file(path)

    return parse(text, FILE, ENVIRON, read_file=read_file)


def parse_entry(entry: Any, files: dict[str, str] | None = None) -> Configuration:
    """Return the configuration of one entry `s`, one key per line: the first key of the entry is on line 4."""
    return parse_text(json.dumps({"mcpServers": {"s": entry}}, indent=1), files)


def server(entry: Any, files: dict[str, str] | None = None) -> ServerConfig:
    configuration = parse_entry(entry, files)
    assert [str(problem) for problem in configuration.problems] == []
    (found,) = configuration.servers
    return found


def test_an_entry_with_a_command_alone_has_the_documented_defaults() -> None:
    assert server({"command": "c"}) == ServerConfig(name="s", command="c")


def test_every_setting_beside_the_command_is_taken_over() -> None:
    entry = {
        "command": "${HOME}/bin/c",
        "args": ["-t", "${TOKEN}", "${NOPE:-d}"],
        "env": {"T": "${env:TOKEN}", "PORT": 80, "PEM": "a\nb"},
        "cwd": "sub",
        "slug": "other",
        "description": "text",
        "idle_timeout_s": 0,
        "call_timeout_s": 5,
        "restart": "permanent",
        "max_queued": 0,
    }
    assert server(entry) == ServerConfig(
        name="s",
        command="/home/me/bin/c",
        args=("-t", "canary-secret", "d"),
        env={"T": "canary-secret", "PORT": "80", "PEM": "a\nb"},
        cwd="/etc/mcp/sub",
        slug="other",
        description="text",
        idle_timeout_s=0.0,
        call_timeout_s=5.0,
        restart="permanent",
        max_queued=0,
    )
    assert server(entry).path_name == "other"


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"command": "c"}, "stdio"),
        ({"url": "https://x.example/mcp"}, "http"),
        ({"url": "wss://x.example/mcp"}, "websocket"),
        ({"url": "http://[::1]:80/mcp", "type": "sse"}, "sse"),
        *(({"command": "c", "type": word}, kind) for word, kind in KINDS.items() if kind == "stdio"),
        *(({"url": "http://x", "type": word}, kind) for word, kind in KINDS.items() if kind in ("http", "sse")),
        *(({"url": "ws://x", "transport": word}, kind) for word, kind in KINDS.items() if kind == "websocket"),
    ],
)
def test_the_kind_of_a_server_is_written_or_follows_from_command_and_url(entry: Any, kind: str) -> None:
    assert server(entry).kind == kind


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({"serverUrl": "https://x/mcp"}, "url", "https://x/mcp"),
        ({"httpUrl": "https://x/mcp"}, "url", "https://x/mcp"),
        ({"command": "c", "timeout": 90}, "call_timeout_s", 90.0),
        ({"command": "c", "timeout": 600000}, "call_timeout_s", 600.0),
        ({"command": "c", "timeout": 90, "call_timeout_s": 5}, "call_timeout_s", 5.0),
        ({"command": "c", "enabled": False}, "disabled", True),
        ({"command": "c", "enabled": True}, "disabled", False),
        ({"command": "c", "enabled": True, "disabled": True}, "disabled", True),
        ({"command": "~/c", "cwd": "~/w"}, "command", "/home/me/c"),
        ({"command": "c", "cwd": "~/w"}, "cwd", "/home/me/w"),
        ({"command": "c", "cwd": None}, "cwd", None),
        ({"url": "https://x", "headers": {"A": "Bearer ${TOKEN}"}}, "headers", {"A": "Bearer canary-secret"}),
    ],
)
def test_what_other_programs_write_means_the_same_here(entry: Any, field: str, value: Any) -> None:
    assert getattr(server(entry), field) == value


C = {"command": "c"}
LONG = "x" * (MAX_STRING_BYTES + 1)


@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ({"confirm": ["a"] * 1001}, ".confirm", "or a list of at most 1000 strings"),
        ({"tools": ["a"] * 1001}, ".tools", "must be a list of at most 1000 strings"),
        ({"tools": {"describe": {"a": "x" * 16385}}}, ".tools.describe.a", "is longer than 16384"),
        ({"values": {f"X{number}": {} for number in range(101)}}, ".values", "more than 100 values"),
        ({"args": [f"${{user:X{number}}}" for number in range(101)]}, "", "more than 100 values"),
        ({"args": ["x" * (MAX_STRING_BYTES + 1)]}, ".args[0]", "longer than 131071 bytes"),
        ({"args": ["x" * 100_000] * 11}, "", f"over {MAX_LAUNCH_BYTES} bytes"),
    ],
)
def test_too_much_of_anything_is_a_problem(entry: dict[str, Any], key: str, words: str) -> None:
    (problem,) = parse_entry({"command": "c", **entry}).problems
    assert problem.key == f"mcpServers.s{key}"
    assert words in problem.message


def test_a_hostile_entry_does_not_fill_the_memory_with_its_problems() -> None:
    configuration = parse_entry({"command": "c", "args": [0] * 1000, "zzz": 1})
    assert len(configuration.problems) == MAX_PROBLEMS
    assert configuration.servers == ()


def test_without_a_home_a_tilde_is_a_problem_of_its_key() -> None:
    configuration = parse('{"mcpServers": {"s": {"command": "c",\n"cwd": "~/x"}}}', FILE, {}, read_file=no_file)
    (problem,) = configuration.problems
    assert (problem.line, problem.key) == (2, "mcpServers.s.cwd")
    assert "HOME is not set" in problem.message


def test_a_disabled_entry_needs_no_variables_and_no_env_file() -> None:
    found = server({"command": "${NOPE}", "envFile": "no.env", "disabled": True})
    assert (found.disabled, found.command) == (True, "${NOPE}")


def test_an_env_file_goes_below_the_env_of_the_entry() -> None:
    files = {"/etc/mcp/x.env": "A=file\nB=file"}
    assert server({**C, "envFile": "x.env", "env": {"A": "entry"}}, files).env == {"A": "entry", "B": "file"}


@pytest.mark.case("N07")
def test_no_value_of_the_file_or_the_environment_is_in_any_message_or_repr() -> None:
    secret = "canary-secret"
    entries: dict[str, Any] = {
        "a": {"command": secret, "args": [secret, f"{secret}\n", 5], "env": {"A": secret, "B": [secret]}},
        "b": {
            "command": "c",
            "args": [f"{secret}\n", "${TOKEN}\0"],
            "env": {"A": secret + "\0", "B": "${NOPE}" + secret},
        },
        "c": {"url": f"ftp://{secret}", "headers": {"A": secret}},
        "d": {"url": "http://x", "headers": {"A": "${TOKEN}\n", "B": f"${{{secret}:-{secret}}}"}},
        "e": {"command": "c", "restart": secret, "type": secret, "disabled": secret, "timeout": secret},
        "f": {"command": "c", "env": {"A": "${TOKEN}", "B": f"${{{secret} {secret}}}"}, "envFile": "f.env"},
        "g": {"command": "c", "envFile": "f.env"},
        "h": {"command": f"{secret} x", "args": [secret], "env": {"A": secret}, "tools": [secret]},
    }
    configuration = parse_text(json.dumps({"mcpServers": entries}), {"/etc/mcp/f.env": f"A=1\n{secret}"})
    assert {problem.server for problem in configuration.problems} == set("abcdefg")
    assert [server.name for server in configuration.servers] == ["h"]
    shown = [str(each) + str(each.data()) for each in (*configuration.problems, *configuration.notes)]
    shown += [repr(configuration.servers)]
    assert not [text for text in shown if secret in text]


@pytest.mark.parametrize("name", ["a", "A b", "a.b-c_d", "_x", "9", "x" * 64])
def test_a_name_that_cannot_confuse_paths_is_accepted(name: str) -> None:
    assert name_fault(name) is None


@given(st.text(max_size=80))
def test_the_name_that_is_suggested_for_another_one_is_accepted(name: str) -> None:
    assert name_fault(suggest_name(name)) is None


def test_a_word_without_a_likeness_has_no_suggestion() -> None:
    assert nearest("qqqq", ["command", "args"]) is None
    assert nearest("ARGS", ["command", "args"]) == "args"


def test_roots_are_uris_of_directories() -> None:
    written = ["${HOME}/a b", "project", "/srv", "file:///x%20y", "~/docs"]
    assert server({"command": "c", "roots": written}).roots == (
        "file:///home/me/a%20b",
        "file:///etc/mcp/project",
        "file:///srv",
        "file:///x%20y",
        "file:///home/me/docs",
    )


def test_a_root_that_is_no_directory_is_a_problem_with_its_place() -> None:
    (problem,) = parse_entry({"command": "c", "roots": ["/a", "https://example.com"]}).problems
    assert "mcpServers.s.roots[1]: a root is a directory, or a URI that begins with file://" in str(problem)
    with pytest.raises(ConfigError, match="absolute"):
        root_uri("a", PurePath())


def test_roots_are_told_with_the_names_of_their_directories() -> None:
    assert roots_result(("file:///srv/a%20b/", "file:///")) == {
        "roots": [{"uri": "file:///srv/a%20b/", "name": "a b"}, {"uri": "file:///", "name": "/"}]
    }


def test_a_secret_in_an_address_is_hidden_and_what_is_none_is_not() -> None:
    mask = server({"url": "https://maps.example/s/a1b2c3d4e5f6a7/mcp?key=k-e-y-1&region=eu-west&x=%2Fa%2Fb"}).mask()
    assert mask("a1b2c3d4e5f6a7 k-e-y-1 eu-west mcp maps.example /a/b") == "*** *** eu-west mcp maps.example /a/b"
    assert server({"command": "c"}).mask()("c") == "c"
    broken = msgspec.structs.replace(server({"url": "https://maps.example"}), url="https://[maps/s-e-c-r-e-t")
    assert broken.mask()("maps") == "maps", "no address, of which there are no parts"
