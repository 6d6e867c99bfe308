"""Entries of `mcpServers`: what becomes a server, what is a problem, and that neighbours stay."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

import msgspec
import pytest

from actors.errors import ConfigError
from supervisor.config import Configuration, ServerConfig, parse
from supervisor.config.entry import root_uri, roots_result
from supervisor.config.keys import name_fault, nearest, suggest_name
from supervisor.config.values import KINDS, MAX_LAUNCH_BYTES, MAX_PROBLEMS, MAX_STRING_BYTES, expectation

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


@pytest.mark.case("N06", "N07")
@pytest.mark.parametrize(
    ("entry", "key", "line", "message", "hint"),
    [
        (5, "", 3, "must be an object", "command"),
        ({}, "", 3, 'needs a "command" or a "url"', "program to start"),
        ({"command": ""}, ".command", 4, 'needs a "command"', "program to start"),
        ({"command": " \t"}, ".command", 4, "is blank", "program to start"),
        ({"command": "${NOWHERE:-}"}, ".command", 4, "is blank", "program to start"),
        ({"comand": "c"}, ".comand", 4, "unknown key", 'did you mean "command"?'),
        ({**C, "idleTimeoutS": 1}, ".idleTimeoutS", 5, "unknown key", 'did you mean "idle_timeout_s"?'),
        ({**C, "cold_starts": 1}, ".cold_starts", 5, "unknown key", 'top-level "supervisor" object'),
        ({**C, "zzz": 1}, ".zzz", 5, "unknown key", "mcpvisor explain SERVER"),
        ({**C, "kind": "stdio"}, ".kind", 5, "unknown key", ""),
        ({"command": 5}, ".command", 4, "must be a string", ""),
        ({**C, "args": "a b"}, ".args", 5, "must be a list of strings", ""),
        ({**C, "roots": ["/a"] * 65}, ".roots", 5, "must be a list of at most 64 strings", ""),
        ({**C, "confirm": ["a"] * 1001}, ".confirm", 5, "or a list of at most 1000 strings", ""),
        ({**C, "confirm_within_s": {"a": 1, "b": "2"}}, ".confirm_within_s.b", 7, "must be a number of seconds", ""),
        (
            {**C, "confirm_within_s": 5},
            ".confirm_within_s",
            5,
            "must be an object, each value a number",
            '{"NAME": 60}',
        ),
        ({**C, "args": ["a", 8080]}, ".args[1]", 7, "must be a string", "quotes"),
        ({**C, "env": {"A": True}}, ".env.A", 6, "must be a string", "quotes"),
        ({**C, "env": []}, ".env", 5, "must be an object of strings", ""),
        ({**C, "disabled": "no"}, ".disabled", 5, "must be true or false", ""),
        ({**C, "enabled": 1}, ".enabled", 5, "must be true or false", ""),
        ({**C, "timeout": "1m"}, ".timeout", 5, "must be a number of seconds", ""),
        ({**C, "timeout": True}, ".timeout", 5, "must be a number of seconds", ""),
        ({**C, "idle_timeout_s": -1}, ".idle_timeout_s", 5, "a number of seconds from 0 to", ""),
        ({**C, "discovery_timeout_s": 4}, ".discovery_timeout_s", 5, "a number of seconds from 5 to", ""),
        ({**C, "max_in_flight": 0}, ".max_in_flight", 5, "a whole number from 1 to", ""),
        ({**C, "max_in_flight": 1.5}, ".max_in_flight", 5, "a whole number from 1 to", ""),
        ({**C, "max_in_flight": True}, ".max_in_flight", 5, "a whole number from 1 to", ""),
        ({**C, "max_line_bytes": 1}, ".max_line_bytes", 5, "a whole number of bytes from 1024 to", ""),
        ({**C, "restart": "always"}, ".restart", 5, 'one of "permanent", "temporary", "transient"', ""),
        ({**C, "type": "pigeon"}, ".type", 5, 'must be one of "stdio"', ""),
        ({**C, "type": 5}, ".type", 5, 'must be one of "stdio"', ""),
        ({**C, "type": "http"}, ".type", 5, 'a server of this type has a "url"', "correct the type"),
        ({"url": "http://x", "type": "stdio"}, ".type", 5, 'has a "command"', "correct the type"),
        ({**C, "url": "http://x"}, ".url", 5, 'either "command" or "url"', "remove one"),
        ({**C, "serverUrl": "http://x"}, ".serverUrl", 5, 'either "command" or "url"', "remove one"),
        ({**C, "slug": "a:b"}, ".slug", 5, 'holds ":" or "|"', '"a-b"'),
        ({"url": "ftp://x"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "http://[x"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "http://x:0"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "http://x/\n"}, ".url", 4, "not an address", "http:// or https://"),
        ({"httpUrl": "x"}, ".httpUrl", 4, "not an address", "http:// or https://"),
        ({"url": "http://x", "type": "ws"}, ".url", 4, "not an address", "ws:// or wss://"),
        ({"url": "http://x", "headers": {"A B": "c"}}, '.headers["A B"]', 6, "not a name of an HTTP header", ""),
        ({"url": "http://x", "headers": {"A": "b\r\nC: d"}}, ".headers.A", 6, "holds a line break", ""),
        (
            {"url": "http://x", "headers": {"A": "\U0001f600"}},
            ".headers.A",
            6,
            "is not the value of an HTTP header",
            "ASCII",
        ),
        (
            {"url": "http://x", "headers": {"A": "\u00e9"}},
            ".headers.A",
            6,
            "is not the value of an HTTP header",
            "ASCII",
        ),
        ({"url": "ws://x", "headers": {"A": "b "}}, ".headers.A", 6, "is not the value of an HTTP header", "ASCII"),
        ({"url": "http://\U0001f600.example/"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "wss://\U0001f600.example/"}, ".url", 4, "not an address", "ws:// or wss://"),
        ({"url": "http://a..b/"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "http://256.1.1.1/"}, ".url", 4, "not an address", "http:// or https://"),
        ({"url": "http://a b/"}, ".url", 4, "not an address", "http:// or https://"),
        ({"command": "${NOPE}"}, ".command", 4, "variable NOPE is not set", "NOPE:-default"),
        ({**C, "args": ["${workspaceFolder}"]}, ".args[0]", 6, "${workspaceFolder}", "absolute path"),
        ({**C, "env": {"A": "${input:tok}"}}, ".env.A", 6, "${input}", "environment variable"),
        ({"command": "a\nb"}, ".command", 4, "holds a line break", "file"),
        ({"command": "a\0b"}, ".command", 4, "holds a NUL character", "file"),
        ({**C, "args": ["a\nb"]}, ".args[0]", 6, "holds a line break", "file"),
        ({**C, "args": [LONG]}, ".args[0]", 6, "longer than 131071 bytes", "file"),
        ({**C, "args": ["x" * 100_000] * 11}, "", 3, f"over {MAX_LAUNCH_BYTES} bytes", "file"),
        ({**C, "env": {"A": "a\0"}}, ".env.A", 6, "holds a NUL character", "file"),
        ({**C, "env": {"A B": "a"}}, '.env["A B"]', 6, "cannot have this name", "blanks"),
        ({**C, "env": {"A=B": "a"}}, '.env["A=B"]', 6, "cannot have this name", "blanks"),
        ({**C, "cwd": "\0"}, ".cwd", 5, "holds a NUL character", "file"),
        ({**C, "envFile": 5}, ".envFile", 5, "must be a string", ""),
        ({**C, "envFile": "no.env"}, ".envFile", 5, "No such file", "check path"),
        ({**C, "envFile": "bad.env"}, ".envFile", 5, "NAME=value line (line 2 of it)", "#"),
        ({**C, "envFile": "${NOPE}"}, ".envFile", 5, "NOPE is not set", "set NOPE"),
        ({**C, "envFile": "\0"}, ".envFile", 5, "holds a NUL character", "remove it"),
    ],
)
def test_a_problem_of_an_entry_says_line_key_and_what_to_do(
    entry: Any, key: str, line: int, message: str, hint: str
) -> None:
    configuration = parse_entry(entry, {"/etc/mcp/bad.env": "A=1\ncanary"})
    (problem,) = configuration.problems
    assert configuration.servers == ()
    assert (problem.path, problem.server) == (str(FILE), "s")
    assert problem.key == f"mcpServers.s{key}"
    assert problem.line == line
    assert message in problem.message
    assert hint in problem.hint


def test_all_problems_of_an_entry_are_reported_and_its_neighbours_stay() -> None:
    text = """{"mcpServers": {
      "good": {"command": "c"},
      "bad": {"comand": "x",
              "idle_timeout_s": "x",
              "args": [1]},
      "also good": {"url": "https://x"}}}"""
    configuration = parse_text(text)
    assert [server.name for server in configuration.servers] == ["good", "also good"]
    assert [(problem.line, problem.key) for problem in configuration.problems] == [
        (3, "mcpServers.bad.comand"),
        (4, "mcpServers.bad.idle_timeout_s"),
        (5, "mcpServers.bad.args[0]"),
    ]


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


@pytest.mark.case("X12")
@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ({"command": "npx", "args": ["-y", "pkg@latest"]}, "args", "no fixed version"),
        ({"command": "/usr/bin/npx", "args": ["-y", "@scope/pkg"]}, "args", "no fixed version"),
        ({"command": "uvx", "args": ["pkg"]}, "args", "no fixed version"),
    ],
)
def test_what_is_allowed_but_perhaps_not_meant_is_a_note(entry: Any, key: str, words: str) -> None:
    configuration = parse_entry(entry)
    (note,) = configuration.notes
    assert (note.key, note.line, note.server) == (f"mcpServers.s.{key}", 4 + (key == "args"), "s")
    assert words in note.message
    assert len(configuration.servers) == 1


@pytest.mark.case("X12")
@pytest.mark.parametrize("package", ["pkg@1.2.3", "@scope/pkg@1.2.3", "pkg==1.2"])
def test_a_pinned_package_is_not_noted(package: str) -> None:
    assert parse_entry({"command": "npx", "args": ["-y", package]}).notes == ()


@pytest.mark.parametrize("name", ["a", "A b", "a.b-c_d", "_x", "9", "x" * 64])
def test_a_name_that_cannot_confuse_paths_is_accepted(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.case("L14")
@pytest.mark.parametrize(
    ("name", "fault", "suggested"),
    [
        ("", "empty", "server"),
        ("x" * 65, "longer than 64", "x" * 64),
        ("a:b", 'holds ":"', "a-b"),
        ("a|b", 'holds ":" or "|"', "a-b"),
        ("../x", "ASCII letters", "x"),
        ("@scope/pkg", "ASCII letters", "pkg"),
        ("github.com/acme/maps-mcp", "ASCII letters", "maps-mcp"),
        (" a", "ASCII letters", "a"),
        ("a ", "ASCII letters", "a"),
        ("a\x00b", "ASCII letters", "a-b"),
        ("a\n", "ASCII letters", "a"),
        ("..", "ASCII letters", "server"),
        ("dеlete", "ASCII letters", "d-lete"),  # noqa: RUF001 - the second letter is Cyrillic on purpose
    ],
)
def test_another_name_is_a_problem_with_a_suggestion_that_works(name: str, fault: str, suggested: str) -> None:
    (problem,) = parse_text(json.dumps({"mcpServers": {name: C}}, indent=1)).problems
    assert problem.line == 3
    assert problem.key.startswith("mcpServers")
    assert fault in problem.message
    assert f'"{suggested}"' in problem.hint
    assert suggest_name(name) == suggested
    assert name_fault(suggested) is None


def test_a_word_without_a_likeness_has_no_suggestion() -> None:
    assert nearest("qqqq", ["command", "args"]) is None
    assert nearest("ARGS", ["command", "args"]) == "args"


def test_a_setting_of_a_type_that_has_no_words_is_a_bug_of_ours() -> None:
    with pytest.raises(TypeError, match="no configuration key has the type"):
        expectation(msgspec.inspect.AnyType())


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
