"""What connecting a client changes, and that undoing it leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ConfigError
from supervisor.clients.connecting import edit_to_connect, edit_to_undo, own_names, restore
from supervisor.clients.documents import Edit, edit, read_servers
from supervisor.clients.own import own_entry
from tests.supervisor.clients.files import CODEX, SAMPLES, Sample
from tests.supervisor.config.clients.test_table import BY_NAME
from tests.supervisor.config.syntax.test_editing import layouts, objects

LISTENS = ("127.0.0.1:3001",)
ENTRY = {"type": "http", "url": "http://127.0.0.1:3001/mcp"}
CURSOR = BY_NAME["cursor"]


def test_a_client_is_connected_once() -> None:
    added = edit_to_connect(CURSOR, {}, "mcpvisor", ENTRY, LISTENS)
    assert added == Edit(where=("mcpServers", "mcpvisor"), entry=ENTRY, shown=ENTRY)
    assert edit_to_connect(CURSOR, {"mcpvisor": ENTRY}, "mcpvisor", ENTRY, LISTENS) is None


def test_an_entry_that_leads_to_where_we_were_is_replaced() -> None:
    old = {"url": "http://127.0.0.1:9/mcp"}
    assert edit_to_connect(CURSOR, {"mcpvisor": old}, "mcpvisor", ENTRY, LISTENS) is not None
    assert edit_to_connect(CURSOR, {"us": {"url": ENTRY["url"]}}, "us", ENTRY, LISTENS) is not None


def test_a_name_that_another_server_has_is_refused() -> None:
    with pytest.raises(ConfigError, match='another server is called "tools" there'):
        edit_to_connect(CURSOR, {"tools": {"command": "x"}}, "tools", ENTRY, LISTENS)


def test_what_is_taken_out_is_ours() -> None:
    other = {"command": "x"}
    assert edit_to_undo(CURSOR, {"a": other}, "mcpvisor", LISTENS) is None
    undo = edit_to_undo(CURSOR, {"a": other, "us": ENTRY}, "mcpvisor", LISTENS)
    assert undo == Edit(where=("mcpServers", "us"))
    undo = edit_to_undo(CURSOR, {"mcpvisor": "odd", "us": ENTRY}, "mcpvisor", LISTENS)
    assert undo == Edit(where=("mcpServers", "mcpvisor"))
    with pytest.raises(ConfigError, match="several entries lead here: us, we"):
        edit_to_undo(CURSOR, {"us": ENTRY, "we": ENTRY}, "mcpvisor", LISTENS)
    assert own_names({"us": ENTRY, "a": other, "we": ENTRY}, LISTENS) == ["us", "we"]


TEXTS = ["{}", "{ }", "{\n\n}\n", '{"other": 1}', '{"mcpServers": {}}\r\n', "", "\ufeff{}"]


@pytest.mark.parametrize("text", [*TEXTS, None], ids=repr)
def test_a_file_that_is_as_we_left_it_gets_back_every_byte(text: str | None) -> None:
    added = Edit(where=("mcpServers", "mcpvisor"), entry=ENTRY)
    connected = edit("json", text or "", [added], "f")
    assert restore(CURSOR, connected, [text], Edit(where=added.where), ENTRY) == text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.client)
def test_a_file_that_changed_since_loses_our_entry_alone(sample: Sample) -> None:
    client = BY_NAME[sample.client]
    entry = own_entry(client, ENTRY["url"], ["/bin/mcpvisor", "stdio"])
    where = (*client.servers, "mcpvisor")
    later = Edit(where=(*client.servers, "later"), entry={"command": "later"})
    connected = edit(client.format, sample.text, [Edit(where=where, entry=entry), later], "f")
    restored = restore(client, connected, [sample.text], Edit(where=where), entry)
    assert restored == edit(client.format, sample.text, [later], "f")


def test_a_copy_that_cannot_be_what_was_there_is_no_help() -> None:
    added = Edit(where=("mcpServers", "mcpvisor"), entry=ENTRY)
    connected = edit("json", '{"a": 1}', [added], "f")
    for backup in ("broken", '{"b": 1}', None):
        after = restore(CURSOR, connected, [backup], Edit(where=added.where), ENTRY)
        assert after == '{"a": 1, "mcpServers": {}}'
    codex = BY_NAME["codex"]
    text = CODEX.text + '\n[mcp_servers.mcpvisor]\nurl = "u"\n[mcp_servers.mcpvisor.tools.x]\napproval_mode = "auto"\n'
    entry = read_servers("toml", text, codex.servers, "f")["mcpvisor"]
    assert restore(codex, text, [CODEX.text], Edit(where=("mcp_servers", "mcpvisor")), entry) == CODEX.text


documents = st.fixed_dictionaries({}, optional={"other": st.integers(), "mcpServers": objects})


@given(layouts(documents), st.booleans())
def test_whatever_a_file_looks_like_it_gets_back_every_byte(layout: tuple[Any, str], changes: bool) -> None:
    value, text = layout
    servers = value.get("mcpServers", {})
    where = ("mcpServers", "mcpvisor")
    connected = edit("json", text, [Edit(where=where, entry=ENTRY)], "f")
    if not changes:
        assert restore(CURSOR, connected, [text], Edit(where=where), ENTRY) == text
    elif servers:  # what is made for us alone stays when the file is another
        assert restore(CURSOR, connected, [None], Edit(where=where), ENTRY) == text
