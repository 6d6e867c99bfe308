"""Which definitions of tools are approved: kept across runs, and approved by people.

- They are read before the first offer is judged. Where that cannot be, nothing is approved until they are.
- `Approvals.approve` is the one way by which a person approves anything, whatever page or command it comes from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

import msgspec
import trio

from actors.catalogue.lists.marks import digest_of
from actors.catalogue.offer import Tool
from actors.catalogue.trust import Pins, Trust
from actors.errors import SupervisorError
from actors.kit import Address
from actors.protocol.wire import json
from actors.registry.actor import Message as RegistryMessage
from actors.registry.pinning import ApproveTools, Pinning, PinsRead
from actors.registry_inbox import AwaitShown
from supervisor.identity.tokens import NotKept
from supervisor.store import Store

log = logging.getLogger(__name__)

READ_AGAIN_S: Final = 5.0
SHOWN_S: Final = 10.0
"""How long an approval waits at most until its effect can be seen."""
_PINS: Final = msgspec.json.Decoder(Pins)


class NotAsSeen(SupervisorError, kind="conflict"):
    """A definition is another one now than whoever approves it has seen. Nothing was approved."""


class Approvals:
    """The approvals of one daemon; `read` makes it. `attach` says where the registry is."""

    def __init__(self, store: Store, trust: Callable[[str], Trust]) -> None:
        self._store = store
        self._trust = trust
        self._registry: Address[RegistryMessage] | None = None
        self.pinning = Pinning(trust, self._save, None)

    async def read(self, configured: Collection[str]) -> None:
        """Read what was approved in earlier runs, and forget what was of servers that are not configured any more."""
        if await self._read():
            self._store.keep_pins_of(configured)

    async def read_later(self, registry: Address[RegistryMessage]) -> None:
        """Read it as soon as it can be read, if it could not be at the start."""
        self._registry = registry
        while not self.pinning.is_read:
            await self._store.ready.wait()
            if await self._read():
                await registry.tell(PinsRead())
            else:
                await trio.sleep(READ_AGAIN_S)

    async def _read(self) -> bool:
        saved = await self._store.load_pins() if self._store.ready.is_set() else None
        if saved is None:
            return False
        read = {
            server: json.read_or(_PINS, payload, None) if isinstance(payload, bytes) else None
            for server, payload in saved
        }
        known = {server: pins for server, pins in read.items() if pins is not None}
        if unreadable := read.keys() - known.keys():
            log.warning("what is approved of %s cannot be read: approve its tools again", ", ".join(sorted(unreadable)))
        self.pinning.take(known, unreadable)
        return True

    def _save(self, server: str, pins: Pins | None) -> None:
        if pins is None:
            self._store.forget_pins(server)
        else:
            self._store.save_pins(server, partial(msgspec.json.encode, pins))

    async def find_base(self, server: str, tool: Tool) -> bytes | None:
        """Return the newest definition of a tool that was approved, as far as earlier ones are kept. A checkpoint."""
        earlier = await self._store.load_definitions(server, tool.name)
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
        with trio.move_on_after(SHOWN_S):
            await self._registry.ask(AwaitShown(server=server))
        if not await self._store.secure():
            raise NotKept(
                "it is approved from now on, but may have to be again when the daemon is started again: see /api/status"
            )


def _digest(definition: bytes) -> bytes:
    return digest_of(json.read_or(json.VALUE, definition, None))
