"""A daemon that was configured as a server of itself, by whatever way, says so and does not nest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import trio

from actors.protocol.agreement.versions import META_VERSION
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer, MemoryTransport
from tests.scenario.daemon import world


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
        return MemoryTransport(self._serve, stop_s=0.1)

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


async def test_a_daemon_behind_a_bridge_knows_itself_and_says_that_the_entry_has_to_go(
    tmp_path: Path, data: DataDir
) -> None:
    bridges = {
        f"{era}{number}": Bridge(path)
        for era in ("legacy", "modern")
        for number, path in enumerate(("/mcp", "/mcp/all"))
    }
    servers = {name: {"command": "bridge", "era": name[:-1]} for name in bridges}
    connect = {"connect": lambda server: bridges[server.name].connect(server)}
    async with world(tmp_path, data, servers, waits=False, daemon=connect) as at:
        for bridge in bridges.values():
            bridge.open(at.http)
        assert {*(await at.ready())["failed"]} == servers.keys()
        for name, row in (await at.rows()).items():
            assert row["state"] == "failed", name
            assert "this daemon itself answers there" in row["last_error"], name
            assert "remove the entry" in row["last_error"], name


async def test_another_daemon_is_a_server_like_others(tmp_path: Path, data: DataDir) -> None:
    bridge = Bridge("/mcp")
    (tmp_path / "other").mkdir()
    with open_data_dir(tmp_path / "other" / "data", {}) as elsewhere:
        async with world(tmp_path / "other", elsewhere, {}) as other:
            bridge.open(other.http)
            servers, connect = {"other": {"command": "bridge"}}, {"connect": bridge.connect}
            async with world(tmp_path, data, servers, daemon=connect) as at:
                assert (await at.ready())["failed"] == []
                row = await at.row("other")
                assert (row["state"], row["tools"]) == ("ready", 4)
