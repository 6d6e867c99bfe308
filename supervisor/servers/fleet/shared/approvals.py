"""Which definitions of tools are approved, at all nodes of a fleet: a yes at one of them is one at each.

What a node approves by itself, as it sees a server for the first time, counts only where no other one has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from actors.catalogue.trust import Pins
from supervisor.store.approvals import Approvals

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.servers.fleet.shared.records import SharedRecords

KIND: Final = "pins"
_PINS: Final = msgspec.msgpack.Decoder(Pins)


class SharedApprovals:
    """Implements `ApprovalSharing`. `run` has to run."""

    def __init__(self, records: SharedRecords, approvals: Approvals) -> None:
        self._records = records
        self._approvals = approvals
        self._heard = records.hear(KIND, _read)
        approvals.share(self)

    def tell(self, server: str, pins: Pins) -> None:
        self._records.put(KIND, server, msgspec.msgpack.encode(pins))

    def offer(self, server: str, pins: Pins) -> None:
        self._records.offer(KIND, server, msgspec.msgpack.encode(pins))

    async def read(self) -> Mapping[str, Pins]:
        await self._records.complete.wait()
        return _given(self._heard.take())

    async def run(self) -> None:
        """Take what other nodes approve, for ever, once it is known what is approved here."""
        await self._approvals.known.wait()
        while True:
            await self._approvals.hear(_given(await self._heard.wait()))


def _read(server: str, payload: bytes | None) -> tuple[str, Pins | None]:
    return server, None if payload is None else _PINS.decode(payload)


def _given(heard: Mapping[str, Pins | None]) -> dict[str, Pins]:
    return {server: pins for server, pins in heard.items() if pins is not None}  # nobody takes an approval back
