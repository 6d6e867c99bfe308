"""Who is told when a resource of a server changes, and so of which resources that server is asked to tell. Pure.

A cell between doors and actors: doors write who is subscribed, actors read what for, and tell them as a call tells its
exchange. It outlives processes and actors. A subscriber notes once that it is owed a notification, and a resource waits
once to be told of, so nothing queues here without a bound. Thousands of subscribers are told a few at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from actors.errors import TooManyCalls

MAX_URIS: Final = 4096
MAX_BYTES: Final = 1024 * 1024
"""Of all URIs of one server."""
MAX_PARENTS: Final = 64
PORTION: Final = 16
"""Subscribers who are told in one go."""

Tell = Callable[[], None]
"""Notes that one subscriber is owed a notification. Never waits; one object for each subscription."""
Later = Callable[[Callable[[], None]], None]
"""Calls something in its turn, after others that wait for theirs."""


class Subscribers:
    """The subscriptions to resources of all servers. `later` has those told for whom there was no room at once."""

    def __init__(self, later: Later) -> None:
        self._later = later
        self._of: dict[str, dict[str, dict[Tell, None]]] = {}
        self._bytes: dict[str, int] = {}
        self._due: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._told: dict[Tell, None] = {}
        self._left: list[Tell] = []

    def uris(self, server: str) -> tuple[str, ...]:
        """Return the URIs that somebody is subscribed to, as the server knows them."""
        return tuple(self._of.get(server, ()))

    def add(self, server: str, uri: str, tell: Tell) -> None:
        """Subscribe somebody. Raises `TooManyCalls` if one server would have to tell of too many resources."""
        wanted = self._of.setdefault(server, {})
        if uri not in wanted:
            size = self._bytes.get(server, 0) + len(uri.encode(errors="surrogatepass"))
            if len(wanted) >= MAX_URIS or size > MAX_BYTES:
                text = f"clients are subscribed to {len(wanted)} resources of server {server!r}, which is the most"
                raise TooManyCalls(text, server=server)
            self._bytes[server] = size
            wanted[uri] = {}
        wanted[uri][tell] = None

    def remove(self, server: str, uri: str, tell: Tell) -> bool:
        """End a subscription; return whether it was the last one to that resource."""
        wanted = self._of.get(server, {})
        told = wanted.get(uri)
        if told is None or tell not in told:
            return False
        del told[tell]
        if told:
            return False
        del wanted[uri]
        self._bytes[server] -= len(uri.encode(errors="surrogatepass"))
        return True

    def updated(self, server: str, uri: str) -> None:
        """Tell those who are subscribed to a resource, or else to what it is a part of, that it changed.

        (MCP 2025-11-25, schema, "ResourceUpdatedNotification": it may be about a sub-resource.)
        """
        wanted = self._of.get(server, {})
        part = uri
        for _ in range(MAX_PARENTS):
            if not part or part in wanted or f"{part}/" in wanted:
                break
            part = part.rpartition("/")[0]
        self.missed(server, (part, f"{part}/") if part != uri else (uri,))

    def missed(self, server: str, uris: Iterable[str]) -> None:
        """Tell those who are subscribed that these resources may have changed.

        Whoever is subscribed now is told after this, soon, unless the subscription ends before.
        """
        busy = self._due or self._left
        wanted = self._of.get(server, {})
        self._due.update({(server, uri): None for uri in uris if uri in wanted})
        if not busy:
            self._tell()

    def _tell(self) -> None:
        for _ in range(PORTION):
            if not self._left and not self._begin():
                return
            tell = self._left.pop()
            if tell in self._told:
                tell()
        if self._left or self._due:
            self._later(self._tell)

    def _begin(self) -> bool:
        """Turn to the next resource that somebody is subscribed to. While one is told of, it may become due again."""
        while self._due:
            (server, uri), _ = self._due.popitem(last=False)
            self._told = self._of.get(server, {}).get(uri, {})
            self._left = list(reversed(self._told))
            if self._left:
                return True
        return False
