"""Launches of people in a fleet: each is at one node, whichever its people come to, and they are spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.host.datadir import open_data_dir
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.launches import running as running_module
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fleet.valkey import ValkeyServer, settle, valkey
from tests.scenario.daemon import World, configuration, running
from tests.supervisor.test_fleet_of_daemon import KEY
from tests.supervisor.test_launches_of_daemon import until, until_seen

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
        answer = await self.at[node][user].execute("forge:use", node=node)
        return dict(answer.get("result") or answer["error"])

    async def give(self, node: str, value: str) -> None:
        """Give the value of the first user at a node."""
        path = f"/api/values/user/{USERS[0]}/forge/TOKEN"
        given = await self.at[node][USERS[0]].ask("PUT", path, json={"value": value})
        assert given.status_code == 200, given.text


@asynccontextmanager
async def nodes_of_people(directory: Path, *, lease_s: float = 60.0) -> AsyncIterator[NodesOfPeople]:
    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine, ExitStack() as stack:
        await settle(engine)
        two, configurations, data = NodesOfPeople(engine), {}, {}
        for name in "ab":
            (directory / name).mkdir()
            fleet = {"engine": engine.url, "keys": [KEY], "node": name, "lease_s": lease_s}
            configurations[name] = configuration(
                directory / name, SERVERS, auth="tokens", identity=IDENTITY, fleet=fleet
            )
            data[name] = stack.enter_context(open_data_dir(directory / name / "data", {}))

        def node(name: str) -> Any:
            return running(configurations[name], data[name], connect=lambda server: two.connect(name, server))

        async with node("a") as a, node("b") as b:
            two.at = {"a": World(a, data["a"]), "b": World(b, data["b"])}
            for user in USERS:
                await two.at["a"].admit(user)
            two.at["b"].keys |= {user: two.at["a"].keys[user] for user in USERS}
            for each in two.at.values():
                await until_all_known(each)
            yield two


async def until_all_known(at: World) -> None:
    """Wait until a node knows the other one, and the token that was made last."""

    async def known() -> bool:
        told = (await at.operator.ask("GET", "/api/nodes")).json()
        return len(told["nodes"]) == 2 and (await at[USERS[-1]].ask("GET", "/api/me")).status_code == 200

    await until(known)


async def test_each_has_one_process_at_some_node_whichever_they_call(tmp_path: Path) -> None:
    async with nodes_of_people(tmp_path) as two:
        for user in USERS[1:]:
            for node in "ab":
                assert f"forge__of_{user}" in await until_seen(two.at[node], user, "forge__use")
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
                await until_seen(two.at[each], user, f"forge__{value}")
                assert (await two.use(each, user))["structuredContent"] == {"node": each}
            assert len(two.running(value)) == 1

        async def ended() -> bool:
            return not two.running("one") + two.running("two")

        await until(ended)


async def test_a_node_that_is_drained_gives_launches_of_people_away_and_no_call_fails(tmp_path: Path) -> None:
    user = USERS[1]
    async with nodes_of_people(tmp_path) as two:
        for node in "ab":
            await until_seen(two.at[node], user, "forge__use")
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
            drained = await two.at[owner].operator.ask("POST", "/api/nodes/drain")
            stopping.set()
        assert drained.status_code == 200, drained.text
        assert [answer for answer in answers if answer.get("isError")] == []
        assert (await two.use(owner, user))["structuredContent"] == {"node": owner}
        assert two.running(f"of-{user}") == [other]


async def test_a_node_that_loses_its_lease_ends_launches_of_people_and_begins_them_again_with_the_next(
    tmp_path: Path,
) -> None:
    user = USERS[1]
    async with nodes_of_people(tmp_path, lease_s=2.0) as two:
        await until_seen(two.at["a"], user, "forge__use")
        await two.use("a", user)
        two.engine.kill()

        async def ended() -> bool:
            return not two.running(f"of-{user}")

        async def answers() -> bool:
            return not (await two.use("b", user)).get("isError")

        await until(ended)
        two.engine.start()
        await until(answers)
        assert len(two.running(f"of-{user}")) == 1


async def test_a_server_that_is_switched_off_is_off_for_all_people_at_all_nodes(tmp_path: Path) -> None:
    users = USERS[1:5]
    async with nodes_of_people(tmp_path) as two:
        for user, node in ((user, node) for user in users for node in "ab"):
            await until_seen(two.at[node], user, "forge__use")

        async def are_off(node: str, off: bool) -> bool:
            rows = (await two.at[node].operator.ask("GET", "/api/status")).json()["servers"]
            own = [row for row in rows if set(row.get("users", ())) & set(users)]
            return len(own) == len(users) and all(row["disabled"] == off for row in own)

        for node, order in (("a", "disable"), ("b", "enable"), ("b", "disable"), ("a", "enable")):
            done = await two.at[node].operator.ask("POST", f"/api/servers/forge/{order}")
            assert done.status_code == 200, done.text
            for each in "ab":
                await until(partial(are_off, each, order == "disable"))
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
        await until_seen(two.at["a"], user, "forge__use")
        (owner,) = two.running(f"of-{user}")
        operator = two.at[owner].operator
        (launch,) = (await operator.ask("GET", "/api/nodes")).json()["owns"]
        assert (await operator.ask("POST", f"/api/servers/{launch}/sleep")).status_code == 200

        async def ended() -> bool:
            return not two.running(f"of-{user}")

        await until(ended)
        for node in "abab":
            assert (await two.use(node, user))["structuredContent"] == {"node": node}
        assert two.running(f"of-{user}") == [owner], "it stays where it is"
