"""Three daemons and a real engine: a node is killed, stopped, thawed; the engine is started again. Under load, each
request has one answer, none is executed twice, and no server runs in two places."""

from __future__ import annotations

import json
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest
import trio

from benchmarks.machine import free_port
from supervisor.fleet.links.frames import DEAD_S
from tests.e2e.daemons import Daemon, end, running, start, write_config
from tests.fleet.namespaces import Namespaces, namespaces, why_not
from tests.fleet.valkey import ValkeyServer, settle, valkey
from tests.scenario.client import PATIENCE_S, Json

pytestmark = pytest.mark.e2e

LEASE_S = 6.0
SERVERS = ("one", "two", "three", "four")
LOCKED = str(Path(__file__).parents[1] / "fleet" / "locked_server.py")


class Fleet:
    """The nodes by name, their engine where the test has one, and what their servers noted."""

    engine: ValkeyServer

    def __init__(self, nodes: dict[str, Daemon], directory: Path) -> None:
        self.nodes = nodes
        self._ledger = directory / "ledger"

    def noted(self, what: str) -> list[Json]:
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["what"] == what]

    async def call(self, daemon: Daemon, server: str, key: str) -> Json:
        """Have a server note a key."""
        return await daemon.execute(f"{server}:note", key=key)

    async def owner(self, server: str) -> str:
        """Return the node at which a server runs."""
        for name, daemon in self.nodes.items():
            if daemon.process.poll() is None and (await daemon.rows())[server]["state"] == "ready":
                return name
        raise AssertionError(f"{server} runs nowhere")

    def others(self, *names: str) -> list[Daemon]:
        return [daemon for name, daemon in self.nodes.items() if name not in names]

    async def all_answered(self) -> None:
        """Call all servers at all nodes until they answer."""
        for daemon in self.nodes.values():
            for server in SERVERS:
                await self.answered(daemon, server, PATIENCE_S)

    async def answered(self, daemon: Daemon, server: str, within_s: float) -> float:
        """Call a server until it answers; return after how many seconds it did."""
        begun = trio.current_time()
        with trio.fail_after(within_s):
            while not _is_good(await self.call(daemon, server, f"probe {random.random()}")):  # noqa: ASYNC110
                await trio.sleep(0.2)
        return trio.current_time() - begun


def _is_good(answer: Json) -> bool:
    return "result" in answer and not answer["result"].get("isError")


@asynccontextmanager
async def fleet(directory: Path, *names: str, lease_s: float = LEASE_S) -> AsyncIterator[Fleet]:
    """Run nodes of these names, and their engine."""
    servers = {name: {"command": sys.executable, "args": ["-I", LOCKED, name, str(directory)]} for name in SERVERS}
    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine, ExitStack() as stack:
        await settle(engine)
        settings = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": lease_s}
        nodes = {
            name: stack.enter_context(
                running(directory / name, servers, leaves_calls=True, fleet={**settings, "node": name})
            )
            for name in names
        }
        several = Fleet(nodes, directory)
        several.engine = engine
        yield several


@asynccontextmanager
async def cuttable(directory: Path, *names: str) -> AsyncIterator[tuple[Fleet, Namespaces]]:
    """Run nodes each of which has a network namespace of its own, and their engine, which all of them reach."""
    servers = {name: {"command": sys.executable, "args": ["-I", LOCKED, name, str(directory)]} for name in SERVERS}
    (directory / "engine").mkdir()
    with valkey(directory / "engine") as engine, namespaces(directory, *names) as spaces, ExitStack() as stack:
        await settle(engine)
        settings = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": LEASE_S}
        nodes = {}
        async with AsyncExitStack() as doors:
            for name in names:
                own = {**settings, "node": name, "listen": f"{spaces.address(name)}:0"}
                write_config(directory / name, servers, fleet=own)
                node = start(directory / name, f"127.0.0.1:{free_port()}", network=spaces.place(name))
                nodes[name] = node
                stack.callback(node.process.kill)
                await doors.enter_async_context(spaces.door(name, node.port))
            yield Fleet(nodes, directory), spaces
            for node in nodes.values():
                await trio.to_thread.run_sync(partial(end, node, leaves_calls=True))


class Load:
    """Calls of many clients at some nodes, or all. `answers` counts those of each request, `good` are the results."""

    def __init__(self, fleet: Fleet, seed: int, *nodes: str) -> None:
        self._fleet = fleet
        self._nodes = nodes or tuple(fleet.nodes)
        self._random = random.Random(seed)
        self.answers: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.good: set[str] = set()
        self.reasons: Counter[str] = Counter()

    @asynccontextmanager
    async def on(self) -> AsyncIterator[None]:
        """Call all the time, and see at the end that each request has its answer."""
        async with trio.open_nursery() as nursery:
            stopping = trio.Event()
            for client in range(6):
                nursery.start_soon(self._call_all_the_time, str(client), stopping)
            yield
            stopping.set()

    async def _call_all_the_time(self, client: str, stopping: trio.Event) -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            node, server = self._random.choice(self._nodes), self._random.choice(SERVERS)
            await self._call(self._fleet.nodes[node], server, f"{client}/{number}")
            await trio.sleep(0.05)

    async def _call(self, daemon: Daemon, server: str, key: str) -> None:
        try:
            answer = await self._fleet.call(daemon, server, key)
        except (httpx2.TransportError, ValueError):
            self.lost.add(key)  # its node was killed
            return
        self.answers[key] += 1
        if _is_good(answer):
            assert answer["result"]["content"][0]["text"] == key
            self.good.add(key)
        else:
            self.reasons[answer["result"]["content"][0]["text"] if "result" in answer else str(answer)] += 1

    def check(self, *, lost_at_most: int = 0) -> None:
        executed = Counter(entry["key"] for entry in self._fleet.noted("call"))
        assert self._fleet.noted("twice") == []
        assert {key: times for key, times in executed.items() if times > 1} == {}
        assert {key for key, times in self.answers.items() if times != 1} == set()
        assert self.good <= executed.keys()
        assert len(self.lost) <= lost_at_most, self.lost
        assert len(self.good) > 10, self.reasons


