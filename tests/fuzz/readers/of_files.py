"""Files that people and other programs write: the configuration, env files, files of clients, and what they name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from actors.errors import ConfigError
from supervisor.bridge.address import read_address
from supervisor.clients.documents import Edit, describe_edits, edit, mask_entry, read_servers, secrets_of
from supervisor.clients.entries import Taken, take
from supervisor.config import address
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import Format
from supervisor.config.expansion import expand, has_reference, parse_env_file, split
from supervisor.config.jsonc import put, read_document, remove, show_path
from supervisor.config.keys import name_fault, suggest_name
from supervisor.config.load import Configuration, parse
from supervisor.identity.tokens import digest_of
from tests.fuzz.target import holds, parts_of, same, text_of

ENVIRON = {"A": "1", "HOME": "/home/a", "TOKEN": "geheim", "EMPTY": ""}
_NEW = {"command": "x", "args": ["1"]}


def configuration(data: bytes) -> None:
    """Read a configuration: a usable one, or errors with line and key, in which no value of the environment stands."""
    written, env_file = map(text_of, parts_of(data, 2))
    try:
        read: Configuration = parse(
            written, Path("/c.json"), ENVIRON, read_file=lambda _: env_file, options_of=_no_plugins
        )
        errors = [*read.problems, *read.notes]
        assert len({server.name for server in read.servers}) == len(read.servers)
    except ConfigError as error:
        errors = [error]
    for problem in errors:
        said = str(problem)
        assert said
        assert "geheim" not in said
        assert len(said) < 100_000


def _no_plugins(name: str) -> type[msgspec.Struct]:
    raise ConfigError(f"no plugin {name[:10]!r}")


def syntax(data: bytes) -> None:
    """Read texts of the configuration by themselves: what is changed in one is that, and all else stays."""
    text = text_of(data)
    try:
        document = read_document(text, "c")
    except ConfigError as error:
        holds(str(error))
    else:
        for where in list(document.lines)[:50]:
            assert show_path(where) or not where
        _edits(text, document.value)
    for read in (expand, split):
        with suppress(ConfigError):
            read(text, ENVIRON)
    has_reference(text)
    with suppress(ConfigError):
        parse_env_file(text, "e")
    with suppress(ValueError):
        address.split_address(text)
    address.authority(text)
    address.origin_of(text)
    address.leads_to(text, "127.0.0.1:3001", doors_only=True)
    with suppress(ValueError):
        assert read_address(text).authority
    suggested = suggest_name(text)
    assert not suggested or name_fault(suggested) is None
    digest_of(text)


def _edits(text: str, value: object) -> None:
    try:
        changed = put(text, ("mcpServers", "new"), _NEW)
    except ConfigError:
        return
    again = read_document(changed, "c")
    expected = (
        {**value, "mcpServers": {**(value.get("mcpServers") or {}), "new": _NEW}} if isinstance(value, dict) else None
    )
    same(again.value, expected)
    without = read_document(remove(changed, ("mcpServers", "new")), "c").value
    assert "new" not in without["mcpServers"]


def client_files(data: bytes) -> None:
    """Read the servers of a client, and add and remove one; no secret stands in what is shown of that."""
    text = text_of(data)
    forms: tuple[Format, ...] = ("json", "toml")
    for form in forms:
        where = ("mcp_servers",) if form == "toml" else ("mcpServers",)
        try:
            servers = read_servers(form, text, where, "c")
        except ConfigError as error:
            holds(str(error))
            continue
        for members in list(servers.values())[:5]:
            for client in CLIENTS:
                taken = take(members, client, "/p")
                if isinstance(taken, Taken):
                    secrets_of(taken.entry)
                    assert msgspec.json.encode(mask_entry(taken.entry))
        change = Edit(where=(*where, "mcpvisor"), entry=dict(_NEW), shown=dict(_NEW))
        with suppress(ConfigError):
            after = edit(form, text, [change], "c")
            assert read_servers(form, after, where, "c")["mcpvisor"] == _NEW
            assert not any("geheim" in line for line in describe_edits(form, text, [change], "c") if line[:1] == "+")


TARGETS = {
    "configuration": configuration,
    "syntax": syntax,
    "client_files": client_files,
}
