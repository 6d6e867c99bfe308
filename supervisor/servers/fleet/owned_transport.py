"""How a server is reached that only the owner of its launch may reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from actors.errors import SpawnFailed
from actors.transport.base import Connection, Transport

NOT_OURS = "this node of the fleet does not own it any more"


class OwnedTransport:
    """Implements `Transport`. `fence` gives that by which this node owns the launch now; 0 if it does not."""

    def __init__(self, inner: Transport, fence: Callable[[], int]) -> None:
        self.kind = inner.kind
        self._inner = inner
        self._fence = fence

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Start one incarnation, if the launch is ours before and after."""
        fence = self._fence()
        if not fence:
            raise SpawnFailed(NOT_OURS)
        async with self._inner.connect() as connection:
            if self._fence() != fence:
                raise SpawnFailed(NOT_OURS)
            yield connection
