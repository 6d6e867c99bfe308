"""The registry: facts of all servers in, one immutable catalogue out. It asks nobody.

The costly parts, analysing texts for the index and counting tokens, run in worker threads of two child tasks; what they
made comes back as messages, so the catalogue and its index are always published together, and no server waits to be
found until another one's tokens are counted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.diff import Change, OfferChange
from actors.catalogue.entries import Offer
from actors.catalogue.snapshot import Catalogue, Entry, compared, documents
from actors.kit import Actor, Feed, Latest, Reply
from actors.lifecycle import State
from actors.messages import EraLearned, ServerChanged, ServerListed, ServerRemoved, ServerStatus
from actors.search import Embedder, Index, Segment, analyse

Counter = Callable[[Offer], Awaitable[tuple[dict[str, int], bool]]]
"""Counts the tokens of each tool of an offer; the flag says whether the counts are exact."""


class Memory(Protocol):
    """What outlives the daemon. Saving never waits and never fails."""

    def save_offer(self, server: str, offer: Offer) -> None:
        """Keep what a server offers."""

    def forget(self, server: str) -> None:
        """Drop what is kept of a server."""

    def save_era(self, server: str, fact: EraLearned) -> None:
        """Keep which era a server speaks."""


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the event feed. `time` is unix seconds."""

    type: str
    time: float
    server: str | None = None
    revision: int | None = None
    data: dict[str, Any] = {}


class Indexed(msgspec.Struct, frozen=True):
    """The index covers these entries now; `removed` are gone from it. `changes`: what differs from those before."""

    index: Index
    entries: dict[str, Entry]
    removed: frozenset[str]
    changes: dict[str, OfferChange] | None = None


class Counted(msgspec.Struct, frozen=True):
    """The tokens of one server's tools are counted, for exactly this offer."""

    server: str
    offer: Offer
    counts: dict[str, int]
    exact: bool


_AVAILABLE = {State.READY: True, State.DORMANT: True, State.FAILED: False}
"""What entering a state says about whether a server can be used; starting and stopping say nothing."""

Message = ServerListed | ServerChanged | ServerRemoved | EraLearned | Indexed | Counted


