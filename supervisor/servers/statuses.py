"""How running servers are doing, read from their actors without asking them.

An actor's handler runs to its end before anybody else has a turn, so whatever is read in between is whole. To ask two
thousand actors instead would wake all of them in one turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from actors.messages import ServerStatus

Read = Callable[[bool], ServerStatus]
"""Tells how one server is doing, at once; with its stderr, which takes some milliseconds, only for True."""


class Statuses:
    """Those of all servers that have an actor."""

    def __init__(self) -> None:
        self._read: dict[str, Read] = {}

    @contextmanager
    def register(self, server: str, read: Read) -> Iterator[None]:
        self._read[server] = read
        try:
            yield
        finally:
            self.end(server, read)

    def end(self, server: str, read: Read) -> None:
        """Read no more from an actor that has ended; another one of this name may be there already."""
        if self._read.get(server) == read:
            del self._read[server]

    def withdraw(self, server: str) -> None:
        """Say nothing more of an actor that still runs."""
        self._read.pop(server, None)

    def names(self, reported: Mapping[str, ServerStatus]) -> list[str]:
        return sorted(reported.keys() | self._read.keys())

    def of(self, server: str, reported: Mapping[str, ServerStatus], *, stderr: bool = False) -> ServerStatus | None:
        """Return how a server is doing now, or as it reported last if it has no actor; None if nothing is known."""
        read = self._read.get(server)
        return reported.get(server) if read is None else read(stderr)
