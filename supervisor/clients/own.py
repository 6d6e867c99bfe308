"""Our own entry at a client: how it is written there, and how it is known again. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from supervisor.config.address import leads_to
from supervisor.config.clients import URL, ClientProgram

PROGRAM: Final = "mcpvisor"
STDIO: Final = "stdio"
"""Our command for clients that start a program."""


def own_entry(
    client: ClientProgram, url: str, program: Sequence[str], more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the entry of us at `url`; `program` is our own command line, for a client that only starts programs.

    `more`: what it has besides.
    """
    if client.remote is None:
        command, *args = program
        return {"command": command, "args": args, **(more or {})}
    entry: dict[str, Any] = {
        key: url if value == URL else value if isinstance(value, str) else list(value)
        for key, value in client.remote.items()
    }
    return {**entry, **(more or {})}


def is_own(members: object, listens: Collection[str]) -> bool:
    """Say whether an entry of any client leads to us: to one of the addresses `host:port`, or by our own program."""
    if address_in(members, listens) is not None:
        return True
    words = [text for key, text in _texts(members) if key in ("command", "args", "cmd", "path")]
    before = words[: words.index(STDIO)] if STDIO in words else []
    names = {PurePath(word.replace("\\", "/").partition("@")[0]).stem for word in before}
    return not names.isdisjoint({PROGRAM, "supervisor"})


def address_in(members: object, listens: Collection[str]) -> str | None:
    """Return the address in an entry that leads to one of `host:port`, None if none does."""
    for key, text in _texts(members):
        if any(leads_to(text, listen, doors_only=key not in ADDRESSES) for listen in listens):
            return text
    return None


ADDRESSES: Final = frozenset({"url", "serverUrl", "httpUrl", "uri"})
"""Keys under which clients have the address of a server."""


def _texts(members: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of an entry but those of its environment and its headers, each with the key it stands under."""
    if isinstance(members, str):
        yield key, members
    elif isinstance(members, Mapping):
        for name, each in members.items():
            if name not in ("env", "headers"):
                yield from _texts(each, str(name))
    elif isinstance(members, list):
        for each in members:
            yield from _texts(each, key)
