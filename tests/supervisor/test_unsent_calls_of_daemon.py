"""Calls that never reach a server are counted as that, at every door, and by all that counts alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from actors.errors import SpawnFailed
from actors.messages import CallServer
from supervisor.host.datadir import DataDir
from supervisor.servers.deployment import DeployedServer
from supervisor.service.asking.exchange import Exchange
from supervisor.usage.records import MAX_NAMED_CHARS, UNKNOWN
from tests.fakes.garbage import no_search
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import World, world
from tests.supervisor.test_one_word_of_daemon import Reached

IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}}}
SERVERS: dict[str, Any] = {
    "desk": {"command": "x"},
    "gone": {"command": "x"},
    "off": {"command": "x", "disabled": True},
    "waits": {"command": "x", "env": {"TOKEN": "${user:TOKEN}"}},
}
NEEDS: dict[str, Any] = {
    "inputSchema": {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
}
MADE_UP = "\u202e<img src=x>" * 1000
CALLS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("desk", "echo"): ("echo", "ok", ""),
    ("desk", "none"): (UNKNOWN, "rejected", "not_found"),
    ("gone", "echo"): (UNKNOWN, "unreached", "unavailable"),
    ("off", "echo"): (UNKNOWN, "rejected", "disabled"),
    ("waits", "echo"): (UNKNOWN, "unreached", "needs_configuration"),
}
"""Of a server and a tool that are called: what they are counted as, how that ends, and the type of the error."""
DOORS = ("/mcp", "/mcp/all", "/mcp/servers/")


def connect(server: DeployedServer) -> Reached:
    reached = Reached(FakeServer(tools=[tool("echo"), tool("needs", **NEEDS)]))
    reached.fault = SpawnFailed("there is no such program", permanent=True) if server.name == "gone" else None
    return reached


@asynccontextmanager
async def daemon(directory: Path, data: DataDir) -> AsyncIterator[World]:
    more: dict[str, Any] = {"waits": False, "people": {"ana": {"role": "admin"}}, "daemon": {"connect": connect}}
    settings: dict[str, Any] = {"auth": "tokens", "identity": IDENTITY, "audit_calls": True, "metrics_tools": True}
    async with world(directory, data, SERVERS, **more, **settings) as at:
        await at["ana"].until_tool("desk__echo")
        yield at


async def call(at: World, door: str, server: str, name: str) -> None:
    """Call a tool at a door, by the name that it has there."""
    if door == "/mcp":
        await at["ana"].executed(f"{server}:{name}")
    elif door == "/mcp/all":
        await at["ana"].at(door).call(f"{server}__{name}")
    else:
        await at["ana"].at(door + server).call(name)


async def rows(at: World, **wanted: Any) -> list[dict[str, Any]]:
    return list((await at["ana"].page("/api/calls", limit=500, **wanted))["calls"][::-1])


async def counted(at: World, counter: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return what a counter has by these labels, but for what is 0."""
    text = (await at["ana"].ask("GET", "/metrics")).text
    samples = (each for family in text_string_to_metric_families(text) for each in family.samples)
    return {
        tuple(each.labels[name] for name in labels): each.value
        for each in samples
        if each.name == counter and each.value
    }


async def test_calls_list_usage_metrics_events_and_audit_have_each_call_alike(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at, at.operator.reading() as events:
        for door in DOORS:
            for (server, name), (_, outcome, _) in CALLS.items():
                # A server passes at its own door whatever it is asked: it says itself what it has not.
                if door != DOORS[2] or (server, outcome) != ("desk", "rejected"):
                    await call(at, door, server, name)
        await call(at, "/mcp", "desk", "needs")
        await call(at, "/mcp", "nowhere", "echo")
        await call(at, "/mcp/all", "nowhere", "echo")
        await at["ana"].send("tools/call")
        made = Counter(
            {(server, *ended): 3 - (ended[1:] == ("rejected", "not_found")) for (server, _), ended in CALLS.items()}
        )
        made["desk", "needs", "rejected", "invalid"] = 1
        made[UNKNOWN, UNKNOWN, "rejected", "not_found"] = 2
        made[UNKNOWN, UNKNOWN, "rejected", "invalid"] = 1
        listed = await rows(at)
        assert Counter((row["server"], row["tool"], row["outcome"], row["error"]) for row in listed) == made
        assert len(await rows(at, outcome="not_sent")) == made.total() - 3
        assert await rows(at, outcome="failed") == []

        ended = Counter[tuple[str, ...]]()
        for (server, name, outcome, _), count in made.items():
            ended[server, name, outcome] += count
        usage = await at["ana"].page("/api/usage")
        told = {(r["server"], r["tool"], outcome): n for r in usage["rows"] for outcome, n in r["outcomes"].items()}
        assert told == ended
        assert (usage["total"]["not_sent"], usage["total"]["failed"]) == (made.total() - 3, 0)
        of_tools = await counted(at, "mcpvisor_tool_calls_total", "mcp_server", "tool", "outcome")
        assert of_tools == ended
        of_servers = await counted(at, "mcpvisor_calls_total", "mcp_server", "outcome")
        assert sum(of_servers.values()) == sum(of_tools.values())
        heard = Counter[tuple[str, ...]]()
        while heard.total() < made.total():
            event = await events.until("mcp.tool.executed")
            heard[event["server_slug"], event["tool_name"], event["outcome"]] += 1
        assert heard == ended
        audit = await at.records(action="tool.call")
        assert Counter(record["outcome"] for record in audit) == Counter(
            {"done": 3, "refused": sum(n for key, n in made.items() if key[2] == "rejected"), "failed": 6}
        )
        tools = (await at["ana"].page("/api/tools"))["tools"]
        of_all_time = {row["path"]: (row["calls"], row["failures"]) for row in tools if row["calls"]}
        assert of_all_time == {"desk:echo": (3, 0)}, "a tool is judged by the calls that reached it"


async def test_names_that_a_client_makes_up_make_nothing_grow(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        for door in DOORS:
            await call(at, door, "desk" if door == DOORS[2] else "made", "up")
        await call(at, "/mcp", "desk", "made_up")

        async def size() -> tuple[int, int, int]:
            usage = (await at["ana"].page("/api/usage"))["rows"]
            page = (await at["ana"].ask("GET", "/metrics")).text
            return len(usage), sum(line.startswith("mcpvisor_") for line in page.splitlines()), len(await rows(at))

        before = await size()
        for number in range(20):
            await call(at, "/mcp", f"made{number}", f"up{number}")
            await call(at, "/mcp", "desk", f"none{number}")
            await call(at, "/mcp/all", f"made{number}", f"up{number}")
            await call(at, "/mcp/servers/", "desk", f"none{number}")
        await call(at, "/mcp", MADE_UP, MADE_UP)
        after = await size()
        assert after == (before[0], before[1], before[2] + 81)
        newest = (await rows(at))[-1]
        assert (newest["server"], newest["tool"]) == (UNKNOWN, UNKNOWN)
        assert newest["named"] == MADE_UP[:MAX_NAMED_CHARS]
        page = (await at["ana"].ask("GET", "/ui/calls")).text
        assert "&lt;img src=x&gt;" in page
        assert "<img src=x>" not in page
        assert "\u202e" not in page


async def test_calls_that_failed_are_freed_without_a_search(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        with no_search() as alive:
            for door in DOORS:
                for server, name in CALLS:
                    await call(at, door, server, name)
            assert alive(Exchange, CallServer) == 0
