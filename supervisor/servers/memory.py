"""What outlives the daemon of its servers: catalogue, era, replaced definitions. Uses the store's write-behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from actors.catalogue.diff import differs
from actors.catalogue.lists import read_again
from actors.catalogue.marks import MARKS
from actors.catalogue.offer import Offer, Tool, decode_offer, encode_offer
from actors.kit import is_want
from actors.messages import EraLearned
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from supervisor.store import Store
from supervisor.store.records import MAX_DEFINITION_BYTES, SavedEra, SavedServer

log = logging.getLogger(__name__)

# Definitions of tools that were replaced: noticed when a server's lists are saved, also across restarts.
#
# Only what changed is kept: the newest definition is in the catalogue. Whether two of them say something else is found
# out by the thread that writes; the loop looks which tools are other objects, as one that did not change is the same.

_GONE: Final = b"null"
"""In the place of a definition: the tool is not offered any more."""


class _Redefinitions:
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
            self._store.definitions.replace(server, partial(_redefined, others, offer), size, self._turn)

    def forget(self, server: str) -> None:
        self._last.pop(server, None)
        self._store.definitions.forget(server)


def _redefined(others: Sequence[Tool], offer: Offer) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each tool that says something else now, or is gone, and its definition before."""
    tools = {tool.name: tool for tool in offer.tools}
    for earlier in others:
        before, tool = bytes(earlier.definition), tools.get(earlier.name)
        if tool is None and offer.partial:
            continue
        now = _GONE if tool is None else bytes(tool.definition)
        if now != before and differs(before, now):
            yield earlier.name, before if len(before) <= MAX_DEFINITION_BYTES else b""


class StoreMemory:
    """Implements `actors.messages.Memory` over the store.

    `digests` gives the launch digest of each server that can run now, `configured` all that there are: what is known of
    one that cannot run now (disabled, or with a mistake in its entry) is not shown and not forgotten.
    """

    def __init__(
        self, store: Store, digests: Callable[[], Mapping[str, str]], configured: Callable[[], Collection[str]]
    ) -> None:
        self._configured = configured
        self._store = store
        self._digests = digests
        self._redefinitions = _Redefinitions(store)
        self.own_digest: Callable[[str], str | None] = lambda launch: None
        """Gives the digest of a launch that not all share, if it has an actor."""

    def save_offer(self, server: str, offer: Offer) -> None:
        self._redefinitions.note(server, offer)
        digest = self._digest_of(server)
        if digest is not None:
            self._store.servers.put(SavedServer(server, digest, partial(encode_offer, offer)))  # not on the loop

    def forget(self, server: str) -> None:
        self._store.servers.forget(server)
        self._redefinitions.forget(server)

    def save_era(self, server: str, fact: EraLearned) -> None:
        digest = self._digest_of(server)
        if digest is not None:
            self._store.eras.put(SavedEra(digest, fact.era))

    def _digest_of(self, launch: str) -> str | None:
        return self._digests().get(launch) or self.own_digest(launch)

    async def recall_offers(self, launches: Collection[str]) -> dict[str, Offer]:
        """Return what is known from earlier of launches that not all share, by launch."""
        if not launches or not self._store.ready.is_set():
            return {}
        payloads = await self._store.servers.load_launches(launches)
        offers: dict[str, Offer] = {}
        for launch, payload in payloads.items():
            await trio.lowlevel.checkpoint()  # reading one is a pause of its own
            if (offer := _decode(launch, payload)) is not None:
                offers[launch] = await _as_read_today(offer)
        return offers

    async def recall_era(self, digest: str) -> Era | None:
        """Return what the launch of that digest is known to speak."""
        return await self._store.eras.find(digest) if self._store.ready.is_set() else None

    async def load(self, now: float) -> tuple[dict[str, Offer], dict[str, Era]]:
        """Return offers and eras of servers whose launch is the same; nothing while the store cannot be opened."""
        if not self._store.ready.is_set():
            return {}, {}
        saved = await self._store.servers.load_shared()
        offers: dict[str, Offer] = {}
        changed: list[str] = []
        digests = self._digests()
        for name, digest in digests.items():
            await trio.lowlevel.checkpoint()  # reading one catalogue is a pause of its own
            if name not in saved:
                continue
            if (offer := _decode(name, saved[name].payload)) is None:
                continue
            offer = await _as_read_today(offer)
            self._redefinitions.learn(name, offer)
            if saved[name].digest == digest:
                offers[name] = offer
            else:
                changed.append(name)
        if changed:
            log.info("started another way than when they were read, so they are read again: %s", ", ".join(changed))
        for name in saved.keys() - set(self._configured()):
            self._store.servers.forget(name)
        self._store.servers.keep_launches_of(self._configured())
        self._store.definitions.forget_others(self._configured())
        by_digest = await self._store.eras.load_all(now)
        return offers, {name: by_digest[digest] for name, digest in digests.items() if digest in by_digest}


def _decode(name: str, payload: bytes) -> Offer | None:
    try:
        return decode_offer(payload)
    except json.UnreadableJson:
        log.warning("the saved catalogue of %s is not readable; it will be discovered again", name)
        return None


async def _as_read_today(offer: Offer) -> Offer:
    """Return what an earlier version read as this one reads it, in a thread. No checkpoint without that."""
    if offer.marked_by == MARKS:
        return offer
    try:
        return await trio.to_thread.run_sync(read_again, offer)
    except (RuntimeError, MemoryError) as error:
        if not is_want(error):
            raise
        return read_again(offer)
