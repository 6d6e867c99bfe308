"""The file as a whole: what stops the start, what does not, and settings of the daemon."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.config import Configuration, ServerConfig, Settings, load, parse
from supervisor.config.address import split_address
from supervisor.config.file import MAX_FILE_BYTES

FILE = Path("/etc/mcp/mcp.json")


def no_file(path: PurePath) -> str:
    raise ConfigError("cannot read the file", path=str(path), hint="check path")


def parse_text(text: str, environ: dict[str, str] | None = None) -> Configuration:
    return parse(text, FILE, environ or {}, read_file=no_file)


def outcome(text: str) -> Configuration | ConfigError:
    try:
        return parse_text(text)
    except ConfigError as error:
        return error


words = st.sampled_from(
    [
        "mcpServers",
        "servers",
        "supervisor",
        "command",
        "args",
        "env",
        "url",
        "type",
        "timeout",
        "listen",
        "a",
        "A:b",
        "",
    ]
)
trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["c", "${A}", "${", "~/", "http://[", "\0", "stdio", ":1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@given(st.text() | trees.map(json.dumps))
def test_any_text_gives_a_configuration_or_a_config_error_with_a_line(text: str) -> None:
    match outcome(text):
        case ConfigError(path=path, line=int(line)):
            assert path == str(FILE)
            assert line >= 1
        case Configuration(servers=servers, problems=problems):
            broken = {problem.server for problem in problems}
            assert None not in broken
            assert not broken & {server.name for server in servers}
            assert all(problem.line and problem.key for problem in problems)
        case other:
            raise AssertionError(other)


@pytest.mark.case("I19")
def test_an_empty_object_gives_the_defaults_and_a_note() -> None:
    configuration = parse_text("{}")
    assert (configuration.settings, configuration.servers, configuration.path) == (Settings(), (), FILE)
    assert [note.message for note in configuration.notes] == ["there are no servers"]
    assert configuration.settings.address[0] == "127.0.0.1"


def test_settings_of_the_daemon_are_taken_over() -> None:
    text = """{"mcpServers": {"a": {"command": "c"}}, "$schema": "x", "_comment": "x", "inputs": [], "supervisor": {
      "// why": "x", "listen": "[::1]:0", "data_dir": "~/${D}", "allowed_hosts": ["h"], "drain_s": 1, "log_level":
      "debug"}}"""
    configuration = parse_text(text, {"HOME": "/home/me", "D": "data"})
    assert configuration.settings == Settings(
        listen="[::1]:0", data_dir="/home/me/data", allowed_hosts=("h",), drain_s=1.0, log_level="debug"
    )
    assert configuration.settings.address == ("::1", 0)
    assert configuration.notes == ()


def test_both_sections_are_merged_in_order() -> None:
    configuration = parse_text(
        '{"servers": {"b": {"command": "c"}}, "mcpServers": {"a": {"command": "c"}, "_x": "no"}}'
    )
    assert configuration.servers == (ServerConfig(name="a", command="c"), ServerConfig(name="b", command="c"))


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:3001", ("127.0.0.1", 3001)), ("localhost:0", ("localhost", 0)), ("[::1]:80", ("::1", 80))],
)
def test_an_address_is_split_into_host_and_port(listen: str, address: tuple[str, int]) -> None:
    assert split_address(listen) == address


@pytest.mark.parametrize("listen", ["", "x", ":1", "x:", "x:y", "x:-1", "x:65536", "::1:80", "[]:1", "a b:1", "x:٣"])
def test_another_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match=r"host|port|brackets"):
        split_address(listen)


def test_a_file_is_loaded_with_its_env_file(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "c", "envFile": "x.env"}}}')
    (tmp_path / "x.env").write_text("A=1")
    configuration = load(file, {})
    assert configuration.servers == (ServerConfig(name="a", command="c", env={"A": "1"}),)


@pytest.mark.case("D06", "D07")
@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", 1, "empty"),
        (b'{\n"a": "\xff"}', 2, "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), 1, "not UTF-8"),
        (b"\0" * 10, 1, "expected a value"),
        (b" " * (MAX_FILE_BYTES + 1), None, "over 4194304 bytes"),
        (None, None, "No such file"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    tmp_path: Path, data: bytes | None, line: int | None, words: str
) -> None:
    file = tmp_path / "mcp.json"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert (caught.value.path, caught.value.line) == (str(file), line)
    assert words in caught.value.message
    assert caught.value.hint


def test_paths_start_at_the_directory_of_the_file_whichever_way_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"command": "c", "cwd": "below", "roots": [".", "below"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in (Path("mcp.json"), tmp_path / "mcp.json"):
        (server,) = load(path, {}).servers
        assert server.cwd == str(tmp_path / "below")
        assert server.roots == (tmp_path.as_uri(), (tmp_path / "below").as_uri())


def test_a_directory_and_a_path_with_nul_are_refused(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "this is a directory"), (tmp_path / "a\0b", "cannot read the file")):
        with pytest.raises(ConfigError, match=said):
            load(path, {})


@pytest.mark.case("D06")
def test_a_pipe_that_nobody_writes_to_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path / "pipe", "this is a pipe"), (Path("/dev/zero"), "this is a device")):
        with pytest.raises(ConfigError, match=f"{said}, not a file"):
            load(path, {})


OF_A_CLIENT = """{"numStartups": 3,
 "zzz": 1,
 "projects": {"/home/me/a": {"mcpServers": {"local": {"command": "c"}}}},
 "mcpServers": {"fs": {"command": "c"}}}"""


@pytest.mark.parametrize(
    "name", [".claude.json", "Downloads/claude_desktop_config.json", ".gemini/settings.json", ".kiro/settings/mcp.json"]
)
def test_of_the_settings_file_of_a_known_client_the_servers_are_taken_which_is_said(name: str) -> None:
    configuration = parse(OF_A_CLIENT, Path("/home/me") / name, {}, read_file=no_file)
    assert [server.name for server in configuration.servers] == ["fs"]
    (note,) = configuration.notes
    assert 'only "mcpServers" is read of it' in note.message
    assert 'single projects, in "projects"' in note.hint
    assert "`mcpvisor import " in note.hint


def test_a_clients_file_that_has_servers_alone_is_said_to_be_one_too() -> None:
    for more in ("", ', "zzz": {}'):
        text = '{"mcpServers": {"fs": {"command": "c"}}' + more + "}"
        configuration = parse(text, Path("/home/me/.claude.json"), {}, read_file=no_file)
        (note,) = configuration.notes
        assert note.hint == "`mcpvisor import claude-code` takes them over"


@pytest.mark.parametrize(
    ("path", "text", "title", "name"),
    [
        ("opencode.json", '{"theme": "x", "mcp": {"a": {"type": "local", "command": ["c"]}}}', "opencode", "opencode"),
        (".config/zed/settings.json", '{"context_servers": {"a": {"command": "c"}}}', "Zed", "zed"),
        (".codex/config.toml", '[mcp_servers.a]\ncommand = "c"\n', "Codex", "codex"),
        ("copied.json", '{"context_servers": {"a": {"command": "c"}}}', "Zed", "zed"),
        ("copied.json", '{"mcp": {"a": {"type": "local", "command": ["c"]}}}', "Crush", "opencode"),
    ],
)
def test_a_file_with_servers_in_the_form_of_a_client_names_import(
    path: str, text: str, title: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert title in str(caught.value)
    assert f"`mcpvisor import {name}`" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "seconds"),
    [
        (".mcp.json", 5.0),
        (".kiro/settings/mcp.json", 5.0),
        (".cline/data/settings/cline_mcp_settings.json", 5000.0),
        ("mcp.json", 5000.0),
    ],
)
def test_a_timeout_has_the_unit_of_the_client_whose_file_it_is(path: str, seconds: float) -> None:
    text = '{"mcpServers": {"a": {"command": "c", "timeout": 5000}}}'
    (server,) = parse(text, Path("/p") / path, {}, read_file=no_file).servers
    assert server.call_timeout_s == seconds


def test_every_unknown_key_of_another_file_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_text(OF_A_CLIENT)
    assert [line.partition(" (")[0] for line in str(caught.value).splitlines()] == [
        f"{FILE}:1: numStartups: unknown key",
        f"{FILE}:2: zzz: unknown key",
        f"{FILE}:3: projects: unknown key",
    ]
    assert 'copy "mcpServers" into a file of its own' in str(caught.value)


def test_a_thousand_unknown_keys_are_some_lines() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_text(json.dumps({f"k{number}": 1 for number in range(1000)}))
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 980 more")


@pytest.mark.parametrize(("written", "given", "notes"), [("127.0.0.1:0", "0.0.0.0:0", 1), ("0.0.0.0:0", "[::1]:0", 0)])
def test_the_address_that_is_listened_on_decides_whether_others_can_reach_it(
    written: str, given: str, notes: int
) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "c"}}, "supervisor": {"listen": written}})
    configuration = parse(text, FILE, {}, listen=given)
    assert sum("other machines" in note.message for note in configuration.notes) == notes
