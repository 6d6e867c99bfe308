"""Files of clients: one entry comes and goes, everything else stays, and no diff shows what is not ours to show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.clients.documents import Edit, describe_edits, edit, read_servers
from supervisor.clients.doors import own_entry
from supervisor.config.clients import Format
from tests.supervisor.clients.files import CLAUDE_CODE, CLINE, CODEX, GEMINI, VSCODE, Sample
from tests.supervisor.clients.test_toml_tables import HEADS, PIECES
from tests.supervisor.config.test_client_table import BY_NAME
from tests.supervisor.config.test_editing import keys, layouts

URL = "http://127.0.0.1:3001/mcp"


def connecting(sample: Sample) -> Edit:
    client = BY_NAME[sample.client]
    entry = own_entry(client, URL, ["/bin/mcpvisor", "stdio"])
    return Edit(where=(*client.servers, "mcpvisor"), entry=entry, shown=entry)


def test_comments_and_keys_in_odd_places_are_no_secret_that_is_shown() -> None:
    text = '{"mcpServers": {}, "k" /* canary */ : "canary", // \rcanary\n "command": "shown", "e": "\\"canary"}'
    shown = "".join(describe_edits("json", text, [Edit(where=("mcpServers", "a"), entry={}, shown={})], "f"))
    assert "canary" not in shown
    assert '"command": "shown"' in shown
    toml = "k = '''\ncanary'''\n\"q.k\" = \"canary\" # canary\n[a.\"b\"]\nl = [\n['canary'],\n]\n"
    lines = list(describe_edits("toml", toml, [Edit(where=("a", "c"), entry={"u": "v"}, shown={"u": "v"})], "f"))
    assert "canary" not in "".join(lines)
    assert ' [a."b"]' in lines or "[a." in "".join(lines)


def test_arguments_are_shown_but_for_what_gives_itself_away() -> None:
    added = [Edit(where=("mcpServers", "a"), entry={}, shown={})]
    args = '["-y", "pkg", // canary\n"--token", "canary", "--key=canary"]'
    text = f'{{"mcpServers": {{"b": {{"args": {args}, "k": ["canary"]}}}}}}'
    shown = "".join(describe_edits("json", text, added, "f"))
    assert "canary" not in shown
    assert all(
        each in shown for each in ('"args": ["-y", "pkg", // ...', '"--token", "***", "--key=***"], "k": ["***"]')
    )
    odd = '{"mcpServers": {"b": {"args": ["x", {"args": "canary"}, "canary"], "args2": ["canary"]}}}'
    assert "canary" not in "".join(describe_edits("json", odd, added, "f"))
    toml = "[mcp_servers.b]\nargs = ['-y', \"pkg\", '--token', 'canary']\nmore_args = ['canary']\n"
    shown = "".join(describe_edits("toml", toml, [Edit(where=("mcp_servers", "a"), entry={"u": "v"}, shown={})], "f"))
    assert "canary" not in shown
    assert "args = ['-y', \"pkg\", '--token', \"***\"]" in shown


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("command", "npx", "npx"),
        ("command", "x sk-canary0123456789abcdef", "x ***"),
        ("type", "http", "http"),
        ("url", "http://127.0.0.1:3001/mcp/servers/git", "http://127.0.0.1:3001/mcp/servers/git"),
        ("url", "https://h/mcp?profile=work&k=canary", "https://h/mcp?profile=work&k=***"),
        ("serverUrl", "https://canary@h/mcp", "https://***@h/mcp"),
        ("url", "https://h/canary/mcp", "***"),
        ("url", "//canary@h/mcp", "***"),
        ("url", "http://[canary", "***"),
        ("url", "http://h/mcp#canary", "***"),
        ("token", "canary", "***"),
    ],
)
def test_a_value_is_shown_alike_in_every_format(key: str, value: str, shown: str) -> None:
    gone = [Edit(where=("s", "a"))]
    written: list[tuple[Format, str, str]] = [
        ("json", json.dumps({"s": {"a": {key: value}}}, indent=1), f'-   "{key}": "{shown}"'),
        ("toml", f'[s.a]\n{key} = "{value}"\n', f'-{key} = "{shown}"'),
        ("toml", f"[s.b]\nx = {{ '{key}' = '{value}' }}\n[s.a]\n", f" x = {{ '{key}' = "),
    ]
    for form, text, line in written:
        lines = list(describe_edits(form, text, gone, "f"))
        assert [each for each in lines if each.startswith(line)]
        assert "canary" not in "".join(lines)


canaries = st.recursive(
    st.just("canary") | st.integers(),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(keys, below, max_size=3),
)


@given(layouts(st.fixed_dictionaries({"s": st.dictionaries(keys, canaries, max_size=2)}, optional={"t": canaries})))
def test_no_value_of_any_text_is_shown(layout: tuple[Any, str]) -> None:
    value, text = layout
    added = Edit(where=("s", "us"), entry={"u": "v"}, shown={"u": "v"})
    gone = [Edit(where=("s", name)) for name in value["s"]]
    for edits in ([added], gone):
        assert "canary" not in "".join(describe_edits("json", text, edits, "f"))


@given(st.sampled_from(HEADS), st.permutations(PIECES), st.integers(0, len(PIECES)))
def test_no_value_of_any_toml_is_shown(head: str, pieces: list[str], count: int) -> None:
    text = head + "".join(pieces[:count]).replace('command = "x"', 'other = "x"').replace("x", "canary")
    added = Edit(where=("mcp_servers", "us"), entry={"u": "v"}, shown={"u": "v"})
    names = read_servers("toml", text, ("mcp_servers",), "f")
    for edits in ([added], [Edit(where=("mcp_servers", name)) for name in names]):
        assert "canary" not in "".join(describe_edits("toml", text, edits, "f")).replace("tecanaryt", "text")


@pytest.mark.parametrize(("form", "text"), [("json", ""), ("json", " \n"), ("json", "\ufeff"), ("toml", "")])
def test_an_empty_file_is_one_without_servers(form: Format, text: str) -> None:
    assert read_servers(form, text, ("s",), "f") == {}
    after = edit(form, text, [Edit(where=("s", "a"), entry={"url": URL})], "f")
    assert read_servers(form, after, ("s",), "f") == {"a": {"url": URL}}


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("json", '{"s": {\n"a": {},\n"a": {}}}', "f:3: s.a: the key is written twice"),
        ("json", '{\n"s": []}', "f:2: s: must be an object"),
        ("json", "[]", "f:1: must be an object"),
        ("json", '{"s": ', "f:1: "),
        ("toml", "s = 1\n", "s: must be an object"),
        ("toml", "s = ", "f:1: this is not TOML"),
    ],
)
def test_what_cannot_be_read_says_where(form: Format, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_servers(form, text, ("s",), "f")
    assert words in str(caught.value)


def test_a_key_that_is_written_twice_elsewhere_hinders_nobody() -> None:
    assert read_servers("json", '{"x": {"k": 1, "k": 2}, "s": {"a": {}}}', ("s",), "f") == {"a": {}}


def test_what_json_has_not_got_is_a_text() -> None:
    text = "[s.a]\nd = 1979-05-27\nn = nan\nf = 1.5\nl = [1979-05-27, true]\n"
    servers = read_servers("toml", text, ("s",), "f")
    assert json.loads(json.dumps(servers)) == {
        "a": {"d": "1979-05-27", "n": "nan", "f": 1.5, "l": ["1979-05-27", True]}
    }


def test_line_ends_marks_and_tabs_are_those_of_the_file() -> None:
    for sample, line_end in ((CLINE, "\r\n"), (VSCODE, "\n")):
        after = edit("json", sample.text, [connecting(sample)], "f")
        assert after.count(line_end) == after.count("\n")
    assert edit("json", GEMINI.text, [connecting(GEMINI)], "f").startswith("\ufeff{\n    ")
    assert "canary-api-key" in edit("json", CLAUDE_CODE.text, [connecting(CLAUDE_CODE)], "f")
    assert edit("toml", CODEX.text, [connecting(CODEX)], "f").startswith(CODEX.text)
