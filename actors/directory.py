"""Where running actors are found by name. Addresses are looked up for each use and never kept: an actor may restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from actors.kit import Address

M = TypeVar("M")


class Directory(Generic[M]):
    """Names of running actors, in the order they were set."""

    def __init__(self) -> None:
        self._addresses: dict[str, Address[M]] = {}

    def find(self, name: str) -> Address[M] | None:
        """Return the address of the running actor of that name, None if there is none now."""
        return self._addresses.get(name)

    def names(self) -> list[str]:
        """Return the names of all running actors."""
        return list(self._addresses)

    @contextmanager
    def registered(self, name: str, address: Address[M]) -> Iterator[None]:
        """Be found under `name` for the block."""
        self._addresses[name] = address
        try:
            yield
        finally:
            if self._addresses.get(name) is address:
                del self._addresses[name]
