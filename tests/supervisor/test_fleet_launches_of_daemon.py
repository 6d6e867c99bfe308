"""Launches of people in a fleet: each is at one node, whichever its people come to, and they are spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.servers.deployment import DeployedServer
from supervisor.servers.launches import running as running_module
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fleet.valkey import ValkeyServer
from tests.scenario.client import eventually
from tests.scenario.daemon import World
from tests.scenario.fleet import fleet_engine, fleet_node, until_known

pytestmark = pytest.mark.process

SERVERS: dict[str, Any] = {"forge": {"command": "x", "env": {"TOKEN": "${user:TOKEN}"}}}
USERS = [f"user{number}" for number in range(16)]
IDENTITY: dict[str, Any] = {
    "users": {user: {"role": "admin", "values": {"forge": {"TOKEN": f"of-{user}"}}} for user in USERS[1:]}
    | {USERS[0]: {"role": "admin"}}  # whose value the test sets
}


class NodesOfPeople:
    """Two nodes, `at` them whoever has a key, and the servers that were started: by value, at which node."""

    def __init__(self, engine: ValkeyServer) -> None:
        self.engine = engine
        self.at: dict[str, World] = {}
        self.fakes: defaultdict[str, dict[str, FakeServer]] = defaultdict(dict)

    def connect(self, node: str, server: DeployedServer) -> MemoryTransport:
        value = server.launch.env["TOKEN"]
        fake = self.fakes[value].setdefault(node, FakeServer(tools=[*map(tool, ("use", value.replace("-", "_")))]))
        return MemoryTransport(fake.serve)

    def running(self, value: str) -> list[str]:
        """Return at which nodes something runs that was started with a value, once for each process."""
        fakes = self.fakes[value].items()
        return [node for node, fake in fakes for _ in range(fake.starts - fake.exits)]

    async def use(self, node: str, user: str) -> dict[str, Any]:
        """Call the server as somebody."""
        return await self.at[node][user].executed("forge:use", node=node)

    async def give(self, node: str, value: str) -> None:
        """Give the value of the first user at a node."""
        path = f"/api/values/user/{USERS[0]}/forge/TOKEN"
        given = await self.at[node][USERS[0]].ask("PUT", path, json={"value": value})
        assert given.status_code == 200, given.text


@asynccontextmanager
async def nodes_of_people(directory: Path, *, lease_s: float = 60.0) -> AsyncIterator[NodesOfPeople]:
    more: dict[str, Any] = {"auth": "tokens", "identity": IDENTITY, "fleet": {"lease_s": lease_s}}
    async with fleet_engine(directory) as engine:
        two = NodesOfPeople(engine)
        of_a, of_b = ({"connect": partial(two.connect, name)} for name in "ab")
        async with (
            fleet_node(directory, engine, "a", SERVERS, daemon=of_a, **more) as a,
            fleet_node(directory, engine, "b", SERVERS, daemon=of_b, **more) as b,
        ):
            two.at = {"a": a, "b": b}
            for user in USERS:
                await a.admit(user)
            b.keys |= {user: a.keys[user] for user in USERS}
            for each in (a, b):
                await until_known(each, USERS[-1])
            yield two


async def until_ended(two: NodesOfPeople, *values: str) -> None:
    """Wait until nothing runs any more that was started with these."""
    while any(two.running(value) for value in values):  # noqa: ASYNC110 - processes end
        await trio.sleep(0.02)


async def test_each_has_one_process_at_some_node_whichever_they_call(tmp_path: Path) -> None:
    async with nodes_of_people(tmp_path) as two:
        for user in USERS[1:]:
            for node in "ab":
                assert f"forge__of_{user}" in await two.at[node][user].until_tool("forge__use")
                assert (await two.use(node, user))["structuredContent"] == {"node": node}
        owners = [two.running(f"of-{user}") for user in USERS[1:]]
        assert {len(each) for each in owners} == {1}, "one process each"
        assert {node for each in owners for node in each} == {"a", "b"}, "they are spread"


async def test_another_value_is_another_launch_at_all_nodes_and_the_former_one_ends(tmp_path: Path) -> None:
    user = USERS[0]
    async with nodes_of_people(tmp_path) as two:
        for node, value in (("a", "one"), ("b", "two"), ("a", "three")):
            await two.give(node, value)
            for each in "ab":
                await two.at[each][user].until_tool(f"forge__{value}")
                assert (await two.use(each, user))["structuredContent"] == {"node": each}
            assert len(two.running(value)) == 1

        await until_ended(two, "one", "two")


async def test_a_node_that_is_drained_gives_launches_of_people_away_and_no_call_fails(tmp_path: Path) -> None:
    user = USERS[1]
    async with nodes_of_people(tmp_path) as two:
        for node in "ab":
            await two.at[node][user].until_tool("forge__use")
        await two.use("a", user)
        (owner,) = two.running(f"of-{user}")
        other = "b" if owner == "a" else "a"
        answers: list[dict[str, Any]] = []
        async with trio.open_nursery() as nursery:
            stopping = trio.Event()

            async def call_all_the_time(node: str) -> None:
                while not stopping.is_set():
                    answers.append(await two.use(node, user))

            for node in "ab":
                nursery.start_soon(call_all_the_time, node)
            await two.at[owner].order("POST", "/nodes/drain")
            stopping.set()
        assert [answer for answer in answers if answer.get("isError")] == []
        assert (await two.use(owner, user))["structuredContent"] == {"node": owner}
        assert two.running(f"of-{user}") == [other]


async def test_a_node_that_loses_its_lease_ends_launches_of_people_and_begins_them_again_with_the_next(
    tmp_path: Path,
) -> None:
    user = USERS[1]
    async with nodes_of_people(tmp_path, lease_s=2.0) as two:
        await two.at["a"][user].until_tool("forge__use")
        await two.use("a", user)
        two.engine.kill()

        async def answers() -> bool:
            return not (await two.use("b", user)).get("isError")

        await until_ended(two, f"of-{user}")
        two.engine.start()
        await eventually(answers)
        assert len(two.running(f"of-{user}")) == 1


async def test_a_server_that_is_switched_off_is_off_for_all_people_at_all_nodes(tmp_path: Path) -> None:
    users = USERS[1:5]
    async with nodes_of_people(tmp_path) as two:
        for user, node in ((user, node) for user in users for node in "ab"):
            await two.at[node][user].until_tool("forge__use")

        async def are_off(node: str, off: bool) -> bool:
            own = [row for row in await two.at[node].launches() if set(row["users"]) & set(users)]
            return len(own) == len(users) and all(row["disabled"] == off for row in own)

        for node, order in (("a", "disable"), ("b", "enable"), ("b", "disable"), ("a", "enable")):
            await two.at[node].ordered("forge", order)
            for each in "ab":
                await eventually(partial(are_off, each, order == "disable"))
                for user in users:
                    answer = await two.use(each, user)
                    assert bool(answer.get("isError")) == (order == "disable"), answer
        assert {len(two.running(f"of-{user}")) for user in users} == {1}


async def test_a_launch_that_nobody_calls_has_no_actor_and_gets_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_module, "LOOK_S", 0.01)
    user = USERS[1]
    async with nodes_of_people(tmp_path) as two:
        await two.at["a"][user].until_tool("forge__use")
        (owner,) = two.running(f"of-{user}")
        (launch,) = (await two.at[owner].operator.page("/api/nodes"))["owns"]
        await two.at[owner].ordered(launch, "sleep")

        await until_ended(two, f"of-{user}")
        for node in "abab":
            assert (await two.use(node, user))["structuredContent"] == {"node": node}
        assert two.running(f"of-{user}") == [owner], "it stays where it is"
