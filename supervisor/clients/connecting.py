"""What connecting a client changes in its file, and what undoing that does. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from actors.errors import ConfigError
from supervisor.clients.documents import Edit, edit, mask_entry, read_servers
from supervisor.clients.doors import PROGRAM, Door, door_of, is_own
from supervisor.config.clients import ClientProgram

Entries = Mapping[str, dict[str, Any]]
"""Entries of us by name."""


def own_names(servers: Mapping[str, Any], listens: Collection[str]) -> list[str]:
    """Return the names of the entries that lead to us."""
    return [name for name, members in servers.items() if is_own(members, listens)]


def edits_to_connect(
    client: ClientProgram, servers: Mapping[str, Any], entries: Entries, listens: Collection[str], gone: Collection[str]
) -> list[Edit]:
    """Return what has `entries` be there in place of those that are `gone`, none if all is as it would be written.

    An entry with our usual name is ours, also if it leads to where we once were. Raises `ConfigError` for a name that
    is taken.
    """
    own = own_names(servers, listens)
    taken = [name for name in entries if name in servers and name != PROGRAM and name not in own]
    if taken:
        names = ", ".join(f'"{name}"' for name in taken)
        raise ConfigError(f"another server is called {names} there", hint="choose a name for us with --name")
    new = {name: entry for name, entry in entries.items() if servers.get(name) != entry}
    return [
        *(Edit(where=(*client.servers, name)) for name in gone),
        *(Edit(where=(*client.servers, name), entry=entry, shown=mask_entry(entry)) for name, entry in new.items()),
    ]


def replaced(
    servers: Mapping[str, Any], entries: Entries, listens: Collection[str], door: Door, main: str
) -> list[str]:
    """Return which entries of ours go when `entries` come, those of a `door`, as another choice of door wrote them.

    Single servers come for the entry `main`, and for single servers that are there no more. Any other door comes for
    single servers where they are all that leads to us: beside an entry for all, somebody wanted them.
    """
    own = {name: door_of(servers[name], listens) for name in own_names(servers, listens)}
    single = [name for name, each in own.items() if each == "servers"]
    if door == "servers":
        single.append(main)
    elif len(single) < max(2, len(own)):
        single = []
    return [name for name in own if name in single and name not in entries]


def edits_to_undo(client: ClientProgram, servers: Mapping[str, Any], name: str, listens: Collection[str]) -> list[Edit]:
    """Return what takes us out, none if we are not there: the entry of that name if it is ours, without a name all.

    An entry with our usual name is ours also if it leads elsewhere, where nothing else is.
    """
    own = own_names(servers, listens)
    if PROGRAM in servers and (name == PROGRAM or not own):
        own = [*own, PROGRAM]
    return [Edit(where=(*client.servers, each)) for each in servers if each in own and name in ("", each)]


def restore(client: ClientProgram, text: str, backups: Iterable[str | None], entries: Entries) -> str | None:
    """Return what the file held before us, if it is as we left it: None for no file. Else what is left without us.

    `backups` are the copies of which one was made then, None for no file; `entries` are ours as they stand there.
    """
    places = {(*client.servers, name): entry for name, entry in entries.items()}
    connected = [Edit(where=where, entry=entry) for where, entry in places.items()]
    for backup in backups:
        try:
            before = read_servers(client.format, backup or "", client.servers, "")
            if entries.keys().isdisjoint(before) and edit(client.format, backup or "", connected, "") == text:
                return backup
        except ConfigError:
            pass  # it cannot be what the file held then
    return edit(client.format, text, [Edit(where=where) for where in places], "")
