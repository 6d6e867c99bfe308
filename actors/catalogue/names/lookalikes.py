"""Tools of different servers whose names a reader takes for one another, though they are not the same. Pure.

Servers may have tools of the same name, as `search`: each has its path. But `create_isue` beside `create_issue`, or `l`
in the place of `1`, is there to be mistaken. Case and separators make no other name, nor does another word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import msgspec

from actors.catalogue.lists.findings import look
from actors.catalogue.names.naming import tool_path
from actors.catalogue.offer import Tool
from actors.search.language.text import squash

LEAST_CHARS: Final = 6
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
    """The names of the tools of all servers, by how they look."""

    def __init__(self) -> None:
        self._looks: dict[str, dict[str, str]] = {}
        self._servers: dict[str, dict[str, str]] = {}

    def read(self, server: str, tools: Iterable[Tool]) -> Doubles:
        """Know the tools of a server now, and return their doubles elsewhere."""
        before, looks = self._looks.get(server, {}), _looks(tools)
        if looks != before:
            for name in before.keys() - looks.keys():
                self._drop(server, before[name])
            self._looks[server] = looks
            for name, seen in looks.items():
                self._servers.setdefault(seen, {})[server] = name
        return self._doubles(server, looks)

    def find(self, server: str, tools: Iterable[Tool]) -> Doubles:
        """Return what `read` would, and know nothing more than before."""
        return self._doubles(server, _looks(tools))

    def _doubles(self, server: str, looks: Mapping[str, str]) -> Doubles:
        doubles: dict[str, tuple[Double, ...]] = {}
        for name, seen in looks.items():
            others = self._servers.get(seen, {})
            if (
                len(others) > (server in others)
                and len(seen) >= LEAST_CHARS
                and (there := _doubles(server, name, others))
            ):
                doubles[name] = there
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


def _looks(tools: Iterable[Tool]) -> dict[str, str]:
    return {tool.name: tool.look or look(tool.name) for tool in tools}


def _doubles(server: str, name: str, others: Mapping[str, str]) -> tuple[Double, ...]:
    own = squash(name)
    unlike = (Double(other, called) for other, called in others.items() if other != server and squash(called) != own)
    return tuple(islice(unlike, MAX_DOUBLES))
