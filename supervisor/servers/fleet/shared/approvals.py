"""Which definitions of tools are approved, at all nodes of a fleet: a yes at one of them is one at each.

What a node approves by itself, as it sees a server for the first time, counts only where no other one has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from actors.catalogue.trust import Pins
from supervisor.store.people.approvals import Approvals

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.servers.fleet.shared.records import SharedRecords

KIND: Final = "pins"
_PINS: Final = msgspec.msgpack.Decoder(Pins)


class SharedApprovals:
    """Implements `ApprovalSharing`. `run` has to run."""

    def __init__(self, records: SharedRecords, approvals: Approvals) -> None:
        self._records = records
        self._approvals = approvals
        self._heard: dict[str, Pins] = {}
        self._bell = trio.lowlevel.ParkingLot()
        records.follow(KIND, self._hear)
        approvals.share(self)

    def tell(self, server: str, pins: Pins) -> None:
        self._heard.pop(server, None)  # it is older
        self._records.put(KIND, server, msgspec.msgpack.encode(pins))

    def offer(self, server: str, pins: Pins) -> None:
        self._records.offer(KIND, server, msgspec.msgpack.encode(pins))

    async def read(self) -> Mapping[str, Pins]:
        await self._records.complete.wait()
        heard, self._heard = self._heard, {}
        return heard

    async def run(self) -> None:
        """Take what other nodes approve, for ever, once it is known what is approved here."""
        await self._approvals.known.wait()
        while True:
            while not self._heard:
                await self._bell.park()
            heard, self._heard = self._heard, {}
            await self._approvals.hear(heard)

    def _hear(self, server: str, payload: bytes | None) -> None:
        if payload is not None:  # nobody takes an approval back
            self._heard[server] = _PINS.decode(payload)
            self._bell.unpark_all()
