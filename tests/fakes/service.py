"""A scriptable `Service`: what each method does is a function of the test, and what was asked is written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec
import trio

from actors.errors import UnknownDoor, UnknownMethod
from actors.kit import Latest
from actors.protocol.wire.mirrors import Mirror
from supervisor.identity.people import Person
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client, Updates
from supervisor.service.port import Door, Revisions, Service

Behaviour = Callable[[Client, msgspec.Raw], Awaitable[bytes]]


class FakeService:
    """Answers the methods it was given; `asked` has every request in order."""

    def __init__(self, **behaviours: Behaviour) -> None:
        self.changes: Latest[object] = Latest(None)
        named = {name.replace("__", "/"): behaviour for name, behaviour in behaviours.items()}
        self.behaviours: dict[str, Behaviour] = named
        self.asked: list[tuple[Client, str, bytes]] = []
        self.exchanges: list[Exchange] = []
        self.current = Revisions()
        self.mirrors: dict[str, tuple[Mirror, ...]] = {}
        self.watched: set[str] = set()
        self.left: list[str] = []
        self.subscribers: list[Updates] = []

    @property
    def revisions(self) -> Revisions:
        return self.current

    async def mirrors_of(self, tool: str) -> tuple[Mirror, ...]:
        return self.mirrors.get(tool, ())

    async def perform(self, exchange: Exchange) -> bytes:
        client, method, params = exchange.client, exchange.method, exchange.params
        if method == "initialize" and method not in self.behaviours:
            return self.initialize(client.version)
        self.asked.append((client, method, bytes(params)))
        self.exchanges.append(exchange)
        behaviour = self.behaviours.get(method)
        if behaviour is None:
            raise UnknownMethod(f"no method {method}")
        return await behaviour(client, params)

    async def subscribe(self, exchange: Exchange, name: str) -> None:
        """Subscribe to whatever is `watched`."""
        await trio.lowlevel.checkpoint()
        if name not in self.watched or exchange.session.updates is None:
            raise UnknownMethod(f"nothing is told of {name}")
        exchange.session.updates.hold(name, lambda: self.left.append(name))
        exchange.session.updates.used = True
        self.subscribers.append(exchange.session.updates)

    def initialize(self, version: str) -> bytes:
        return msgspec.json.encode(
            {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "fake", "version": "1"}}
        )

    def change(self, **revisions: int) -> None:
        """Set revisions and wake whoever watches."""
        self.current = msgspec.structs.replace(self.current, **revisions)
        self.changes.set(None)


def returning(result: bytes) -> Behaviour:
    """A method that always has this result."""

    async def behave(client: Client, params: msgspec.Raw) -> bytes:
        await trio.lowlevel.checkpoint()
        return result

    return behave


def raising(error: Exception) -> Behaviour:
    """A method that always fails."""

    async def behave(client: Client, params: msgspec.Raw) -> bytes:
        await trio.lowlevel.checkpoint()
        raise error

    return behave


async def forever(client: Client, params: msgspec.Raw) -> bytes:
    """A method that never returns."""
    await trio.sleep_forever()


class SomeDoors:
    """Implements `Doors`: these services are behind these names, whatever the profile."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self.doors = {name: Door(name, service) for name, service in services.items()}

    async def find_for(self, person: Person, name: str, profile: str = "", execute: str = "") -> Door:
        await trio.lowlevel.checkpoint()
        return self.find(name, profile, execute)

    def find(self, name: str, profile: str = "", execute: str = "") -> Door:
        if name not in self.doors:
            raise UnknownDoor(f"there is no door {name[:100]!r} here")
        return self.doors[name]


class OneDoor(SomeDoors):
    """Where there is nothing but the door without a name, and no profile."""

    def __init__(self, service: Service) -> None:
        super().__init__({"": service})

    def find(self, name: str, profile: str = "", execute: str = "") -> Door:
        if profile or execute:
            raise UnknownDoor(f"there is no profile {profile[:100]!r} here")
        return super().find(name)