async def test_every_node_answers_for_every_server_and_each_runs_once(tmp_path: Path) -> None:
    async with fleet(tmp_path, "a", "b", "c", lease_s=60.0) as three:
        for daemon in three.nodes.values():
            await daemon.ready()
            for server in SERVERS:
                await three.answered(daemon, server, PATIENCE_S)
            assert sorted(await daemon.discover("note a key")) == sorted(f"{server}:note" for server in SERVERS)
        assert Counter(entry["server"] for entry in three.noted("start")) == dict.fromkeys(SERVERS, 1)


async def test_a_node_that_is_killed_loses_its_own_calls_and_its_servers_come_back_elsewhere(tmp_path: Path) -> None:
    async with fleet(tmp_path, "a", "b", "c") as three:
        await three.answered(three.nodes["a"], "one", PATIENCE_S)
        owner = await three.owner("one")
        load = Load(three, 1)
        async with load.on():
            await trio.sleep(1.0)
            three.nodes[owner].process.kill()
            took_s = await three.answered(three.others(owner)[0], "one", PATIENCE_S)
        load.check(lost_at_most=len(load.answers))
        assert took_s < LEASE_S + 20.0  # a lease and a cold start, on a busy machine


async def test_a_node_that_ends_in_order_costs_the_clients_of_others_nothing(tmp_path: Path) -> None:
    async with fleet(tmp_path, "a", "b", "c", lease_s=60.0) as three:
        await three.answered(three.nodes["a"], "one", PATIENCE_S)
        owner = await three.owner("one")
        load = Load(three, 4, *(name for name in three.nodes if name != owner))
        async with load.on():
            await trio.sleep(1.0)
            three.nodes[owner].process.send_signal(signal.SIGTERM)
            assert await three.nodes[owner].ended() == 0
            for daemon in three.others(owner):
                for server in SERVERS:
                    await three.answered(daemon, server, PATIENCE_S)
        load.check()
        assert load.reasons == {}


async def test_a_node_that_is_stopped_gives_its_servers_up_and_serves_again_when_it_is_thawed(tmp_path: Path) -> None:
    async with fleet(tmp_path, "a", "b", "c") as three:
        await three.answered(three.nodes["a"], "one", PATIENCE_S)
        owner = await three.owner("one")
        load = Load(three, 2)
        async with load.on():
            await trio.sleep(1.0)
            three.nodes[owner].process.send_signal(signal.SIGSTOP)
            try:
                await three.answered(three.others(owner)[0], "one", PATIENCE_S)
            finally:
                three.nodes[owner].process.send_signal(signal.SIGCONT)
            for server in SERVERS:
                await three.answered(three.nodes[owner], server, PATIENCE_S)
        load.check()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
async def test_a_cut_between_nodes_costs_no_call_twice(tmp_path: Path) -> None:
    """All still reach the engine, so each goes on with what it owns; calls to the other side fail, and say so."""
    async with cuttable(tmp_path, "a", "b", "c") as (three, spaces):
        load = Load(three, 5)
        async with load.on():
            one_from_all, two = (("a", "b"), ("a", "c")), (("b", "c"),)
            for cuts, lasts_s in ((one_from_all, DEAD_S + 2.0), (two, 2.0)):  # long enough to be noticed, and not
                await three.all_answered()
                for cut in cuts:
                    spaces.cut(*cut)
                await trio.sleep(lasts_s)
                for cut in cuts:
                    spaces.heal(*cut)
            await three.all_answered()
        load.check()
        assert load.reasons, "the cut was not noticed"
        assert Counter(entry["server"] for entry in three.noted("start")) == dict.fromkeys(SERVERS, 1)


@pytest.mark.parametrize("away_s", [0.0, 2 * LEASE_S])
async def test_an_engine_that_was_away_costs_no_call_twice(tmp_path: Path, away_s: float) -> None:
    async with fleet(tmp_path, "a", "b") as two:
        await two.answered(two.nodes["a"], "one", PATIENCE_S)
        load = Load(two, 3)
        async with load.on():
            await trio.sleep(1.0)
            two.engine.kill()
            await trio.sleep(away_s)
            two.engine.start()
            await two.all_answered()
        load.check()
        starts = Counter(entry["server"] for entry in two.noted("start"))
        assert not away_s or max(starts.values()) == 2  # they ended with the lease, and came back