class Registry(Actor[Message]):
    """One per daemon. `catalogue`, `statuses` and `feed` may be read by anybody."""

    def __init__(
        self,
        known: Mapping[str, tuple[str, Offer]],
        memory: Memory,
        count: Counter,
        clock: Callable[[], float],
        *,
        feed_size: int = 1000,
        load_embedder: Callable[[], Embedder | None] = lambda: None,
    ) -> None:
        """`load_embedder` is called once, in a worker thread: it may block, but must not fail."""
        super().__init__(4096)
        self.catalogue: Latest[Catalogue] = Latest(Catalogue(index=Index.empty(), indexed=not known))
        self.statuses: Latest[Mapping[str, ServerStatus]] = Latest({})
        self.feed: Feed[Happening] = Feed(feed_size)
        self._memory = memory
        self._count = count
        self._clock = clock
        self._entries = {name: Entry.make(name, kind, offer) for name, (kind, offer) in known.items()}
        self._dirty: set[str] = set(self._entries)
        self._restored: set[str] = set(self._entries)
        self._work = trio.Event()
        self._uncounted: dict[str, Offer] = {}
        self._counting = trio.Event()
        self._load_embedder = load_embedder

    def started(self) -> None:
        """Start the tasks that index and count."""
        self.nursery.start_soon(self._index_for_ever)
        self.nursery.start_soon(self._count_for_ever)
        self._work.set()

    def handle(self, message: Message, reply: Reply[Any] | None) -> None:
        """Take in one fact."""
        match message:
            case ServerChanged():
                self._on_changed(message)
            case ServerListed(server=server, offer=offer):
                self._on_listed(server, offer)
            case ServerRemoved(server=server):
                self._entries.pop(server, None)
                self._memory.forget(server)
                self.statuses.set({name: s for name, s in self.statuses.value.items() if name != server})
                self._mark(server)
            case EraLearned(server=server):
                self._memory.save_era(server, message)
            case Indexed():
                self._on_indexed(message)
            case Counted():
                self._on_counted(message)

    def _on_changed(self, message: ServerChanged) -> None:
        status = message.status
        moved = message.previous is not status.state or status.server not in self.statuses.value
        self.statuses.set({**self.statuses.value, status.server: status})
        if not moved:
            return
        data = {"state": status.state.value, "previous": message.previous.value, "incarnation": status.incarnation}
        if status.pid is not None:
            data["pid"] = status.pid
        if message.reason or status.state in (State.FAILED, State.RESPAWNING):
            data["reason"] = message.reason or status.last_error or ""
        self._emit("server_state", status.server, data)
        available = _AVAILABLE.get(status.state)
        entry = self._entries.get(status.server)
        if entry is not None and available is not None and entry.available != available:
            self._entries[status.server] = replace(entry, available=available)
            self._mark(status.server)

    def _on_listed(self, server: str, offer: Offer) -> None:
        status = self.statuses.value.get(server)
        before = self._entries.get(server)
        if before is not None and _same(before.offer, offer):
            offer = replace(offer, token_counts=before.offer.token_counts, tokens_exact=before.offer.tokens_exact)
        kind = status.transport if status is not None else "stdio"
        available = status is None or status.state is not State.FAILED
        self._entries[server] = Entry.make(server, kind, offer, available=available)
        self._restored.discard(server)
        if not offer.partial:
            self._memory.save_offer(server, offer)
        self._emit("discovery_completed", server, {"tools": len(offer.tools), "problems": list(offer.problems)})
        self._mark(server)

    def _mark(self, server: str) -> None:
        self._dirty.add(server)
        self._work.set()

    def _on_indexed(self, message: Indexed) -> None:
        catalogue = self.catalogue.value
        entries = {name: self._with_counts(entry) for name, entry in message.entries.items()}
        following, changes = catalogue.with_entries(entries, message.index, message.changes)
        for server in message.removed & catalogue.entries.keys():
            following, changes[server] = following.without(server, message.index)
        self.catalogue.set(following)
        for server, change in changes.items():
            if server not in self._restored:
                self._emit_change(server, change)
        self._restored -= message.entries.keys()
        self._uncounted.update({name: entry.offer for name, entry in entries.items() if not _counted(entry.offer)})
        self._counting.set()

    def _with_counts(self, entry: Entry) -> Entry:
        """Fill in what was counted while the entry was being indexed."""
        newest = self._entries.get(entry.server)
        if newest is None or newest.offer is entry.offer or not _same(newest.offer, entry.offer):
            return entry
        offer = newest.offer
        return replace(
            entry, offer=replace(entry.offer, token_counts=offer.token_counts, tokens_exact=offer.tokens_exact)
        )

    def _on_counted(self, message: Counted) -> None:
        entry = self._entries.get(message.server)
        if entry is None or not _same(entry.offer, message.offer):
            return
        offer = replace(entry.offer, token_counts=message.counts, tokens_exact=message.exact)
        self._entries[message.server] = replace(entry, offer=offer)
        self._memory.save_offer(message.server, offer)
        shown = self.catalogue.value.entries.get(message.server)
        if shown is not None and _same(shown.offer, message.offer):
            self.catalogue.set(self.catalogue.value.with_counts(message.server, message.counts, exact=message.exact))

    def _emit_change(self, server: str, change: OfferChange) -> None:
        for kind in ("tools", "resources", "prompts"):
            part: Change = getattr(change, kind)
            if part:
                data = {name: value for name, value in msgspec.to_builtins(part).items() if value}
                self._emit(f"{kind}_changed", server, data)

    def _emit(self, type_: str, server: str | None, data: dict[str, Any]) -> None:
        revision = self.catalogue.value.revision
        self.feed.append(Happening(type=type_, time=self._clock(), server=server, revision=revision, data=data))

    # The child tasks ------------------------------------------------------------------------------------------------

    async def _index_for_ever(self) -> None:
        index = Index.empty(embedder=await trio.to_thread.run_sync(self._load_embedder))
        indexed: dict[str, Entry] = {}
        while True:
            await self._work.wait()
            self._work = trio.Event()
            dirty, self._dirty = self._dirty, set()
            entries = {name: self._entries[name] for name in sorted(dirty) if name in self._entries}
            removed = frozenset(dirty - entries.keys())
            fresh = {
                name: entry
                for name, entry in entries.items()
                if name not in indexed or indexed[name].offer is not entry.offer
            }
            if fresh or removed:
                index = await trio.to_thread.run_sync(_reindex, index, fresh, removed)
            changes = await trio.to_thread.run_sync(compared, indexed, entries)  # with what was published before
            indexed = {name: entry for name, entry in (indexed | entries).items() if name not in removed}
            await self.address.tell(Indexed(index, entries, removed, changes))

    async def _count_for_ever(self) -> None:
        while True:
            await self._counting.wait()
            self._counting = trio.Event()
            while self._uncounted:
                server, offer = self._uncounted.popitem()
                counts, exact = await self._count(offer)
                await self.address.tell(Counted(server, offer, counts, exact))


def _counted(offer: Offer) -> bool:
    return offer.tokens_exact and offer.token_counts.keys() >= {tool.name for tool in offer.tools}


def _reindex(index: Index, entries: Mapping[str, Entry], removed: frozenset[str]) -> Index:
    """Return the index with these servers replaced. Runs in a worker thread."""
    for server in sorted(removed):
        index = index.remove(server)
    embedder = index.embedder
    segments: list[Segment] = [
        analyse(name, documents(name, entry.offer), embedder=embedder) for name, entry in entries.items()
    ]
    if len(index) == 0:
        index = Index.build(segments, embedder=embedder)
        index.search("what a first search costs")  # expressions and word lists are made ready here, not on the loop
        return index
    for segment in segments:
        index = index.replace(segment)
    return index


def _same(before: Offer, after: Offer) -> bool:
    return [bytes(tool.definition) for tool in before.tools] == [bytes(tool.definition) for tool in after.tools]
