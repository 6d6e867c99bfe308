"""Definitions of tools that were replaced: noticed when a server's lists are saved, also across restarts.

Only what changed is kept: the newest definition is in the catalogue. Whether two of them say something else is found
out by the thread that writes; the loop looks which tools are other objects, as one that did not change is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.redefinition import differs
from supervisor.store import Store
from supervisor.store.records import MAX_DEFINITION_BYTES

GONE: Final = b"null"
"""In the place of a definition: the tool is not offered any more."""


class Redefinitions:
    """What servers offered last, as far as it is known."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, tuple[Tool, ...]] = {}
        self._turn = 0

    def learn(self, server: str, offer: Offer) -> None:
        """This is what a server offered, as it was read in an earlier run."""
        self._last[server] = offer.tools

    def note(self, server: str, offer: Offer) -> None:
        """This is what a server offers now: keep what it defined otherwise until now."""
        before, self._last[server] = self._last.get(server, ()), offer.tools
        if before is offer.tools:
            return
        same = {*map(id, offer.tools)}
        others = [tool for tool in before if id(tool) not in same]
        if others:
            self._turn += 1
            size = sum(len(tool.definition) for tool in others)
            self._store.replace_definitions(server, partial(_redefined, others, offer), size, self._turn)

    def forget(self, server: str) -> None:
        self._last.pop(server, None)
        self._store.forget_definitions(server)


def _redefined(others: Sequence[Tool], offer: Offer) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each tool that says something else now, or is gone, and its definition before."""
    tools = {tool.name: tool for tool in offer.tools}
    for earlier in others:
        before, tool = bytes(earlier.definition), tools.get(earlier.name)
        if tool is None and offer.partial:
            continue
        now = GONE if tool is None else bytes(tool.definition)
        if now != before and differs(before, now):
            yield earlier.name, before if len(before) <= MAX_DEFINITION_BYTES else b""
