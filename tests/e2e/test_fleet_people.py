"""Three daemons and a real engine, and a server that is started for each person: nodes are killed, stopped, thawed.

Under load no launch runs in two places, and no call is executed twice.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tests.e2e.daemons import Daemon, client, running
from tests.e2e.test_fleet import LEASE_S, LOCKED, SERVERS, Fleet, Load
from tests.fleet.valkey import settle, valkey
from tests.scenario.client import PATIENCE_S, Json

pytestmark = pytest.mark.e2e

USERS = SERVERS
"""Each is called as what their server is started with, and so is that in the ledger."""
IDENTITY: Json = {"users": {user: {"values": {"desk": {"NAME": user}}} for user in USERS}}


class FleetOfPeople(Fleet):
    """What is called a server there is the launch of a user."""

    def __init__(self, nodes: dict[str, Daemon], directory: Path) -> None:
        super().__init__(nodes, directory)
        self.keys: dict[str, str] = {}

    async def call(self, daemon: Daemon, server: str, key: str) -> Json:
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "desk:note", "arguments": {"key": key}}}
        return await daemon.showing(authorization=f"Bearer {self.keys[server]}").rpc("tools/call", **params)

    async def owner(self, server: str) -> str:
        for name, daemon in self.nodes.items():
            if daemon.process.poll() is not None:
                continue
            rows = (await as_operator(daemon, "GET", "/api/status"))["servers"]
            if any(row.get("users") == [server] and row["state"] == "ready" for row in rows):
                return name
        raise AssertionError(f"what {server} has runs nowhere")

    async def admit(self, daemon: Daemon) -> None:
        for user in USERS:
            self.keys[user] = (await as_operator(daemon, "POST", "/api/access-tokens", {"user": user}))["token"]


async def as_operator(daemon: Daemon, method: str, path: str, body: Json | None = None) -> Any:
    key = (daemon.directory / "data" / "page.key").read_bytes().hex()
    async with client() as http:
        answer: httpx2.Response = await http.request(
            method, daemon.url + path, json=body, headers={"authorization": f"Bearer {key}"}
        )
    assert answer.is_success, answer.text
    return answer.json()


@asynccontextmanager
async def fleet_of_people(directory: Path, *names: str) -> AsyncIterator[FleetOfPeople]:
    servers = {"desk": {"command": sys.executable, "args": ["-I", LOCKED, "${user:NAME}", str(directory)]}}
    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine, ExitStack() as stack:
        await settle(engine)
        fleet = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": LEASE_S}
        nodes = {}
        for name in names:
            own: Json = {"fleet": {**fleet, "node": name}, "auth": "tokens", "identity": IDENTITY}
            nodes[name] = stack.enter_context(running(directory / name, servers, leaves_calls=True, **own))
        several = FleetOfPeople(nodes, directory)
        several.engine = engine
        await several.admit(nodes[names[0]])
        yield several


async def test_what_a_person_has_runs_once_whatever_becomes_of_its_node(tmp_path: Path) -> None:
    async with fleet_of_people(tmp_path, "a", "b", "c") as three:
        await three.all_answered()
        assert {entry["server"] for entry in three.noted("start")} == {*USERS}
        load = Load(three, 7)
        async with load.on():
            await trio.sleep(1.0)
            killed = await three.owner("one")
            three.nodes[killed].process.kill()
            for daemon in three.others(killed):
                await three.answered(daemon, "one", PATIENCE_S)
            stopped = await three.owner("one")
            (left,) = three.others(killed, stopped)
            three.nodes[stopped].process.send_signal(signal.SIGSTOP)
            try:
                for user in USERS:
                    await three.answered(left, user, PATIENCE_S)
            finally:
                three.nodes[stopped].process.send_signal(signal.SIGCONT)
            for user in USERS:
                await three.answered(three.nodes[stopped], user, PATIENCE_S)
        load.check(lost_at_most=len(load.answers))
