"""Two daemons, one with others in it: a person gets the same bytes for whatever is searched."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from supervisor.host.datadir import open_data_dir
from supervisor.servers.deployment import DeployedServer
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.supervisor.test_daemon import configuration, running
from tests.supervisor.test_identity_of_daemon import Doorway, until_ready, without_time

VERBS, NOUNS = ("read", "write", "list", "send", "delete", "find"), ("page", "mail", "file", "order", "user", "clock")
CANARIES = ("canary", "vault", "jewel", "ledger", "cipher")
SERVERS: dict[str, Any] = {
    "desk": {"command": "x", "description": "what is on the desk"},
    "post": {"command": "x"},
    "vault": {"command": "x", "users": ["ana"], "description": "canary of ana: read mail, find page"},
    "desks": {"command": "x", "users": ["ana"], "description": "another desk"},
}
QUERIES = 600


def tools_of(server: str) -> list[dict[str, Any]]:
    """Tools of which those of others have all the words of ben's, more often, and their own."""
    if server in ("vault", "desks"):
        names = [f"{verb}_{noun}_{canary}" for verb in VERBS for noun in NOUNS for canary in CANARIES[:3]]
        return [tool(name, f"{name} of the {canary}") for name, canary in zip(names, CANARIES * 30, strict=False)]
    nouns = NOUNS[:4] if server == "desk" else NOUNS[2:]
    return [tool(f"{verb}_{noun}", f"{verb} a {noun} on the {server}") for verb in VERBS[:4] for noun in nouns]


def connect(server: DeployedServer) -> MemoryTransport:
    return MemoryTransport(FakeServer(tools=tools_of(server.name)).serve)


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


async def test_the_search_is_as_if_there_were_nobody_else(tmp_path: Path) -> None:
    found: list[list[str]] = []
    own = {name: entry for name, entry in SERVERS.items() if "users" not in entry}
    for number, servers in enumerate((SERVERS, own)):
        (directory := tmp_path / str(number)).mkdir()
        config = configuration(directory, servers, auth="tokens", identity={"users": {"ana": {}, "ben": {}}})
        with open_data_dir(directory / "data", {}) as data:
            async with running(config, data, connect=connect) as client:
                at = Doorway(client, data.key("page").hex())
                await until_ready(at)
                await at.admit("ben")
                asked = [{"query": query, "limit": 1 + at_ % 20} for at_, query in enumerate(queries(QUERIES))]
                answers = [
                    await at.rpc("ben", "tools/call", name="discover_mcp_tools", arguments=each) for each in asked
                ]
                found.append([without_time(answer.text) for answer in answers])
    assert found[0] == found[1]
    assert sum("tool_path" in text for text in found[0]) > QUERIES / 2
