"""What outlives the daemon of its servers: catalogue, era, replaced definitions. Uses the store's write-behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial

import trio

from actors.catalogue.lists.marks import MARKS
from actors.catalogue.lists.validation import read_again
from actors.catalogue.offer import Offer, decode_offer, encode_offer
from actors.kit import is_want
from actors.messages import EraLearned
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from supervisor.store import Store
from supervisor.store.redefinitions import Redefinitions

log = logging.getLogger(__name__)


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
        self._redefinitions = Redefinitions(store)
        self.own_digest: Callable[[str], str | None] = lambda launch: None
        """Gives the digest of a launch that not all share, if it has an actor."""

    def save_offer(self, server: str, offer: Offer) -> None:
        self._redefinitions.note(server, offer)
        digest = self._digest_of(server)
        if digest is not None:
            self._store.save_server(server, digest, partial(encode_offer, offer))  # not on the loop

    def forget(self, server: str) -> None:
        self._store.forget_server(server)
        self._redefinitions.forget(server)

    def save_era(self, server: str, fact: EraLearned) -> None:
        digest = self._digest_of(server)
        if digest is not None:
            self._store.save_era(digest, fact.era)

    def _digest_of(self, launch: str) -> str | None:
        return self._digests().get(launch) or self.own_digest(launch)

    async def recall_offers(self, launches: Collection[str]) -> dict[str, Offer]:
        """Return what is known from earlier of launches that not all share, by launch."""
        if not launches or not self._store.ready.is_set():
            return {}
        payloads = await self._store.load_launches(launches)
        offers: dict[str, Offer] = {}
        for launch, payload in payloads.items():
            await trio.lowlevel.checkpoint()  # reading one is a pause of its own
            if (offer := _decode(launch, payload)) is not None:
                offers[launch] = await _as_read_today(offer)
        return offers

    async def recall_era(self, digest: str) -> Era | None:
        """Return what the launch of that digest is known to speak."""
        return await self._store.load_era(digest) if self._store.ready.is_set() else None

    async def load(self, now: float) -> tuple[dict[str, Offer], dict[str, Era]]:
        """Return offers and eras of servers whose launch is the same; nothing while the store cannot be opened."""
        if not self._store.ready.is_set():
            return {}, {}
        saved = await self._store.load_servers()
        offers: dict[str, Offer] = {}
        changed: list[str] = []
        digests = self._digests()
        for name, digest in digests.items():
            await trio.lowlevel.checkpoint()  # reading one catalogue is a pause of its own
            if name not in saved:
                continue
            valid_for, payload = saved[name]
            if (offer := _decode(name, payload)) is None:
                continue
            offer = await _as_read_today(offer)
            self._redefinitions.learn(name, offer)
            if valid_for == digest:
                offers[name] = offer
            else:
                changed.append(name)
        if changed:
            log.info("started another way than when they were read, so they are read again: %s", ", ".join(changed))
        for name in saved.keys() - set(self._configured()):
            self._store.forget_server(name)
        self._store.keep_launches_of(self._configured())
        self._store.keep_definitions_of(self._configured())
        by_digest = await self._store.load_eras(now)
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
