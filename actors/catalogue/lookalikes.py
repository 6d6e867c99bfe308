"""Tools of different servers whose names a reader takes for one another, though they are not the same. Pure.

Servers may have tools of the same name, as `search`: each has its path. But `create_isue` beside `create_issue`, or `l`
in the place of `1`, is there to be mistaken. Case and separators make no other name, nor does another word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import msgspec

from actors.catalogue.findings import look
from actors.catalogue.names import tool_path
from actors.catalogue.offer import Tool
from actors.search.text import squash

_LEAST_CHARS: Final = 6
"""Shorter names are like many others."""
MAX_DOUBLES: Final = 20
"""Of one tool, that are told."""


class Double(msgspec.Struct, frozen=True):
    """A tool of another server that one can be taken for, by that server's own name for it."""

    server: str
    tool: str

    @property
    def path(self) -> str:
        return tool_path(self.server, self.tool)


Doubles = Mapping[str, tuple[Double, ...]]
"""Those of the tools of one server, by its own names; tools without any are not in it."""


class Lookalikes:
    """The names of the tools of all servers, by how they look; of names of one server that look alike, the last."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self._servers: dict[str, tuple[str, ...]] = {}

    def read(self, server: str, tools: Iterable[Tool]) -> Doubles:
        """Know the tools of a server now, and return their doubles elsewhere."""
        looks = _looks(tools)
        before, names = self._names.get(server, {}), {seen: name for name, seen in looks.items()}
        if names != before:
            for seen in before.keys() - names.keys():
                self._drop(server, seen)
            self._names[server], alone = names, (server,)  # most look like no other, and share that
            for seen in names.keys() - before.keys():
                self._servers[seen] = self._servers.get(seen, ()) + alone
        return self._doubles(server, looks)

    def find(self, server: str, tools: Iterable[Tool]) -> Doubles:
        """Return what `read` would, and know nothing more than before."""
        return self._doubles(server, _looks(tools))

    def _doubles(self, server: str, looks: Mapping[str, str]) -> Doubles:
        doubles: dict[str, tuple[Double, ...]] = {}
        for name, seen in looks.items():
            others = self._servers.get(seen, ())
            if len(others) > (server in others) and len(seen) >= _LEAST_CHARS:
                named = ((other, self._names[other][seen]) for other in others if other != server)
                if there := _doubles(name, named):
                    doubles[name] = there
        return doubles

    def forget(self, server: str) -> None:
        for seen in self._names.pop(server, {}):
            self._drop(server, seen)

    def _drop(self, server: str, seen: str) -> None:
        if others := tuple(other for other in self._servers.pop(seen) if other != server):
            self._servers[seen] = others


def _looks(tools: Iterable[Tool]) -> dict[str, str]:
    return {tool.name: tool.look or look(tool.name) for tool in tools}


def _doubles(name: str, others: Iterable[tuple[str, str]]) -> tuple[Double, ...]:
    own = squash(name)
    unlike = (Double(server, called) for server, called in others if squash(called) != own)
    return tuple(islice(unlike, MAX_DOUBLES))
