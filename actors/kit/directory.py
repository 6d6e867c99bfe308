"""Where running actors are found by name. Addresses are looked up for each use and never kept: an actor may restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from actors.errors import ServerStarting, SupervisorError, UnknownServer
from actors.kit import Address

M = TypeVar("M")

BEGIN_S: Final = 1.0
"""An actor that is to begin has begun after so many seconds."""


class Directory(Generic[M]):
    """Names of running actors, in the order they were set, and why others of known names do not run.

    `expected` says of a name whether there is to be an actor: where nobody has explained why there is none, it is about
    to begin.
    """

    def __init__(self, expected: Callable[[str], bool] = lambda name: False) -> None:
        self._expected = expected
        self._addresses: dict[str, Address[M]] = {}
        self._absent: dict[str, Callable[[], SupervisorError]] = {}

    def find(self, name: str) -> Address[M] | None:
        return self._addresses.get(name)

    def names(self) -> list[str]:
        return list(self._addresses)

    def explain(self, name: str, why: Callable[[], SupervisorError] | None) -> None:
        """Say what to answer to those who ask for a name that is not running; None takes it back."""
        self._absent.pop(name, None)
        if why is not None:
            self._absent[name] = why

    def why_not(self, name: str) -> SupervisorError:
        why = self._absent.get(name)
        if why is not None:
            return why()
        if self._expected(name):
            return ServerStarting(f"server {name!r} is about to start", server=name, retry_after_s=BEGIN_S)
        return UnknownServer(f"there is no server {name[:80]!r}")

    def withdraw(self, name: str) -> None:
        """Have a running actor not be found any more."""
        self._addresses.pop(name, None)

    def admit(self, name: str, address: Address[M]) -> None:
        """Have a running actor be found again that was withdrawn."""
        self._addresses[name] = address

    @contextmanager
    def register(self, name: str, address: Address[M]) -> Iterator[None]:
        self._addresses[name] = address
        try:
            yield
        finally:
            if self._addresses.get(name) is address:
                del self._addresses[name]
