"""What a node of a fleet knows of tokens after all have been down: more than the engine says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import coredis
import httpx2
import pytest
import trio

from supervisor.host.datadir import open_data_dir
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fleet.valkey import ValkeyServer, settle, valkey
from tests.scenario.daemon import configuration, running

pytestmark = pytest.mark.process

KEY = "the key of this fleet, which is long"


class Nodes:
    """Those of a fleet that run, by name."""

    def __init__(self, directory: Path, clients: dict[str, httpx2.AsyncClient]) -> None:
        self._directory = directory
        self._clients = clients

    async def operate(self, node: str, method: str, path: str, **more: Any) -> Any:
        key = (self._directory / node / "data" / "page.key").read_bytes().hex()
        headers = {"authorization": f"Bearer {key}"}
        return (await self._clients[node].request(method, path, headers=headers, **more)).json()

    async def status_of(self, node: str, token: str) -> int:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"authorization": f"Bearer {token}"}
        return (await self._clients[node].post("/mcp", json=ping, headers=headers)).status_code

    async def until_known(self, ids: set[str]) -> None:
        """Wait until all know just these tokens."""
        with trio.fail_after(15):
            for node in self._clients:
                while await self.known(node) != ids:  # noqa: ASYNC110 - nothing tells a page
                    await trio.sleep(0.02)

    async def known(self, node: str) -> set[str]:
        return {row["id"] for row in (await self.operate(node, "GET", "/api/access-tokens"))["tokens"]}


@asynccontextmanager
async def nodes(directory: Path, engine: ValkeyServer, names: Collection[str]) -> AsyncIterator[Nodes]:
    clients: dict[str, httpx2.AsyncClient] = {}
    with ExitStack() as stack:
        async with AsyncExitStack() as daemons:
            for name in names:
                (directory / name).mkdir(exist_ok=True)
                fleet = {"engine": engine.url, "keys": [KEY], "node": name}
                config = configuration(directory / name, {"desk": {"command": "x"}}, fleet=fleet, auth="tokens")
                data = stack.enter_context(open_data_dir(directory / name / "data", {}))
                daemon = running(config, data, connect=lambda server: MemoryTransport(FakeServer().serve))
                clients[name] = await daemons.enter_async_context(daemon)
            yield Nodes(directory, clients)


async def test_a_token_that_was_revoked_while_a_node_was_away_stays_so_after_a_start_with_an_empty_engine(
    tmp_path: Path,
) -> None:
    (tmp_path / "engine").mkdir()
    with valkey(tmp_path / "engine") as engine:
        await settle(engine)
        async with nodes(tmp_path, engine, "ab") as both:
            made = await both.operate("a", "POST", "/api/access-tokens", json={"user": "ana"})
            await both.until_known({made["id"]})
            assert await both.status_of("b", made["token"]) == 200
        async with nodes(tmp_path, engine, "b") as one:
            await one.operate("b", "DELETE", f"/api/access-tokens/{made['id']}")
        engine.kill()
        engine.start()
        await settle(engine)
        async with nodes(tmp_path, engine, "ab") as both:
            await both.until_known(set())
            await trio.sleep(0.2)
            await both.until_known(set())
            assert [await both.status_of(node, made["token"]) for node in "ab"] == [401, 401]


async def test_a_revoked_token_is_not_brought_back_by_an_old_record_in_the_engine(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    records = "mcpvisor:{fleet}:records"
    with valkey(tmp_path / "engine") as engine:
        await settle(engine)
        async with coredis.Redis.from_url(engine.url) as client:
            async with nodes(tmp_path, engine, "a") as one:
                made = await one.operate("a", "POST", "/api/access-tokens", json={"user": "ana"})
                old = await client.hgetall(records)
                await one.operate("a", "DELETE", f"/api/access-tokens/{made['id']}")
            await client.hset(records, {key: value for key, value in old.items() if key})
            async with nodes(tmp_path, engine, "a") as one:
                (key,) = filter(None, old)
                with trio.move_on_after(5):
                    while await client.hget(records, key) == old[key]:  # noqa: ASYNC110 - nothing tells of it
                        await trio.sleep(0.02)
                assert await one.known("a") == set()
                assert await one.status_of("a", made["token"]) == 401
                assert await client.hget(records, key) != old[key], "the engine is told again"
