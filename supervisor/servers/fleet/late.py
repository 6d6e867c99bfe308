"""How a daemon begins to be a node of a fleet. What that needs is imported only where there is one."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from actors.errors import ConfigError
from actors.kit import Latest
from actors.registry.actor import Memory
from actors.transport.stdio.resources.room import Room
from supervisor.config.sections import FleetSettings
from supervisor.fleet.engine import Engine
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.running import Recall
from supervisor.store import Store

if TYPE_CHECKING:  # TLS, certificates and the client of the engine take a tenth of a second
    from supervisor.servers.fleet.node import FleetNode


@asynccontextmanager
async def open_engine(settings: FleetSettings) -> AsyncIterator[Engine | None]:
    """Open the engine that is configured; None where there is none. Raises `ConfigError` without its package."""
    if not settings.engine:
        yield None
        return
    try:
        from supervisor.fleet.valkey_engine import open_valkey
    except ModuleNotFoundError as error:
        hint = "pip install 'mcpvisor[fleet]'"
        raise ConfigError(f"a fleet needs the package {error.name}", key="supervisor.fleet", hint=hint) from None
    async with open_valkey(settings.engine, settings.prefix, settings.lease_s, settings.max_commands_per_s) as engine:
        yield engine


def share_keys(data: DataDir, settings: FleetSettings) -> None:
    """Make the keys that all nodes need of what the fleet has in common, if there is one."""
    if settings.engine:
        data.fleet_keys = tuple(map(_key_of, settings.keys))


async def make_node(
    engine: Engine, deployment: Latest[Deployment], data: DataDir, room: Room, store: Store, core: trio.Nursery
) -> FleetNode:
    """Return this daemon as a node, which is one once it runs, and knows what it had seen when it ran last."""
    from supervisor.fleet.links.links import FleetKeys
    from supervisor.servers.fleet.node import FleetNode

    keys = FleetKeys([_key_of(key) for key in deployment.value.settings.fleet.keys])
    node = FleetNode(engine, deployment, keys, data, room, store.fleet_records)
    if store.ready.is_set():
        await _recall(node, store)
    else:
        core.start_soon(_recall, node, store)
    return node


async def _recall(node: FleetNode, store: Store) -> None:
    await store.ready.wait()
    await node.records.restore(await store.fleet_records.load())


def memory_of(fleet: FleetNode | None, memory: Memory) -> Memory:
    """Return what remembers servers; in a fleet, it tells the other nodes, too."""
    if fleet is None:
        return memory
    from supervisor.servers.fleet.offers import FleetMemory

    return FleetMemory(memory, fleet.offers)


def recall_of(fleet: FleetNode | None, kept: Recall) -> Recall:
    """Return what is known of launches that not all share; in a fleet, also what other nodes have said."""
    if fleet is None:
        return kept
    from supervisor.servers.fleet.offers import FleetRecall

    return FleetRecall(kept, fleet.offers)


def _key_of(text: str) -> bytes:
    """Return a key as it is used: what is configured is a text of any form."""
    return hashlib.sha256(text.encode()).digest()
