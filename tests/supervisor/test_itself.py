"""A daemon that was configured as a server of itself, by whatever way, says so and does not nest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.protocol.agreement.versions import META_VERSION
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running


class Bridge:
    """Passes every message of a pipe on over HTTP, as bridges for clients do that speak stdio only."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._client: httpx2.AsyncClient | None = None
        self._open = trio.Event()

    def open(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._open.set()

    def connect(self, server: DeployedServer) -> MemoryTransport:
        del server
        return MemoryTransport(self._serve)

    async def _serve(self, peer: MemoryPeer) -> int:
        await self._open.wait()
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            for line in arrived:
                await self._pass_on(peer, json.loads(line))
        return 0

    async def _pass_on(self, peer: MemoryPeer, message: dict[str, Any]) -> None:
        assert self._client is not None
        version = message.get("params", {}).get("_meta", {}).get(META_VERSION)
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if version:
            headers |= {"mcp-protocol-version": version, "mcp-method": message["method"]}
        answer = await self._client.post(self._path, headers=headers, json=message)
        if "id" in message:
            await peer.write(answer.content.strip() + b"\n")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/all"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_daemon_behind_a_bridge_knows_itself_and_says_that_the_entry_has_to_go(
    tmp_path: Path, data: DataDir, path: str, era: str
) -> None:
    bridge = Bridge(path)
    entry = {"command": "bridge", "era": era}
    async with running(configuration(tmp_path, {"itself": entry}), data, connect=bridge.connect) as client:
        bridge.open(client)
        assert (await Client(client).ready())["failed"] == ["itself"]
        (row,) = (await client.get("/api/status")).json()["servers"]
        assert row["state"] == "failed"
        assert "this daemon itself answers there" in row["last_error"]
        assert "remove the entry" in row["last_error"]


async def test_another_daemon_is_a_server_like_others(tmp_path: Path, data: DataDir) -> None:
    bridge = Bridge("/mcp")
    (tmp_path / "other").mkdir()
    with open_data_dir(tmp_path / "other" / "data", {}) as elsewhere:
        async with running(configuration(tmp_path / "other", {}), elsewhere) as other:
            bridge.open(other)
            entry = {"command": "bridge"}
            async with running(configuration(tmp_path, {"other": entry}), data, connect=bridge.connect) as client:
                assert (await Client(client).ready())["failed"] == []
                (row,) = (await client.get("/api/status")).json()["servers"]
                assert (row["state"], row["tools"]) == ("ready", 4)
