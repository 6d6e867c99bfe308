"""What a client may see of the catalogue, and why something is not in it yet."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from actors.catalogue.naming import readings
from actors.catalogue.snapshot import Catalogue
from actors.errors import ServerError, ServerGaveUp, ServerStarting
from actors.kit import Latest
from actors.lifecycle import State
from actors.messages import ServerStatus
from supervisor.front.service import Client

FIRST_INDEX_S = 30.0
"""How long a request waits, right after the start, for the index to be built."""


class Visible:
    """The newest catalogue through the eyes of a client."""

    def __init__(self, catalogue: Latest[Catalogue], statuses: Latest[Mapping[str, ServerStatus]]) -> None:
        self._catalogue = catalogue
        self._statuses = statuses

    @property
    def statuses(self) -> Mapping[str, ServerStatus]:
        """How each server is doing, as last reported."""
        return self._statuses.value

    def now(self, principal: str) -> Catalogue:
        """Return what a principal sees, complete or not."""
        return self._catalogue.value.view(principal)

    async def indexed(self, client: Client) -> Catalogue:
        """Return what a client sees, once what is known of earlier runs is in it. Raises `ServerStarting`."""
        with trio.move_on_after(FIRST_INDEX_S):
            while not self._catalogue.value.indexed:
                await self._catalogue.changed(self._catalogue.version)
        if not self._catalogue.value.indexed:
            raise ServerStarting("the daemon is still reading its catalogue", retry_after_s=5.0)
        return self.now(client.principal)

    def undiscovered(self, seen: Catalogue, path: str) -> ServerError | None:
        """Return why nothing is known of the server that `path` names; None if that is not what is wrong."""
        for server, _ in readings(path, self._statuses.value.keys() - seen.entries.keys()):
            if self._statuses.value[server].state is not State.FAILED:
                text = f"server {server!r} is still being discovered; try again shortly"
                return ServerStarting(text, server=server, retry_after_s=1.0)
            # The reason may hold paths and the server's own words: those are for operators.
            return ServerGaveUp(f"server {server!r} could not be started; its operator sees why", server=server)
        return None
