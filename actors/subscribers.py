"""Who is told when a resource of a server changes, and so of which resources that server is asked to tell. Pure.

A cell between doors and actors: doors write who is subscribed, actors read what for, and tell them as a call tells its
exchange. It outlives processes and actors. A subscriber notes once that it is owed a notification, and a resource waits
once to be told of, so nothing queues here without a bound. Thousands of subscribers are told a few at a time.

What a server has to tell of is bounded, and shared by clients (`actors.kit.fairness.quota`): a resource counts
for the client that is subscribed to it for the longest.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from actors.errors import TooManyCalls
from actors.kit.fairness.quota import ClientQuota
from actors.principal import LOCAL, ClientKey

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


class _Subscribed:
    """What clients are subscribed to at one server: who is to be told, by URI, and whose client each of them is of."""

    def __init__(self) -> None:
        self.by_uri: dict[str, dict[Tell, ClientKey]] = {}
        self._uris = ClientQuota(MAX_URIS)
        self._bytes = ClientQuota(MAX_BYTES)

    def admits(self, uri: str, client: ClientKey) -> bool:
        return self._uris.has_room(client) and self._bytes.has_room(client, _size(uri))

    def add(self, uri: str, tell: Tell, client: ClientKey) -> None:
        """Subscribe somebody; the first one to a resource pays for it."""
        if uri not in self.by_uri:
            self.by_uri[uri] = {}
            self._uris.add(client)
            self._bytes.add(client, _size(uri))
        self.by_uri[uri][tell] = client

    def remove(self, uri: str, tell: Tell) -> bool:
        """End a subscription; return whether it was the last one to that resource. The next one pays for it."""
        told = self.by_uri.get(uri)
        if told is None or tell not in told:
            return False
        payer = next(iter(told.values()))
        del told[tell]
        for quota, amount in ((self._uris, 1), (self._bytes, _size(uri))):
            quota.remove(payer, amount)
            for heir in list(told.values())[:1]:
                quota.add(heir, amount)
        if not told:
            del self.by_uri[uri]
        return not told


class Subscribers:
    """The subscriptions to resources of all servers. `later` has those told for whom there was no room at once."""

    def __init__(self, later: Later) -> None:
        self._later = later
        self.left: Callable[[str, str], None] = lambda server, uri: None
        """Called when the last one has left a resource of a server."""
        self._of: defaultdict[str, _Subscribed] = defaultdict(_Subscribed)
        self._due: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._told: dict[Tell, ClientKey] = {}
        self._left: list[Tell] = []

    def uris(self, server: str) -> tuple[str, ...]:
        """Return the URIs that somebody is subscribed to, as the server knows them."""
        subscribed = self._of.get(server)
        return () if subscribed is None else tuple(subscribed.by_uri)

    def add(self, server: str, uri: str, tell: Tell, client: ClientKey = (LOCAL, "")) -> None:
        """Subscribe somebody of a client.

        Raises `TooManyCalls` if the server would have to tell of too many resources, or of too many for this client.
        """
        subscribed = self._of[server]
        if uri not in subscribed.by_uri and not subscribed.admits(uri, client):
            text = f"this client has its share of the {MAX_URIS} resources, or of the {MAX_BYTES} bytes of URIs,"
            text += f" that server {server!r} is asked to tell of"
            raise TooManyCalls(text, server=server)
        subscribed.add(uri, tell, client)

    def remove(self, server: str, uri: str, tell: Tell) -> bool:
        last = self._of[server].remove(uri, tell)
        if not self._of[server].by_uri:
            del self._of[server]
        if last:
            self.left(server, uri)
        return last

    def servers(self) -> list[str]:
        """Return the servers that somebody is subscribed to."""
        return [server for server, subscribed in self._of.items() if subscribed.by_uri]

    def tell_update(self, server: str, uri: str) -> None:
        """Tell those who are subscribed to a resource, or else to what it is a part of, that it changed.

        (MCP 2025-11-25, schema, "ResourceUpdatedNotification": it may be about a sub-resource.)
        """
        wanted = self._of[server].by_uri
        part = uri
        for _ in range(MAX_PARENTS):
            if not part or part in wanted or f"{part}/" in wanted:
                break
            part = part.rpartition("/")[0]
        self.tell_missed(server, (part, f"{part}/") if part != uri else (uri,))

    def tell_missed(self, server: str, uris: Iterable[str]) -> None:
        """Tell those who are subscribed that these resources may have changed.

        Whoever is subscribed now is told after this, soon, unless the subscription ends before.
        """
        busy = self._due or self._left
        wanted = self._of[server].by_uri
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
            self._told = self._of[server].by_uri.get(uri, {})
            self._left = list(reversed(self._told))
            if self._left:
                return True
        return False


class OnlyUpdates(Subscribers):
    """The same subscriptions for a second session of a server: it tells what changed, and misses nothing.

    What changes while there is no such session, the first one tells.
    """

    def __init__(self, whole: Subscribers) -> None:
        super().__init__(lambda tell: tell())
        self._whole = whole

    def uris(self, server: str) -> tuple[str, ...]:
        return self._whole.uris(server)

    def tell_update(self, server: str, uri: str) -> None:
        self._whole.tell_update(server, uri)

    def tell_missed(self, server: str, uris: Iterable[str]) -> None:
        """Tell nobody."""


class LeadersOnly(Subscribers):
    """The same subscriptions for one of several instances of a launch: what changed is told once, by whoever leads.

    `leads` says whether that is this one now.
    """

    def __init__(self, whole: Subscribers, leads: Callable[[], bool]) -> None:
        super().__init__(lambda tell: tell())
        self._whole = whole
        self._leads = leads

    def uris(self, server: str) -> tuple[str, ...]:
        return self._whole.uris(server) if self._leads() else ()

    def tell_update(self, server: str, uri: str) -> None:
        if self._leads():
            self._whole.tell_update(server, uri)

    def tell_missed(self, server: str, uris: Iterable[str]) -> None:
        if self._leads():
            self._whole.tell_missed(server, uris)


def _size(uri: str) -> int:
    return len(uri.encode(errors="surrogatepass"))
