"""What a node of a fleet knows of tokens after all have been down: more than the engine says."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import coredis
import pytest
import trio

from tests.fleet.valkey import settle
from tests.scenario.client import Json
from tests.scenario.daemon import World
from tests.scenario.fleet import fleet_engine, fleet_node

pytestmark = pytest.mark.process

SERVERS = {"desk": {"command": "x"}}


def ids_of(told: Json) -> set[str]:
    return {row["id"] for row in told["tokens"]}


async def until_known(at: Collection[World], *ids: str) -> None:
    """Wait until all know just these tokens."""
    for each in at:
        await each.operator.until("/api/access-tokens", lambda told: ids_of(told) == {*ids})


async def test_a_token_that_was_revoked_while_a_node_was_away_stays_so_after_a_start_with_an_empty_engine(
    tmp_path: Path,
) -> None:
    def at(name: str) -> AbstractAsyncContextManager[World]:
        return fleet_node(tmp_path, engine, name, SERVERS, auth="tokens")

    async with fleet_engine(tmp_path) as engine:
        async with at("a") as a, at("b") as b:
            id_ = await a.admit("ana")
            token = a.keys["ana"]
            await until_known([a, b], id_)
            assert (await b[token].send("ping")).status_code == 200
        async with at("b") as b:
            await b.revoke(id_)
        engine.kill()
        engine.start()
        await settle(engine)
        async with at("a") as a, at("b") as b:
            await until_known([a, b])
            await trio.sleep(0.2)
            await until_known([a, b])
            assert [(await each[token].send("ping")).status_code for each in (a, b)] == [401, 401]


async def test_a_revoked_token_is_not_brought_back_by_an_old_record_in_the_engine(tmp_path: Path) -> None:
    records = "mcpvisor:{fleet}:records"
    async with fleet_engine(tmp_path) as engine, coredis.Redis.from_url(engine.url) as client:
        async with fleet_node(tmp_path, engine, "a", SERVERS, auth="tokens") as at:
            id_ = await at.admit("ana")
            old = await client.hgetall(records)
            await at.revoke(id_)
            token = at.keys["ana"]
        await client.hset(records, {key: value for key, value in old.items() if key})
        async with fleet_node(tmp_path, engine, "a", SERVERS, auth="tokens") as at:
            (key,) = filter(None, old)
            with trio.move_on_after(5):
                while await client.hget(records, key) == old[key]:  # noqa: ASYNC110 - nothing tells of it
                    await trio.sleep(0.02)
            assert ids_of(await at.operator.page("/api/access-tokens")) == set()
            assert (await at[token].send("ping")).status_code == 401
            assert await client.hget(records, key) != old[key], "the engine is told again"
