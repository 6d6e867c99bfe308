"""The names of everything there is now: made anew when a list changed, and kept until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.catalogue.snapshot import Catalogue, Entry
from actors.errors import UnknownTool
from supervisor.host.loop.workbench import Workbench
from supervisor.metatools.servers.availability import unlisted_of
from supervisor.metatools.texts import clean
from supervisor.service.doors.definitions import Names, names_of
from supervisor.service.doors.namespaced import SEPARATOR, name_for
from supervisor.service.lookup.lookup import refuse_barred

MAX_NAME_SHOWN: Final = 100
_NAME_COST: Final = 8
"""A name costs as much as so many bytes that a model wrote."""
_LISTS: Final = ("tools", "prompts", "resources", "templates")

Lists = dict[str, tuple[tuple[object, ...], ...]]


class CurrentNames:
    """Names for the newest catalogue that was asked about."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._entries: Mapping[str, Entry] = {}
        self._lists: Lists = {}
        self._made = names_of({})

    async def of(self, seen: Catalogue) -> Names:
        """Return the names of everything in a catalogue, unavailable servers included. A checkpoint if it is large."""
        entries = seen.entries
        if entries is self._entries:
            return self._made
        lists = {server: tuple(getattr(entry.offer, name) for name in _LISTS) for server, entry in entries.items()}
        if _same(self._lists, lists):
            made = self._made
        else:
            weight = _NAME_COST * sum(len(each) for of_server in lists.values() for each in of_server)
            made = await self._bench.run(weight, names_of, entries)
        self._made, self._lists, self._entries = made, lists, entries
        return made


def _same(before: Lists, after: Lists) -> bool:
    """Say whether these are the same lists: a list that did not change is the same object."""
    return before.keys() == after.keys() and all(
        old is new for server, lists in after.items() for old, new in zip(before[server], lists, strict=True)
    )


def unknown_tool(seen: Catalogue, names: Names, name: str) -> UnknownTool:
    """Return the error for a name that means nothing, with the nearest that mean something."""
    server = seen.names.literal(name.partition(SEPARATOR)[0])
    if server is not None and (entry := seen.entries.get(server)) is not None:
        for own in entry.offer.barred:
            refused = refuse_barred(server, entry.offer, own)
            if refused is not None and name_for(server, own) == name:
                return refused
    paths = (path.partition(":") for path in seen.nearest(name.replace(SEPARATOR, ":", 1)))
    nearest = [names.tools.name_of(server, own) for server, _, own in paths]
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "tools/list tells which there are"
    unread = unlisted_of(seen, server)
    known = f" that is known of server {server!r}: {unread}; tell the user" if unread else ""
    text = f"there is no tool {clean(name[:MAX_NAME_SHOWN])!r}{known}; {hint}"
    return UnknownTool(text, details={"nearest": nearest})
