"""A scriptable `Service`: what each method does is a function of the test, and what was asked is written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import trio

from actors.errors import UnknownMethod
from actors.kit import Latest
from actors.principal import Principal
from supervisor.service.client import Client
from supervisor.service.exchange import Exchange
from supervisor.service.port import Revisions

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

    def revisions(self, principal: Principal) -> Revisions:
        return self.current

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
