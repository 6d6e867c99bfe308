"""What names of prompts and resources mean at a door, whichever it is."""

from __future__ import annotations

from typing import Protocol

from actors.catalogue.names.resolution import Meaning
from supervisor.service.client import Client


class Naming(Protocol):
    """What names mean at a door: a server, and its own name. `since` is when the request came, by the trio clock."""

    async def prompt(self, client: Client, name: str, since: float) -> Meaning:
        """Raises `UnknownPrompt`, and why a server cannot be asked. A checkpoint if it waits for anything."""

    async def resource(self, client: Client, uri: str, since: float) -> Meaning:
        """Raises `RemoteError` in the codes of the client's era, and as `prompt` does."""
