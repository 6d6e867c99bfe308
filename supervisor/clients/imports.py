"""What imports did, so that the last one can be undone: kept beside the configuration that they wrote. Pure.

It has names, places and digests, and no value of any server: what was moved is put back from the copy of the client's
file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from actors.errors import ConfigError
from supervisor.clients.documents import Edit, Way, edit, hide_values, read_servers
from supervisor.config.clients import Format

SUFFIX: Final = ".mcpvisor.imports"
_MOST: Final = 32
"""Imports that can be undone, one after the other; then the oldest is forgotten."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken out of one file of a client: `where` each server stood; digests of the text before and after."""

    path: str
    form: Format
    before: str
    after: str
    where: tuple[Way, ...]


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """One import: the entries that it wrote, by their keys, each with its digest; what it took out of clients."""

    taken: Mapping[str, str]
    section: str
    moved: tuple[Moved, ...] = ()


def digest(value: object) -> str:
    """Return what tells a text, or an entry, from any other."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def read_imports(text: str | None, path: str) -> list[Import]:
    """Return the imports of a file, the newest last. Raises `ConfigError`."""
    if text is None:
        return []
    try:
        return msgspec.json.decode(text, type=list[Import])
    except msgspec.DecodeError:
        raise ConfigError("what imports did cannot be read from it", path=path, hint="remove the file") from None


def write_imports(imports: list[Import]) -> str:
    return msgspec.json.format(msgspec.json.encode(imports[-_MOST:]), indent=2).decode() + "\n"


def edits_back(moved: Moved, text: str, copy: str) -> list[Edit]:
    """Return what puts the servers of a copy back into a text that has changed since. Raises `ConfigError`.

    A server that is there again by its name is nobody's to overwrite.
    """
    edits = []
    for where in moved.where:
        section, name = where[:-1], where[-1]
        if name in read_servers(moved.form, text, section, moved.path):
            raise ConfigError(
                f'the file has changed since, and has a server "{name}" again',
                path=moved.path,
                hint="rename or remove that one, or take the old one from the copy beside the file",
            )
        entry = read_servers(moved.form, copy, section, moved.path).get(name)
        if isinstance(entry, dict):
            edits.append(Edit(where=where, entry=entry, shown=hide_values(entry)))
    edit(moved.form, text, edits, moved.path)  # so that it fails before anything is written
    return edits


def edits_out(done: Import, text: str, path: str) -> tuple[list[Edit], list[str]]:
    """Return what takes the entries of an import out again, and the names of those that have changed since."""
    servers: dict[str, Any] = read_servers("json", text, (done.section,), path)
    there = {name: servers[name] for name in done.taken if name in servers}
    ours = [name for name, entry in there.items() if digest(entry) == done.taken[name]]
    return [Edit(where=(done.section, name)) for name in ours], [name for name in there if name not in ours]
