"""Tools of different servers whose names a reader takes for one another, though they are not the same. Pure.

Servers may have tools of the same name, as `search`: each has its path. But `create_isue` beside `create_issue`, or `l`
in the place of `1`, is there to be mistaken. Case and separators make no other name, nor does another word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from actors.catalogue.lists.findings import look
from actors.catalogue.names.naming import tool_path
from actors.catalogue.offer import Tool
from actors.search.language.text import squash

LEAST_CHARS: Final = 6
"""Shorter names are like many others."""


class Lookalikes:
    """The names of the tools of all servers, by how they look."""

    def __init__(self) -> None:
        self._looks: dict[str, dict[str, str]] = {}
        self._servers: dict[str, dict[str, str]] = {}

    def read(self, server: str, tools: Iterable[Tool]) -> Mapping[str, str]:
        """Know the tools of a server now; return, for each with a double elsewhere, the path of one of those."""
        before = self._looks.get(server, {})
        looks = {tool.name: tool.look or look(tool.name) for tool in tools}
        for name in before.keys() - looks.keys():
            self._drop(server, before[name])
        self._looks[server] = looks
        doubles: dict[str, str] = {}
        for name, seen in looks.items():
            others = self._servers.setdefault(seen, {})
            others[server] = name
            if len(others) > 1 and len(seen) >= LEAST_CHARS and (double := _double(server, name, others)):
                doubles[name] = double
        return doubles

    def forget(self, server: str) -> None:
        for seen in self._looks.pop(server, {}).values():
            self._drop(server, seen)

    def _drop(self, server: str, seen: str) -> None:
        others = self._servers.get(seen)
        if others is not None:
            others.pop(server, None)
            if not others:
                del self._servers[seen]


def _double(server: str, name: str, others: Mapping[str, str]) -> str:
    own = squash(name)
    unlike = (other for other, called in others.items() if other != server and squash(called) != own)
    double = next(unlike, None)
    return tool_path(double, others[double]) if double is not None else ""
