"""Definitions of tools that were replaced: noticed when a server's lists are saved, also across restarts.

Only what changed is kept: the newest definition is in the catalogue. Whether two of them say something else is found
out by the thread that writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.redefinition import differs
from supervisor.store import Store
from supervisor.store.records import MAX_DEFINITION_BYTES

GONE: Final = b"null"
"""In the place of a definition: the tool was not offered any more."""


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
        for earlier, now in _redefinitions(before, offer):
            self._turn += 1
            kept = bytes(earlier.definition) if len(earlier.definition) <= MAX_DEFINITION_BYTES else b""
            changed = partial(differs, bytes(earlier.definition), now)
            self._store.replace_definition(server, earlier.name, kept, changed, self._turn)

    def forget(self, server: str) -> None:
        self._last.pop(server, None)
        self._store.forget_definitions(server)


def _redefinitions(before: tuple[Tool, ...], offer: Offer) -> Iterator[tuple[Tool, bytes]]:
    """Yield each tool that is another one now, or gone, and its definition now."""
    tools = {tool.name: tool for tool in offer.tools}
    for earlier in before:
        now = tools.get(earlier.name)
        if now is None and not offer.partial:
            yield earlier, GONE
        elif now is not None and now is not earlier and now.definition != earlier.definition:
            yield earlier, bytes(now.definition)
