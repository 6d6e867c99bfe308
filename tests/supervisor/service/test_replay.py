"""What a discover shows can be called: every schema is valid, and arguments made from it arrive and are accepted."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest
from jsonschema.validators import validator_for

from supervisor.config import Settings
from supervisor.tokens.counting import Tiktoken, load_encoding
from tests.fakes.instances import Instances
from tests.fakes.nasty_tools import THINGS, VERBS, catalogue
from tests.fakes.published import Published, published, validator

LEAST = 300


def queries() -> list[tuple[str, str]]:
    """Return queries with the path of the tool each is about."""
    out: list[tuple[str, str]] = []
    for server, thing in THINGS.items():
        for verb in VERBS:
            path = f"{server}:{verb}_{thing.replace(' ', '_')}"
            out += [(f"I want to {verb} a {thing}", path), (f"{server} {verb} {thing}", path), (path, path)]
    return out


@cache
def check(schema: str) -> None:
    """Raise unless a schema is valid. Many answers show the same ones, and the metaschema takes its time."""
    parsed = json.loads(schema)
    validator_for(parsed).check_schema(parsed)


async def schema_in(servers: Published, query: str, path: str, seen: Counter[str]) -> Any:
    """Return the schema that a model ends up with: in this answer, or when it asks for the path."""
    page = await servers.discover(query)
    for row in page["tools"]:
        if "inputSchema" in row:
            seen["schemas"] += 1
            check(json.dumps(row["inputSchema"]))
        else:
            assert row["signature"].startswith(row["tool_path"].partition(":")[2])
    row = next(row for row in page["tools"] if row["tool_path"] == path)
    if "inputSchema" in row:
        seen["at once"] += 1
        return row["inputSchema"]
    row = (await servers.discover(path))["tools"][0]
    assert row["tool_path"] == path
    return row["inputSchema"]


@pytest.mark.case("Q07")
@pytest.mark.parametrize("budget", [2000, 1100])
async def test_every_schema_that_is_shown_leads_to_a_call_that_its_server_accepts(budget: int) -> None:
    seen: Counter[str] = Counter()
    offered = {
        f"{server}:{tool['name']}": tool["inputSchema"] for server, tools in catalogue().items() for tool in tools
    }
    async with published(Settings(discover_token_budget=budget), **catalogue()) as servers:
        for number, (query, path) in enumerate(queries()):
            shown = await schema_in(servers, query, path, seen)
            arguments = Instances(shown, everything=bool(number % 2)).make()
            assert list(validator(shown).iter_errors(arguments)) == []
            assert shown.get("properties", {}).keys() == offered[path].get("properties", {}).keys()
            answer = await servers.execute(path, arguments)
            assert answer["result"] == {"content": [{"type": "text", "text": "done"}], "isError": False}
            server, _, name = path.partition(":")
            assert servers.take_calls() == [(server, name, arguments)]
            seen["calls"] += 1
        assert [wrong for server in servers.servers.values() for wrong in server.wrong] == []
    assert seen["calls"] >= LEAST
    assert seen["schemas"] >= LEAST
    assert seen["at once"] >= seen["calls"] * 0.8


async def test_answers_over_the_nasty_catalogue_are_small() -> None:
    tokenizer = Tiktoken(load_encoding())
    tokens: list[int] = []
    async with published(**catalogue()) as servers:
        for query, path in queries():
            if query != path:
                answer = await servers.answer({"name": "discover_mcp_tools", "arguments": {"query": query}})
                tokens.append(tokenizer.count(answer["result"]["content"][0]["text"]))
    assert max(tokens) <= 2000
    assert sorted(tokens)[len(tokens) // 2] <= 1200
