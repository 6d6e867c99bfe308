"""What connecting a client changes in its file, and what undoing that does. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from actors.errors import ConfigError
from supervisor.clients.documents import Edit, edit, read_servers
from supervisor.clients.own import PROGRAM, is_own
from supervisor.clients.secret_values import mask_entry
from supervisor.config.clients.client import ClientProgram


def own_names(servers: Mapping[str, Any], listens: Collection[str]) -> list[str]:
    """Return the names of the entries that lead to us."""
    return [name for name, members in servers.items() if is_own(members, listens)]


def edit_to_connect(
    client: ClientProgram, servers: Mapping[str, Any], name: str, entry: dict[str, Any], listens: Collection[str]
) -> Edit | None:
    """Return what adds us, None if we are there as we would be written. Raises `ConfigError` for a name that is taken.

    An entry with our usual name is ours, also if it leads to where we once were.
    """
    if servers.get(name) == entry:
        return None
    if name in servers and name != PROGRAM and name not in own_names(servers, listens):
        raise ConfigError(f'another server is called "{name}" there', hint="choose a name for us with --name")
    return Edit(where=(*client.servers, name), entry=entry, shown=mask_entry(entry))


def edit_to_undo(client: ClientProgram, servers: Mapping[str, Any], name: str, listens: Collection[str]) -> Edit | None:
    """Return what takes us out, None if we are not there: the entry of that name if it is ours, else the one that is.

    Raises `ConfigError` where several are ours, and none has that name.
    """
    own = own_names(servers, listens)
    if name in servers and (name in own or name == PROGRAM):
        own = [name]
    if len(own) > 1:
        names = ", ".join(own)
        raise ConfigError(f"several entries lead here: {names}", hint="say which one with --name")
    return Edit(where=(*client.servers, own[0])) if own else None


def restore(
    client: ClientProgram, text: str, backups: Iterable[str | None], undo: Edit, entry: dict[str, Any]
) -> str | None:
    """Return what the file held before us, if it is as we left it: None for no file. Else what is left without us.

    `backups` are the copies of which one was made then, None for no file; `entry` is ours as it stands there.
    """
    connected = Edit(where=undo.where, entry=entry)
    for backup in backups:
        try:
            had_us = undo.where[-1] in read_servers(client.format, backup or "", client.servers, "")
            if not had_us and edit(client.format, backup or "", [connected], "") == text:
                return backup
        except ConfigError:
            pass  # it cannot be what the file held then
    return edit(client.format, text, [undo], "")
