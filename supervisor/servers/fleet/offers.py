"""What servers offer, told once to all nodes: by the owner of each, and read by the others.

An owner publishes what its server lists whenever that is new. The text of it is kept under its digest, once, so many
launches that offer the same cost one text. Who reads it takes it as if the server were listed here.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from actors.catalogue.offer import Offer, decode_offer, encode_offer
from actors.errors import SupervisorError
from actors.kit import Address, Pauses
from actors.launch import is_own
from actors.messages import EraLearned, ServerListed
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from actors.registry.actor import Memory
from actors.registry.actor import Message as RegistryMessage
from supervisor.fleet.engine import Engine, OfferPublished
from supervisor.fleet.membership import Ownership
from supervisor.host.workbench import beside
from supervisor.servers.fleet.launch_messages import LaunchKeys
from supervisor.servers.launches.running import Recall

log = logging.getLogger(__name__)

MAX_OF_OWN: Final = 100_000
"""Launches that not all share of which it is known what they offer; of others each is asked again."""


class FleetMemory:
    """Implements `actors.registry.actor.Memory`: remembers what servers offer, and has the fleet know of it."""

    def __init__(self, memory: Memory, offers: FleetOffers) -> None:
        self._memory = memory
        self._offers = offers

    def save_offer(self, server: str, offer: Offer) -> None:
        self._memory.save_offer(server, offer)
        self._offers.publish(server, offer)

    def forget(self, server: str) -> None:
        self._memory.forget(server)

    def save_era(self, server: str, fact: EraLearned) -> None:
        self._memory.save_era(server, fact)


class FleetRecall:
    """Implements `Recall`: what was published of launches that not all share is known as what is kept here."""

    def __init__(self, kept: Recall, offers: FleetOffers) -> None:
        self._kept = kept
        self._offers = offers

    async def recall_offers(self, launches: Collection[str]) -> dict[str, Offer]:
        return await self._kept.recall_offers(launches) | await self._offers.recall(launches)

    async def recall_era(self, digest: str) -> Era | None:
        return await self._kept.recall_era(digest)


class FleetOffers:
    """What this node publishes and reads. Launches are those of its own configuration, by their names here."""

    def __init__(self, engine: Engine, ownership: Ownership, keys: LaunchKeys) -> None:
        self._engine = engine
        self._ownership = ownership
        self._keys = keys
        self._wants_everything = False
        self._unpublished: dict[str, Offer] = {}
        self._unread: dict[str, str] = {}
        self._published: dict[str, str] = {}
        self._of_own: dict[str, str] = {}
        self._told: set[str] | None = None  # keys of launches of which the feed told while the index is read
        self._bell = trio.Event()

    def publish(self, launch: str, offer: Offer) -> None:
        """Have the fleet know what a launch offers, soon, if it is ours."""
        if self._ownership.fence(self._keys.key(launch)):
            self._unpublished[launch] = offer
            self._bell.set()

    def take(self, entry: OfferPublished) -> None:
        """Hear from the feed that something new is offered; our own is known."""
        if self._told is not None:
            self._told.add(entry.launch)
        self._note(entry)

    def _note(self, entry: OfferPublished) -> None:
        launch = self._keys.name(entry.launch)
        if is_own(entry.launch):  # who has it may come here later
            self._of_own.pop(entry.launch, None)
            self._of_own[entry.launch] = entry.digest
            if len(self._of_own) > MAX_OF_OWN:
                del self._of_own[next(iter(self._of_own))]
        if launch and self._published.get(launch) != entry.digest:
            self._unread[launch] = entry.digest
            self._bell.set()

    def want_everything(self) -> None:
        """Read what all launches offer: at the beginning, where the feed does not go back far enough, and where another
        configuration has other launches.
        """
        self._wants_everything = True
        self._published.clear()
        self._bell.set()

    async def recall(self, launches: Collection[str]) -> dict[str, Offer]:
        """Return what was published of launches that not all share; nothing while the engine is away."""
        keys = {launch: self._of_own.get(self._keys.key(launch), "") for launch in launches}
        digests = {launch: digest for launch, digest in keys.items() if digest}
        offers: dict[str, Offer] = {}
        with suppress(SupervisorError):
            texts = await self._engine.read_offers(sorted({*digests.values()})) if digests else {}
            for launch, digest in digests.items():
                if digest in texts and (offer := await self._decode(launch, texts[digest])) is not None:
                    offers[launch] = offer
        return offers

    async def run(self, registry: Address[RegistryMessage]) -> None:
        """Publish and read, for ever: the newest of each launch."""
        pauses = Pauses()
        while True:
            await self._bell.wait()
            self._bell = trio.Event()
            try:
                await self._read_index()
                await self._publish_all()
                await self._read_all(registry)
                pauses.reset()
            except SupervisorError as error:
                log.debug("what servers offer is not up to date in the fleet: %s", error.message)
                self._bell.set()
                await trio.sleep(pauses.next())

    async def _read_index(self) -> None:
        if not self._wants_everything:
            return
        self._wants_everything = False
        self._told = told = set[str]()
        try:
            digests = (await self._engine.offers()).digests
        except SupervisorError:
            self._wants_everything = True
            raise
        finally:
            self._told = None
        for key, digest in digests.items():
            if key not in told:  # what the feed told meanwhile is newer
                self._note(OfferPublished(key, digest, 0))

    async def _publish_all(self) -> None:
        while self._unpublished:
            launch, offer = next(iter(self._unpublished.items()))
            text = await beside(partial(encode_offer, offer))
            digest = hashlib.blake2b(text, digest_size=20).hexdigest()
            grant = self._ownership.grant(self._keys.key(launch))
            if grant is not None:
                self._published[launch] = digest
                await self._engine.publish(grant, digest, text)
            if self._unpublished.get(launch) is offer:
                del self._unpublished[launch]

    async def _read_all(self, registry: Address[RegistryMessage]) -> None:
        while self._unread:
            launch, digest = next(iter(self._unread.items()))
            texts = await self._engine.read_offers([digest])
            if digest in texts:  # else something newer is published by now
                offer = await self._decode(launch, texts[digest])
                if offer is not None:
                    self._published[launch] = digest
                    await registry.tell(ServerListed(server=launch, incarnation=0, offer=offer))
            if self._unread.get(launch) == digest:
                del self._unread[launch]

    async def _decode(self, launch: str, text: bytes) -> Offer | None:
        try:
            return await beside(partial(decode_offer, text))
        except json.UnreadableJson:
            log.warning("%s: what it offers was published by another version, and is not readable here", launch)
            return None
