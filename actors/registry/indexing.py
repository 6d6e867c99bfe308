"""What of the catalogue is not in the index yet, and who waits for it: two tasks of the registry work on that.

Facts of a server come before the ask of whoever ordered something of it, in the same mailbox. So the ask knows which of
them it waits for: all that came until then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

import trio
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue, Entry
from actors.kit import Conditions, Latest, Reply, persist
from actors.registry.indexer import Indexed, Indexer
from actors.registry.vectors import Embedding


class Publication:
    """Counts, by server, what was told and what of that is published."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._told = dict.fromkeys(servers, 1)
        self._published: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[int, Reply[None]]]] = {}

    def tell(self, server: str) -> None:
        self._told[server] = self._told.get(server, 0) + 1

    def versions(self, servers: Iterable[str]) -> dict[str, int]:
        """Return what is told of these servers now, for `publish` once it is published."""
        return {server: self._told.get(server, 0) for server in servers}

    def publish(self, told: Mapping[str, int]) -> None:
        """So much is published; answer those who waited for that."""
        for server, count in told.items():
            self._published[server] = count
            for wanted, reply in self._waiting.pop(server, ()):
                if wanted <= count:
                    reply.answer(None)
                elif not reply.settled:
                    self._waiting.setdefault(server, []).append((wanted, reply))

    def forget(self, server: str) -> None:
        """Count no more of a server that is gone, if that is published and nobody waits for it."""
        if self._told.get(server) == self._published.get(server) and server not in self._waiting:
            self._told.pop(server, None)
            self._published.pop(server, None)

    def wait(self, server: str, reply: Reply[None]) -> None:
        """Answer when all that is told of a server so far is published."""
        wanted = self._told.get(server, 0)
        if self._published.get(server, 0) >= wanted:
            reply.answer(None)
        else:
            others = [each for each in self._waiting.get(server, ()) if not each[1].settled]
            self._waiting[server] = [*others, (wanted, reply)]


class Indexing:
    """Of the `entries` of the registry, by server; `index` and `embed` are tasks of it."""

    def __init__(self, entries: Mapping[str, Entry], catalogue: Latest[Catalogue], conditions: Conditions) -> None:
        self._entries = entries
        self._catalogue = catalogue
        self._conditions = conditions
        self._indexer = Indexer(catalogue.value.entries)
        self._publication = Publication(entries)
        self._dirty: set[str] = set(entries)
        self._work = trio.Event()
        self._work.set()
        self._unembedded = trio.Event()

    def mark(self, server: str) -> None:
        """Have what is new of a server indexed, and published with that."""
        self._dirty.add(server)
        self._publication.tell(server)
        self._work.set()

    def wait(self, server: str, reply: Reply[None]) -> None:
        """Answer when all that was marked of a server until now is published."""
        self._publication.wait(server, reply)

    def on_published(self, message: Indexed) -> None:
        self._publication.publish(message.versions)
        for server in message.removed - self._entries.keys():
            self._publication.forget(server)
        self._unembedded.set()

    async def index(self, tell: Callable[[Indexed], Awaitable[None]]) -> None:
        while True:
            await self._work.wait()
            self._work = trio.Event()
            piece = self._indexer.piece({name: self._entries.get(name) for name in self._dirty})
            self._dirty -= piece.complete
            versions = self._publication.versions(piece.complete)
            indexed = await persist(self._conditions, "search index", self._indexer.take, piece)
            await tell(replace(indexed, versions=versions))
            if self._dirty:
                self._work.set()

    async def embed(self, embedding: Embedding) -> None:
        made = await persist(self._conditions, "sentence model", embedding.open)
        if made is None:
            return
        while True:
            if made is not None:
                self._indexer.put(made)
                self._work.set()  # what it publishes leads back here, until there is nothing left to do
            await self._unembedded.wait()
            self._unembedded = trio.Event()
            made = await persist(self._conditions, "vectors", embedding.step, self._catalogue.value.index)
