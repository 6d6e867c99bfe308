"""A thousand people at one daemon, each with a value of their own for each of twenty servers, and few servers awake.

No two people share a process then. It is compared with a daemon of the same servers to which one of them comes: both
run at once, and are asked in turns. What each server offers was read in an earlier run; for most people that is written
to the store instead, as twenty thousand starts of processes would measure nothing else.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from benchmarks import catalogue
from benchmarks import client as mcp
from benchmarks.machine import Memory, memory, until
from benchmarks.running import ECHO, Place, Running, daemon, entry
from benchmarks.table import Row, percentile, ratios, spread
from supervisor.config import load
from supervisor.servers.deployment import Deployment, deploy
from supervisor.store import open_store
from supervisor.store.records import SavedServer

SERVERS: Final = 20
TOOLS: Final = 300
ECHOES: Final = {"name": "echo", "inputSchema": {"type": "object"}}
"""What every server has besides."""
AWAKE: Final = 0.01
SEARCHES: Final = 200
"""In each round, at each daemon."""
IDLE_S: Final = 600.0
QUERIES: Final = [f"{verb} {noun.replace('_', ' ')}" for verb in catalogue.VERBS for noun in catalogue.NOUNS]


class Crowd:
    """Some people at a daemon of their own, which has not started yet."""

    def __init__(self, directory: Path, users: int) -> None:
        directory.mkdir()
        self.place = Place(directory)
        self.users = [f"user{number}" for number in range(users)]
        self.tokens: dict[str, str] = {}
        self.servers: dict[str, Any] = {}
        for name, listed in catalogue.made_up(SERVERS, TOOLS).items():
            path = directory / f"{name}.json"
            path.write_bytes(msgspec.json.encode([*listed, ECHOES]))
            own = entry((*ECHO, "--tools-file", str(path)), idle_timeout_s=IDLE_S)
            self.servers[name] = {**own, "env": {"TOKEN": "${user:TOKEN}"}}
        given = {user: {name: {"TOKEN": f"{user}-{name}"} for name in self.servers} for user in self.users}
        self.settings: dict[str, Any] = {
            "auth": "tokens",
            "identity": {"users": {user: {"values": values} for user, values in given.items()}},
        }

    @contextmanager
    def running(self) -> Iterator[Running]:
        with daemon(self.place, self.servers, **self.settings) as running:
            until(lambda: bool(mcp.page(running.port, "/readyz")["ready"]), "the daemon is ready", step_s=0.002)
            yield running

    def operator(self) -> str:
        return (self.place.directory / "data" / "page.key").read_bytes().hex()

    def prepare(self) -> None:
        """Have everybody have a token, and everything be known that is started for them."""
        with self.running() as running:
            for user in self.users:
                made = mcp.page(running.port, "/api/access-tokens", token=self.operator(), body={"user": user})
                self.tokens[user] = made["token"]
            first = self.tokens[self.users[0]]
            until(lambda: len(_listed(running.port, first)) == TOOLS + SERVERS, "everything is discovered", step_s=0.2)
        trio.run(self._remember)

    async def _remember(self) -> None:
        """Write to the store what the first of them has for all of the others."""
        data = self.place.directory / "data"
        config = load(self.place.directory / "servers.json", {})
        deployment = deploy(config, key=(data / "launch.key").read_bytes())
        async with open_store(data / "store.sqlite3") as store:
            await store.ready.wait()
            known = await store.servers.load_launches(_launches_of(deployment, self.users[0]).values())
            for user in self.users[1:]:
                for server, launch in _launches_of(deployment, user).items():
                    payload = known[_launches_of(deployment, self.users[0])[server]]
                    store.servers.put(SavedServer(launch, launch, payload))
                await store.keep()

    def searches(self, port: int, number: int, seed: int) -> list[float]:
        """Have people search, one after the other, and return how many seconds each search took."""
        choice, took = random.Random(seed), []
        for _ in range(number):
            with mcp.Client(port, "modern", token=self.tokens[choice.choice(self.users)]) as client:
                client.answer(("discover_mcp_tools", {"query": "x"}))  # so that the connection is open
                begin = time.perf_counter()
                client.call(("discover_mcp_tools", {"query": choice.choice(QUERIES)}))
                took.append(time.perf_counter() - begin)
        return took


def _launches_of(deployment: Deployment, user: str) -> dict[str, str]:
    person = deployment.person(user, role="member", team="")
    return {} if person is None else {own.server: own.name for own in person.rights.launches}


def _listed(port: int, token: str) -> Sequence[Any]:
    with mcp.Client(port, path="/mcp/all", token=token) as client:
        _, body = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, client.headers)
        tools: Sequence[Any] = msgspec.json.decode(body)["result"]["tools"]
        return tools


def run(directory: Path, users: int, rounds: int) -> list[Row]:
    """Measure both daemons: their start, that everybody comes in, searches, wakes, and memory."""
    alone, many = Crowd(directory / "people-one", 1), Crowd(directory / "people-many", users)
    for crowd in (alone, many):
        crowd.prepare()
    boots: dict[Crowd, list[float]] = {alone: [], many: []}
    for _ in range(rounds):
        for crowd, took in boots.items():
            begin = time.perf_counter()
            with crowd.running():
                took.append(time.perf_counter() - begin)
    with alone.running() as one, many.running() as all_:
        first = _come_in(one, alone)
        came = _come_in(all_, many)
        rest = memory(one.process.pid), memory(all_.process.pid)
        searched = [
            (alone.searches(one.port, SEARCHES, seed), many.searches(all_.port, SEARCHES, seed))
            for seed in range(rounds)
        ]
        woken = _wake(all_, many, round(users * SERVERS * AWAKE))
        single = _wake(one, alone, SERVERS)
        awake = memory(all_.process.pid)
    who = f"{users:,} people with {SERVERS} servers each"
    p99 = [(percentile(few, 0.99), percentile(lots, 0.99)) for few, lots in searched]
    return [
        Row(
            what=f"boot until ready, {who}",
            measured=f"{spread(boots[many])} s",
            compared=f"one of them: {spread(boots[alone])} s",
            ratio=str(ratios(boots[many], boots[alone])),
        ),
        Row(
            what=f"first answer to each of {who}",
            measured=f"p50 {percentile(came, 0.5) * 1000:.1f} ms, p99 {percentile(came, 0.99) * 1000:.1f} ms",
            compared=f"one of them: {first[0] * 1000:.1f} ms",
            ratio=f"{percentile(came, 0.5) / first[0]:.2f}",
        ),
        Row(
            what=f"p99 of a search, {who}",
            measured=f"{spread([lots for _, lots in p99]).median * 1000:.1f} ms",
            compared=f"one of them: {spread([few for few, _ in p99]).median * 1000:.1f} ms",
            ratio=str(ratios([lots for _, lots in p99], [few for few, _ in p99])),
        ),
        Row(
            what=f"wake of a server, {who}",
            measured=f"p50 {percentile(woken, 0.5) * 1000:.0f} ms, p99 {percentile(woken, 0.99) * 1000:.0f} ms",
            compared=f"one of them: p50 {percentile(single, 0.5) * 1000:.0f} ms",
            ratio=f"{percentile(woken, 0.5) / percentile(single, 0.5):.2f}",
        ),
        Row(
            what=f"memory with {who}, all asleep",
            measured=_memory(rest[1]),
            compared=f"one of them: {_memory(rest[0])}",
            ratio=f"{rest[1].rss_mib / rest[0].rss_mib:.1f}",
        ),
        Row(what=f"the same with {len(woken):,} of {users * SERVERS:,} awake", measured=_memory(awake)),
    ]


def _come_in(running: Running, crowd: Crowd) -> list[float]:
    """Have everybody ask something, and return how many seconds the first answer to each took."""
    took: list[float] = []
    for user in crowd.users:
        begin = time.perf_counter()
        with mcp.Client(running.port, token=crowd.tokens[user]):
            took.append(time.perf_counter() - begin)
    return took


def _wake(running: Running, crowd: Crowd, number: int) -> list[float]:
    """Have people call servers of theirs that sleep, and return how many seconds each call took."""
    pairs = [(user, server) for user in crowd.users for server in crowd.servers]
    took: list[float] = []
    for user, server in random.Random(0).sample(pairs, number):
        with mcp.Client(running.port, token=crowd.tokens[user]) as client:
            begin = time.perf_counter()
            client.call(("execute_mcp_tool", {"tool_path": f"{server}:echo", "arguments": {"text": "x"}}))
            took.append(time.perf_counter() - begin)
    return took


def _memory(found: Memory) -> str:
    return f"RSS {found.rss_mib:.0f} MiB"
