"""Nodes of a fleet in this loop, each with a directory of its own, and a real engine between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from supervisor.host.datadir import open_data_dir
from tests.fleet.valkey import ValkeyServer, settle, valkey
from tests.scenario.daemon import World, world

KEY = "the key of this fleet, which is long"


@asynccontextmanager
async def fleet_engine(directory: Path) -> AsyncIterator[ValkeyServer]:
    """Run an engine that grants at once."""
    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine:
        await settle(engine)
        yield engine


@asynccontextmanager
async def fleet_node(
    directory: Path,
    engine: ValkeyServer,
    name: str,
    servers: dict[str, Any],
    fleet: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[World]:
    """Run a node. `fleet`: more of that section of its file; `more`: see `world`."""
    (directory / name).mkdir(exist_ok=True)
    section = {"engine": engine.url, "keys": [KEY], "node": name, **(fleet or {})}
    with open_data_dir(directory / name / "data", {}) as data:
        async with world(directory / name, data, servers, waits=False, fleet=section, **more) as at:
            yield at


async def until_known(at: World, user: str) -> None:
    """Wait until a node knows the other one, and the token of somebody."""
    await at.operator.until("/api/nodes", lambda told: len(told["nodes"]) == 2)
    while (await at[user].send("ping")).status_code != 200:  # noqa: ASYNC110 - nothing tells
        await trio.sleep(0.02)
