"""Two daemons, one with others in it: a person gets the same bytes for whatever is searched."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.launch import server_of
from supervisor.host.datadir import open_data_dir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.event_reader import StreamReader
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.scenario.daemon import World, world
from tests.supervisor.test_identity_of_daemon import without_time

VERBS, NOUNS = ("read", "write", "list", "send", "delete", "find"), ("page", "mail", "file", "order", "user", "clock")
CANARIES = ("canary", "vault", "jewel", "ledger", "cipher")
SERVERS: dict[str, Any] = {
    "desk": {"command": "x", "description": "what is on the desk"},
    "post": {"command": "x"},
    "vault": {"command": "x", "users": ["ana"], "description": "canary of ana: read mail, find page"},
    "desks": {"command": "x", "users": ["ana"], "description": "another desk"},
}
QUERIES = 250
SECRET = "canary-of-ana-0123456789"
TIERED: dict[str, Any] = {
    "desk": {"command": "x", "env": {"INK": "${user:INK:-blue}"}, "description": "what is on the desk"},
    "post": {"command": "x", "env": {"STAMP": "${user:STAMP}"}},
    "till": {"command": "x", "env": {"COIN": "${user:COIN}"}},
}
"""`desk` is one for ben as for all, `post` his own, `till` waits for him. All three are ana's own."""
OF_ANA = {"desk": {"INK": SECRET}, "post": {"STAMP": SECRET}, "till": {"COIN": SECRET}}
_OF_ONE_DAEMON = re.compile(r'(catalog_revision\\?":|mcpvisor/daemon":)(\d+|"\w+")')
"""What two daemons never have in common."""


def tools_of(server: str) -> list[dict[str, Any]]:
    """Tools of which those of others have all the words of ben's, more often, and their own."""
    if server in ("vault", "desks"):
        names = [f"{verb}_{noun}_{canary}" for verb in VERBS for noun in NOUNS for canary in CANARIES[:3]]
        return [tool(name, f"{name} of the {canary}") for name, canary in zip(names, CANARIES * 30, strict=False)]
    nouns = NOUNS[:4] if server == "desk" else NOUNS[2:]
    return [tool(f"{verb}_{noun}", f"{verb} a {noun} on the {server}") for verb in VERBS[:4] for noun in nouns]


def connect(server: DeployedServer) -> MemoryTransport:
    like = "vault" if SECRET in server.launch.env.values() else server_of(server.name)
    return MemoryTransport(FakeServer(tools=tools_of(like)).serve)


def queries(number: int) -> list[str]:
    """Words of both worlds, some of them spelled wrongly, some as a path."""
    chance = random.Random(23)
    words = [*VERBS, *NOUNS, *CANARIES, *SERVERS, "the", "of", "*"]

    def word() -> str:
        taken = chance.choice(words)
        at = chance.randrange(len(taken))
        return chance.choice([taken, taken, taken, taken[:at] + taken[at + 1 :], f"{taken}s", taken.upper()])

    return [
        chance.choice([" ", " ", " ", ":", "_", "-"]).join(word() for _ in range(chance.randint(1, 4)))
        for _ in range(number)
    ]


@asynccontextmanager
async def twin(directory: Path, servers: dict[str, Any], users: dict[str, Any]) -> AsyncIterator[World]:
    more: dict[str, Any] = {"daemon": {"connect": connect}, "auth": "tokens", "identity": {"users": users}}
    with open_data_dir(directory / "data", {}) as data:
        async with world(directory, data, servers, **more) as at:
            yield at


