"""Values of teams and users in a fleet: what is given, or taken back, at one node holds at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from supervisor.identity.people import Given, GivenValues, Tier
from supervisor.values.checks import ValuePlace
from supervisor.values.table import ValueTable

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.servers.fleet.records import SharedRecords

KIND: Final = "value"
MAX_AT_ONCE: Final = 50
"""So many that were heard of are taken before others get their turn: each is sealed for the disk."""
_PLACE: Final = msgspec.json.Decoder(tuple[Tier, str, str, str])
_GIVEN: Final = msgspec.json.Decoder(Given)


class SharedValues:
    """Implements `ValueSharing`. `run` has to run."""

    def __init__(self, records: SharedRecords, table: ValueTable) -> None:
        self._records = records
        self._table = table
        self._heard = records.hear(KIND, _read)
        self._known = trio.Event()
        self.flush = records.flush
        table.sharing, table.taken = self, self._know
        if table.read:
            self._know(table.values)

    def tell(self, place: ValuePlace, given: Given | None) -> None:
        self._records.put(KIND, _name_of(place), None if given is None else msgspec.json.encode(given))

    async def run(self) -> None:
        """Take what other nodes were given, for ever, once those that this one has kept are known."""
        await self._known.wait()
        while True:
            self._table.hear(await self._heard.wait(MAX_AT_ONCE))
            await trio.lowlevel.checkpoint()

    def _know(self, values: GivenValues) -> None:
        for (tier, owner), servers in values.stored.items():
            for server, given in servers.items():
                for name, value in given.items():
                    place = ValuePlace(tier, owner, server, name)
                    self._records.know(KIND, _name_of(place), msgspec.json.encode(value))
        self._known.set()


def _read(name: str, payload: bytes | None) -> tuple[ValuePlace, Given | None]:
    return ValuePlace(*_PLACE.decode(name)), None if payload is None else _GIVEN.decode(payload)


def _name_of(place: ValuePlace) -> str:
    return msgspec.json.encode(msgspec.structs.astuple(place)).decode()
