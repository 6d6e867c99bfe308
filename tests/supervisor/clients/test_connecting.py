"""What connecting a client changes, and that undoing it leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.clients.connecting import edits_to_connect, edits_to_undo, restore
from supervisor.clients.documents import Edit, edit, read_servers
from supervisor.clients.doors import own_entry
from tests.supervisor.clients.files import CODEX, SAMPLES, Sample
from tests.supervisor.config.test_client_table import BY_NAME
from tests.supervisor.config.test_editing import layouts, objects

LISTENS = ("127.0.0.1:3001",)
ENTRY = {"type": "http", "url": "http://127.0.0.1:3001/mcp"}
CURSOR = BY_NAME["cursor"]


US = {"mcpvisor": ENTRY}
GIT = {"url": "http://127.0.0.1:3001/mcp/servers/git"}
TIME = {"url": "http://127.0.0.1:3001/mcp/servers/time"}
OTHER = {"command": "x"}


@pytest.mark.parametrize(
    ("servers", "name", "out"),
    [
        ({"a": OTHER}, "", []),
        ({"a": OTHER, "us": ENTRY}, "", ["us"]),
        ({"git": GIT, "a": OTHER, "time": TIME}, "", ["git", "time"]),
        ({"mcpvisor": "odd", "us": ENTRY}, "", ["us"]),
        ({"mcpvisor": "odd", "us": ENTRY}, "mcpvisor", ["mcpvisor"]),
        ({"mcpvisor": "odd", "a": OTHER}, "", ["mcpvisor"]),
        ({"us": ENTRY, "we": ENTRY}, "we", ["we"]),
        ({"us": ENTRY, "a": OTHER}, "a", []),
    ],
)
def test_what_is_taken_out_is_ours(servers: dict[str, Any], name: str, out: list[str]) -> None:
    edits = edits_to_undo(CURSOR, servers, name, LISTENS)
    assert edits == [Edit(where=("mcpServers", each)) for each in out]


TEXTS = ["{}", "{ }", "{\n\n}\n", '{"other": 1}', '{"mcpServers": {}}\r\n', "", "\ufeff{}"]


@pytest.mark.parametrize("text", [*TEXTS, None], ids=repr)
def test_several_entries_leave_every_byte_as_it_was_too(text: str | None) -> None:
    both = {"git": GIT, "time": TIME}
    connected = edit("json", text or "", edits_to_connect(CURSOR, {}, both, LISTENS, []), "f")
    assert restore(CURSOR, connected, [connected, text], both) == text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.client)
def test_a_file_that_changed_since_loses_our_entry_alone(sample: Sample) -> None:
    client = BY_NAME[sample.client]
    entry = own_entry(client, ENTRY["url"], ["/bin/mcpvisor", "stdio"])
    where = (*client.servers, "mcpvisor")
    later = Edit(where=(*client.servers, "later"), entry={"command": "later"})
    connected = edit(client.format, sample.text, [Edit(where=where, entry=entry), later], "f")
    restored = restore(client, connected, [sample.text], {"mcpvisor": entry})
    assert restored == edit(client.format, sample.text, [later], "f")


def test_a_copy_that_cannot_be_what_was_there_is_no_help() -> None:
    added = Edit(where=("mcpServers", "mcpvisor"), entry=ENTRY)
    connected = edit("json", '{"a": 1}', [added], "f")
    for backup in ("broken", '{"b": 1}', None):
        after = restore(CURSOR, connected, [backup], US)
        assert after == '{"a": 1, "mcpServers": {}}'
    codex = BY_NAME["codex"]
    text = CODEX.text + '\n[mcp_servers.mcpvisor]\nurl = "u"\n[mcp_servers.mcpvisor.tools.x]\napproval_mode = "auto"\n'
    entry = read_servers("toml", text, codex.servers, "f")["mcpvisor"]
    assert restore(codex, text, [CODEX.text], {"mcpvisor": entry}) == CODEX.text


documents = st.fixed_dictionaries({}, optional={"other": st.integers(), "mcpServers": objects})


@given(layouts(documents), st.booleans())
def test_whatever_a_file_looks_like_it_gets_back_every_byte(layout: tuple[Any, str], changes: bool) -> None:
    value, text = layout
    servers = value.get("mcpServers", {})
    where = ("mcpServers", "mcpvisor")
    connected = edit("json", text, [Edit(where=where, entry=ENTRY)], "f")
    if not changes:
        assert restore(CURSOR, connected, [text], US) == text
    elif servers:  # what is made for us alone stays when the file is another
        assert restore(CURSOR, connected, [None], US) == text
