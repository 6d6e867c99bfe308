"""Servers of clients on their way into our configuration: which are new, and which need another name. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from supervisor.clients.entries import Taken, take
from supervisor.clients.own import is_own
from supervisor.config.clients import ClientProgram
from supervisor.config.entry import ServerConfig
from supervisor.config.keys import MAX_NAME_CHARS, name_fault, suggest_name, translate_entry
from supervisor.config.values import keys_of

_LAUNCH: Final = ("command", "args", "env", "cwd", "url", "headers")
"""What a server is; the rest is how it is treated."""


class ServerSource(msgspec.Struct, frozen=True, kw_only=True):
    """The servers at one place of a client's file. `folder`: of the project that they are for, if they are for one."""

    client: ClientProgram
    path: str
    where: tuple[str, ...]
    servers: Mapping[str, Any]
    folder: str | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one server of a client: it comes as `name`, or is there by that name, or does not come."""

    source: ServerSource
    key: str
    name: str = ""
    taken: Taken | None = None
    refusal: str = ""
    is_new: bool = False


def plan_moves(
    sources: Iterable[ServerSource], known: Mapping[str, Mapping[str, Any]], listens: Collection[str]
) -> list[Move]:
    """Return what becomes of every server but ourselves; `known` are the entries of our configuration by name."""
    launches = {_launch(entry): name for name, entry in reversed(list(known.items())) if isinstance(entry, dict)}
    names = {name.casefold() for name in known}
    moves = []
    for source in sources:
        for key, members in source.servers.items():
            if is_own(members, listens):
                continue
            taken = take(members, source.client, source.folder)
            if isinstance(taken, str):
                moves.append(Move(source=source, key=key, refusal=taken))
                continue
            launch = _launch(taken.entry)
            name = launches.get(launch, "")
            is_new = not name
            if is_new:
                name = _free_name(key, source.client.name, names)
                names.add(name.casefold())
                launches[launch] = name
            moves.append(Move(source=source, key=key, name=name, taken=taken, is_new=is_new))
    return moves


def _launch(entry: Mapping[str, Any]) -> str:
    """Return what tells a server from others."""
    own, _ = translate_entry(entry, keys_of(ServerConfig))
    return json.dumps({key: own[key] for key in _LAUNCH if own.get(key)}, sort_keys=True)


def _free_name(key: str, client: str, taken: Collection[str]) -> str:
    """Return the key of a server there as a name that nobody has here: `github`, `github-cursor`, `github-cursor-2`."""
    name = suggest_name(key) if name_fault(key) else key
    ends = ["", f"-{client}", *(f"-{client}-{number}" for number in range(2, len(taken) + 3))]
    names = (f"{name[: MAX_NAME_CHARS - len(end)]}{end}" for end in ends)
    return next(each for each in names if each.casefold() not in taken)
