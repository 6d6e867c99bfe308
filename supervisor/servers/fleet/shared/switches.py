"""Servers that are switched off, at all nodes of a fleet: what is ordered at one of them is carried out at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from actors.errors import SupervisorError

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.servers.fleet.shared.records import SharedRecords

log = logging.getLogger(__name__)

KIND: Final = "switch"
ON: Final = b"on"
OFF: Final = b"off"


class SwitchBoard(Protocol):
    """Who switches the servers of this node. `switched` is called with what an operator has ordered here."""

    switched: Callable[[str, bool], None]

    def switch(self, server: str, *, on: bool) -> Awaitable[None]:
        """Carry out what was ordered elsewhere. Raises what an order raises."""


class SharedSwitches:
    """`off` are the servers that this node knows as switched off. `run` has to run."""

    def __init__(self, records: SharedRecords, board: SwitchBoard, off: Iterable[str]) -> None:
        self._board = board
        self._heard = records.hear(KIND, lambda server, payload: (server, payload != OFF))
        for server in off:
            records.know(KIND, server, OFF)
        board.switched = lambda server, on: records.put(KIND, server, ON if on else OFF)

    async def run(self) -> None:
        """Carry out what other nodes were ordered, for ever."""
        while True:
            for server, on in (await self._heard.wait(1)).items():
                try:
                    await self._board.switch(server, on=on)
                except SupervisorError as error:
                    log.warning("%s is not switched as all nodes were told: %s", server, error.message)
