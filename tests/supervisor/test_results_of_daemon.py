"""Large results at the doors of a daemon: a model gets the beginning and reads on, programs get all of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from supervisor.host.datadir import open_data_dir
from supervisor.metatools.texts import estimate_tokens
from tests.fakes.http_client import JSON_HEADERS, META, MODERN, modern_headers
from tests.fakes.memory import MemoryTransport
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

ROWS = {"rows": [{"id": number, "name": f"row {number}"} for number in range(1000)]}
RESULT = {"content": [{"type": "text", "text": json.dumps(ROWS)}], "structuredContent": ROWS, "isError": False}
WHOLE = {"mcpvisor/whole": True}
MODERN_META = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
EXECUTE: dict[str, Any] = {"name": "execute_mcp_tool", "arguments": {"tool_path": "one:tool1", "arguments": {}}}
DIRECT = {"name": "one-tool1", "arguments": {}}


@dataclass
class Generous(WholeServer):
    """A server whose tools answer a thousand rows."""

    def _result(self, method: str, params: Any) -> Any:
        return dict(RESULT) if method == "tools/call" else super()._result(method, params)


@asynccontextmanager
async def generous(tmp_path: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, WholeServer]]:
    server = Generous()
    with open_data_dir(tmp_path / "data", {}) as data:
        config = configuration(tmp_path, {"one": {"command": "x", "result_token_budget": {"tool1": 1000}}})
        async with running(config, data, connect=lambda _: MemoryTransport(server.serve)) as client:
            await Client(client).ready()
            yield client, server


async def legacy(client: httpx2.AsyncClient, door: str, method: str, params: dict[str, Any]) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await client.post(door, headers=JSON_HEADERS, content=json.dumps(message))
    return answer.json()


async def modern(client: httpx2.AsyncClient, door: str, method: str, params: dict[str, Any]) -> Any:
    named = params.get("name") or params["uri"]
    meta = {**MODERN_META, **params.get("_meta", {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = await client.post(door, headers=modern_headers(method, named), content=json.dumps(message))
    return answer.json()


async def read_by_model(client: httpx2.AsyncClient, uri: str) -> list[str]:
    params = {"name": "read_mcp_resource", "arguments": {"uri": uri}}
    answer = (await legacy(client, "/mcp", "tools/call", params))["result"]
    return [block["text"] for block in answer["content"]]


@pytest.mark.parametrize("params", [EXECUTE, DIRECT])
async def test_a_model_reads_the_rest_by_lines_by_words_and_by_paths(tmp_path: Path, params: dict[str, Any]) -> None:
    async with generous(tmp_path) as (client, _):
        made = (await legacy(client, "/mcp", "tools/call", params))["result"]
        kept = made["_meta"]["mcpvisor/result"]
        assert made["content"][0]["text"].startswith('{\n "rows": [')
        assert '[1000 x {"id": number, "name": string}]' in made["content"][1]["text"]
        assert made["isError"] is False
        assert kept["bytes"] == len(json.dumps(ROWS))
        uri, text, first = kept["uri"], "", 1
        while first <= kept["lines"]:
            note, page = await read_by_model(client, f"{uri}?lines={first}-")
            text += page
            first = int(note.split("-")[1].split()[0]) + 1
        assert json.loads(text) == ROWS
        assert await read_by_model(client, f"{uri}?search=row 777") == [
            "[1 line, the end]",
            '3113:    "name": "row 777"',
        ]
        (_, name) = await read_by_model(client, f"{uri}?path=$.rows[5].name")
        assert name == "row 5"
        (told,) = await read_by_model(client, f"{uri}x")
        assert "call the tool again" in told


async def test_the_same_is_a_resource_for_clients_of_both_eras(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, _):
        for ask in (legacy, modern):
            made = (await ask(client, "/mcp", "tools/call", EXECUTE))["result"]
            assert ("resultType" in made) is (ask is modern)
            uri = made["_meta"]["mcpvisor/result"]["uri"] + "?path=$.rows[0]"
            read = (await ask(client, "/mcp", "resources/read", {"uri": uri}))["result"]
            (content,) = read["contents"]
            assert (content["uri"], content["mimeType"]) == (uri, "application/json")
            assert json.loads(content["text"]) == ROWS["rows"][0]
            assert read.get("resultType") == ("complete" if ask is modern else None)
            wrong = await ask(client, "/mcp", "resources/read", {"uri": "mcpvisor-result://guessed"})
            assert wrong["error"]["code"] == (-32602 if ask is modern else -32002)


async def test_programs_get_all_of_it(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, server):
        for ask in (legacy, modern):
            for params in (EXECUTE, DIRECT):
                made = (await ask(client, "/mcp", "tools/call", {**params, "_meta": WHOLE}))["result"]
                assert made["structuredContent"] == ROWS
                assert "mcpvisor/whole" not in json.dumps(server.asked[-1])
            for door, name in (("/mcp/all", "one__tool1"), ("/mcp/servers/one", "tool1")):
                made = (await ask(client, door, "tools/call", {"name": name, "arguments": {}}))["result"]
                assert made["structuredContent"] == ROWS
        other = await legacy(client, "/mcp", "tools/call", {"name": "one-tool2", "arguments": {}})
        assert other["result"]["structuredContent"] == ROWS


async def test_what_a_model_was_spared_of_a_large_result_is_in_the_usage(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, _):
        made = (await legacy(client, "/mcp", "tools/call", EXECUTE))["result"]
        await legacy(client, "/mcp", "tools/call", {**EXECUTE, "_meta": WHOLE})
        (row,) = (await client.get("/api/usage", params={"by": "tool", "server": "one"})).json()["rows"]
        head, whole = made["content"][0]["text"], made["_meta"]["mcpvisor/result"]["tokens"]
        assert row["calls"] == 2
        assert row["tokens_saved"] == whole - estimate_tokens(head)


def picking(*paths: str, **more: Any) -> dict[str, Any]:
    return {"name": "execute_mcp_tool", "arguments": {**EXECUTE["arguments"], "pick": [*paths]}, **more}


async def test_of_a_result_only_what_is_picked_and_the_rest_is_read_without_a_call(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, server):
        for ask in (legacy, modern):
            made = (await ask(client, "/mcp", "tools/call", picking("$.rows[:2].id")))["result"]
            text, note = (block["text"] for block in made["content"])
            assert text == "[0,1]"
            assert made["structuredContent"] == {"picked": [0, 1], "note": note}
            assert "of $.rows 998 of 1,000 elements; of $.rows[*] name." in note
            calls = server.methods().count("tools/call")
            uri = note.split("uri: ")[1].rstrip("]")
            (_, name) = await read_by_model(client, f"{uri}?path=$.rows[5].name") if ask is legacy else ("", "row 5")
            assert name == "row 5"
            assert server.methods().count("tools/call") == calls


async def test_what_is_picked_keeps_to_the_budget_and_is_json_that_is_read_on(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, _):
        made = (await legacy(client, "/mcp", "tools/call", picking("$.rows[*].name")))["result"]
        head, note, picked = (block["text"] for block in made["content"])
        assert estimate_tokens(head) < 1000
        assert "[1000 x string]" in note
        assert picked.startswith("[Picked ")
        uri = made["_meta"]["mcpvisor/result"]["uri"]
        assert (await read_by_model(client, f"{uri}?path=$[999]"))[1] == "row 999"


async def test_nothing_is_kept_where_no_result_is(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, _):
        for params in (picking("$.rows[0].id", _meta=WHOLE), picking("$.rows[0].id")):
            params["arguments"]["tool_path"] = "one:tool2" if "_meta" not in params else "one:tool1"
            made = (await legacy(client, "/mcp", "tools/call", params))["result"]
            assert made["content"][0]["text"] == "0"
            assert "uri:" not in made["content"][1]["text"]


async def test_a_wrong_path_calls_nothing(tmp_path: Path) -> None:
    async with generous(tmp_path) as (client, server):
        calls = server.methods().count("tools/call")
        made = (await legacy(client, "/mcp", "tools/call", picking("$..id")))["result"]
        assert made["isError"] is True
        assert "not understood" in made["content"][0]["text"]
        assert server.methods().count("tools/call") == calls
