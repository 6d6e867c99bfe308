"""Which definitions of tools are approved: kept across runs, and approved by people.

- They are read before the first offer is judged. Where that cannot be, nothing is approved until they are.
- `Approvals.approve` is the one way by which a person approves anything, whatever page or command it comes from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, Protocol

import msgspec
import trio

from actors.catalogue.marks import digest_of
from actors.catalogue.offer import Tool
from actors.catalogue.trust import Pins, Trust, key_of
from actors.errors import SupervisorError
from actors.kit import Address
from actors.protocol.wire import json
from actors.registry.actor import Message as RegistryMessage
from actors.registry.pinning import ApproveTools, Pinning, PinsRead
from actors.registry_inbox import AwaitShown, RulesChanged
from supervisor.identity.tokens import NotKept
from supervisor.store import Store
from supervisor.store.records import SavedPins

log = logging.getLogger(__name__)

READ_AGAIN_S: Final = 5.0
SHARED_S: Final = 10.0
"""How long a node that begins waits at most for what the others know."""
SHOWN_S: Final = 10.0
"""How long an approval waits at most until its effect can be seen."""
_PINS: Final = msgspec.json.Decoder(Pins)


class NotAsSeen(SupervisorError, kind="conflict"):
    """A definition is another one now than whoever approves it has seen. Nothing was approved."""


class ApprovalSharing(Protocol):
    """The other nodes of a fleet, at which the same is approved."""

    def tell(self, server: str, pins: Pins) -> None:
        """Let them know what somebody has approved."""

    def offer(self, server: str, pins: Pins) -> None:
        """Let them know what this node has taken as approved at first sight, unless they know better."""

    async def read(self) -> Mapping[str, Pins]:
        """Return what is known from them, once it is."""


class Approvals:
    """The approvals of one daemon; `read` makes it.

    `is_shared`: other nodes of a fleet know better than our database. So it is read when they have said what they know,
    or cannot for `SHARED_S`: a first sight by a node that has just begun must approve nothing that waits elsewhere.
    """

    def __init__(self, store: Store, trust: Callable[[str], Trust], *, is_shared: bool = False) -> None:
        self._store = store
        self._trust = trust
        self._is_shared = is_shared
        self._sharing: ApprovalSharing | None = None
        self._begun = trio.Event()
        self.known = trio.Event()
        """Set when it is known what was approved."""
        self._registry: Address[RegistryMessage] | None = None
        self.pinning = Pinning(trust, self._save, None)

    async def read(self, configured: Collection[str]) -> None:
        """Read what was approved in earlier runs, and forget what was of servers that are not configured any more."""
        if not self._is_shared and await self._read():
            self._store.pins.forget_others(configured)

    def share(self, sharing: ApprovalSharing) -> None:
        """Have the other nodes of the fleet know what is approved."""
        self._sharing = sharing
        self._begun.set()

    async def hear(self, approved: Mapping[str, Pins]) -> None:
        """Take what was approved at another node, by server."""
        for server, pins in approved.items():
            self.pinning.hear(server, pins)
            self._store.pins.put(SavedPins(server, partial(msgspec.json.encode, pins)))
            if self._registry is not None:
                await self._registry.tell(RulesChanged(server=server))

    async def read_later(self, registry: Address[RegistryMessage]) -> None:
        """Read it as soon as it can be read, if it could not be at the start."""
        self._registry = registry
        heard: Mapping[str, Pins] = {}
        with trio.move_on_after(SHARED_S if self._is_shared else 0.0):
            await self._begun.wait()
            assert self._sharing is not None
            heard = await self._sharing.read()
        while not self.pinning.is_read:
            await self._store.ready.wait()
            if await self._read():
                for server, pins in heard.items():
                    self.pinning.hear(server, pins)
                await registry.tell(PinsRead())
            else:
                await trio.sleep(READ_AGAIN_S)

    async def _read(self) -> bool:
        saved = await self._store.pins.read() if self._store.ready.is_set() else None
        if saved is None:
            return False
        read = {
            row.server: json.read_or(_PINS, row.payload, None) if isinstance(row.payload, bytes) else None
            for row in saved
        }
        known = {server: pins for server, pins in read.items() if pins is not None}
        if unreadable := read.keys() - known.keys():
            log.warning("what is approved of %s cannot be read: approve its tools again", ", ".join(sorted(unreadable)))
        self.pinning.take(known, unreadable)
        self.known.set()
        if self._sharing is not None:  # an engine that lost everything has nothing that a new node could go by
            for server, pins in known.items():
                self._sharing.offer(server, pins)
        return True

    def _save(self, server: str, pins: Pins | None) -> None:
        if pins is None:
            self._store.pins.forget(server)
        else:
            self._store.pins.put(SavedPins(server, partial(msgspec.json.encode, pins)))
            if self._sharing is not None:
                self._sharing.offer(server, pins)

    async def find_base(self, server: str, tool: Tool) -> bytes | None:
        """Return the newest definition of a tool that was approved, as far as earlier ones are kept. A checkpoint."""
        earlier = await self._store.definitions.load_of(server, tool.name)
        definitions = (each.definition for each in reversed(earlier))
        return next((text for text in definitions if self.pinning.has(server, tool.name, _digest(text))), None)

    async def approve(self, server: str, digests: Mapping[str, bytes]) -> None:
        """Approve definitions of tools, by the server's own names and by digest. A checkpoint.

        Raises `NotAsSeen` if any is another one now, and `NotKept` where the approval may not outlive the daemon.
        """
        if not self.pinning.is_read or self._registry is None:
            raise NotKept("nothing was approved: the daemon cannot read its database yet, see /api/status")
        if not await self._registry.ask(ApproveTools(server=server, digests=dict(digests))):
            raise NotAsSeen(
                f"nothing was approved: server {server!r} has not got all of these tools as they were shown, any more; "
                "look again"
            )
        if self._sharing is not None and (pins := self.pinning.of(server)) is not None:
            self._sharing.tell(key_of(server), pins)
        with trio.move_on_after(SHOWN_S):
            await self._registry.ask(AwaitShown(server=server))
        if not await self._store.secure():
            raise NotKept(
                "it is approved from now on, but may have to be again when the daemon is started again: see /api/status"
            )


def _digest(definition: bytes) -> bytes:
    return digest_of(json.read_or(json.VALUE, definition, None))