@pytest.mark.case("I01")
async def test_the_search_is_as_if_there_were_nobody_else(tmp_path: Path) -> None:
    found: list[list[str]] = []
    own = {name: entry for name, entry in SERVERS.items() if "users" not in entry}
    for name, servers in (("others", SERVERS), ("own", own)):
        async with twin(tmp_path / name, servers, {"ana": {}, "ben": {}}) as at:
            await at.admit("ben")
            asked = [{"query": query, "limit": 1 + at_ % 20} for at_, query in enumerate(queries(QUERIES))]
            answers = [await at["ben"].send("tools/call", name="discover_mcp_tools", arguments=each) for each in asked]
            found.append([without_time(answer.text) for answer in answers])
    assert found[0] == found[1]
    assert sum("tool_path" in text for text in found[0]) > QUERIES / 2


@pytest.mark.case("I01")
async def test_those_with_processes_of_their_own_are_as_if_there_were_nobody_else(tmp_path: Path) -> None:
    found: list[list[str]] = []
    for name, others in (("others", {"ana": {"values": OF_ANA}}), ("alone", {})):
        users = {"ben": {"values": {"post": {"STAMP": "penny-black-1840"}}}, **others}
        async with twin(tmp_path / name, TIERED, users) as at:
            for user in (*others, "ben"):
                await at.admit(user)
                while len(await at[user].tools()) < 32:  # noqa: ASYNC110 - servers start
                    await trio.sleep(0.02)
            greeting = {"protocolVersion": "2025-11-25"}
            while "user: read" not in (await at["ben"].send("initialize", **greeting)).text:  # noqa: ASYNC110 - said later
                await trio.sleep(0.02)
            async with at["ben"].reading() as stream:
                assert (await stream.next())[1] == "hello"
                for user, path in product(others, PATHS):
                    await at[user].executed(path)
                found.append([*await all_that_is_told(at), *await all_that_happens(at, stream)])
    for one, other in zip(*found, strict=True):
        assert one == other
    assert not any(SECRET in text for text in found[0])


async def all_that_is_told(at: World) -> list[str]:
    """Return what ben gets for queries, lists, wrong names, calls, and the pages that are his."""
    asked = [("discover_mcp_tools", {"query": query, "limit": 1 + at_ % 20}) for at_, query in enumerate(queries(100))]
    asked += [("execute_mcp_tool", {"tool_path": path, "arguments": {}}) for path in PATHS]
    answers = [await at["ben"].send("tools/call", name=name, arguments=arguments) for name, arguments in asked]
    for method in ("tools/list", "resources/list", "prompts/list", "initialize"):
        params = {"protocolVersion": "2025-11-25"} if method == "initialize" else {}
        answers += [await at["ben"].at(door).send(method, **params) for door in DOORS]
    answers += [await at["ben"].ask("GET", path) for path in ("/api/me", "/api/status", "/api/servers/till")]
    return [_OF_ONE_DAEMON.sub(r"\1", without_time(answer.text)) for answer in answers]


async def all_that_happens(at: World, stream: StreamReader) -> list[str]:
    """Return the events that ben hears, up to one last call of his, without what no two daemons have in common."""
    seen: list[dict[str, Any]] = []
    await at["ben"].executed(LAST)
    while not seen or seen[-1]["data"].get("tool_name") != LAST.partition(":")[2]:
        _, kind, event = await stream.next()
        assert event.keys() == {"id", "type", "timestamp", "data"}, kind
        seen.append({"type": kind, "data": {key: event["data"][key] for key in event["data"].keys() - OF_ONE_MOMENT}})
    assert sum(event["type"] == "mcp.tool.executed" for event in seen) > 100
    return [re.sub(r"~\w+", "~", json.dumps(event, sort_keys=True)) for event in seen]


LAST = "desk:write_file"
OF_ONE_MOMENT = frozenset(["response_time_ms", "waited_ms", "response_bytes", "tokens_shown"])
"""Times, and sizes of answers that say how long they took."""
DOORS = ("/mcp", "/mcp/all", *(f"/mcp/servers/{name}" for name in (*TIERED, "tills", "nowhere")))
PATHS = ("desk:read_page", "post:read_mail", "till:read_page", "till:read_page_canary", "desk:find_user_vault", "x:y")
