"""Large results at the doors of a daemon: a model gets the beginning and reads on, programs get all of it."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from supervisor.metatools.texts import estimate_tokens
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import World, world

ROWS = {"rows": [{"id": number, "name": f"row {number}"} for number in range(1000)]}
RESULT = {"content": [{"type": "text", "text": json.dumps(ROWS)}], "structuredContent": ROWS, "isError": False}
WHOLE = {"mcpvisor/whole": True}
EXECUTE: dict[str, Any] = {"name": "execute_mcp_tool", "arguments": {"tool_path": "one:tool1", "arguments": {}}}
DIRECT = {"name": "one-tool1", "arguments": {}}


@dataclass
class Generous(WholeServer):
    """A server whose tools answer a thousand rows."""

    def _result(self, method: str, params: Any) -> Any:
        return dict(RESULT) if method == "tools/call" else super()._result(method, params)


def generous(directory: Path, data: DataDir) -> AbstractAsyncContextManager[World]:
    entry = {"command": "x", "result_token_budget": {"tool1": 1000}}
    return world(directory, data, {"one": entry}, {"one": Generous()})


async def read_by_model(at: World, uri: str) -> list[str]:
    return [block["text"] for block in (await at.result("read_mcp_resource", uri=uri))["content"]]


def calls(at: World) -> int:
    """How many reached the server."""
    return int(at.fakes["one"].methods().count("tools/call"))


async def test_a_model_reads_the_rest_by_lines_by_words_and_by_paths(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        for params in (EXECUTE, DIRECT):
            made = (await at.rpc("tools/call", **params))["result"]
            kept = made["_meta"]["mcpvisor/result"]
            assert made["content"][0]["text"].startswith('{\n "rows": [')
            assert '[1000 x {"id": number, "name": string}]' in made["content"][1]["text"]
            assert made["isError"] is False
            assert kept["bytes"] == len(json.dumps(ROWS))
            uri, text, first = kept["uri"], "", 1
            while first <= kept["lines"]:
                note, page = await read_by_model(at, f"{uri}?lines={first}-")
                text += page
                first = int(note.split("-")[1].split()[0]) + 1
            assert json.loads(text) == ROWS
            assert await read_by_model(at, f"{uri}?search=row 777") == [
                "[1 line, the end]",
                '3113:    "name": "row 777"',
            ]
            (_, name) = await read_by_model(at, f"{uri}?path=$.rows[5].name")
            assert name == "row 5"
            (told,) = await read_by_model(at, f"{uri}x")
            assert "call the tool again" in told


async def test_the_same_is_a_resource_for_clients_of_both_eras(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        for send in (at.send, at.send_modern):
            made = (await send("tools/call", **EXECUTE)).json()["result"]
            assert ("resultType" in made) is (send == at.send_modern)
            uri = made["_meta"]["mcpvisor/result"]["uri"] + "?path=$.rows[0]"
            read = (await send("resources/read", uri=uri)).json()["result"]
            (content,) = read["contents"]
            assert (content["uri"], content["mimeType"]) == (uri, "application/json")
            assert json.loads(content["text"]) == ROWS["rows"][0]
            assert read.get("resultType") == ("complete" if send == at.send_modern else None)
            wrong = (await send("resources/read", uri="mcpvisor-result://guessed")).json()
            assert wrong["error"]["code"] == (-32602 if send == at.send_modern else -32002)


async def test_programs_get_all_of_it(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        for send in (at.send, at.send_modern):
            for params in (EXECUTE, DIRECT):
                made = (await send("tools/call", **{**params, "_meta": WHOLE})).json()["result"]
                assert made["structuredContent"] == ROWS
                assert "mcpvisor/whole" not in json.dumps(at.fakes["one"].asked[-1])
        for door, name in (("/mcp/all", "one__tool1"), ("/mcp/servers/one", "tool1")):
            for send in (at.at(door).send, at.at(door).send_modern):
                made = (await send("tools/call", name=name, arguments={})).json()["result"]
                assert made["structuredContent"] == ROWS, door
        assert (await at.result("one-tool2"))["structuredContent"] == ROWS


async def test_what_a_model_was_spared_of_a_large_result_is_in_the_usage(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        made = (await at.rpc("tools/call", **EXECUTE))["result"]
        await at.send("tools/call", **EXECUTE, _meta=WHOLE)
        (row,) = (await at.page("/api/usage", by="tool", server="one"))["rows"]
        head, whole = made["content"][0]["text"], made["_meta"]["mcpvisor/result"]["tokens"]
        assert row["calls"] == 2
        assert row["tokens_saved"] == whole - estimate_tokens(head)


def picking(*paths: str, **more: Any) -> dict[str, Any]:
    return {"name": "execute_mcp_tool", "arguments": {**EXECUTE["arguments"], "pick": [*paths]}, **more}


async def test_of_a_result_only_what_is_picked_and_the_rest_is_read_without_a_call(
    tmp_path: Path, data: DataDir
) -> None:
    async with generous(tmp_path, data) as at:
        for send in (at.send, at.send_modern):
            made = (await send("tools/call", **picking("$.rows[:2].id"))).json()["result"]
            text, note = (block["text"] for block in made["content"])
            assert text == "[0,1]"
            assert made["structuredContent"] == {"picked": [0, 1], "note": note}
            assert "of $.rows 998 of 1,000 elements; of $.rows[*] name." in note
            before = calls(at)
            uri = note.split("uri: ")[1].rstrip("]")
            (_, name) = await read_by_model(at, f"{uri}?path=$.rows[5].name") if send == at.send else ("", "row 5")
            assert name == "row 5"
            assert calls(at) == before


async def test_what_is_picked_keeps_to_the_budget_and_is_json_that_is_read_on(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        made = (await at.rpc("tools/call", **picking("$.rows[*].name")))["result"]
        head, note, picked = (block["text"] for block in made["content"])
        assert estimate_tokens(head) < 1000
        assert "[1000 x string]" in note
        assert picked.startswith("[Picked ")
        uri = made["_meta"]["mcpvisor/result"]["uri"]
        assert (await read_by_model(at, f"{uri}?path=$[999]"))[1] == "row 999"


async def test_nothing_is_kept_where_no_result_is(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        for params in (picking("$.rows[0].id", _meta=WHOLE), picking("$.rows[0].id")):
            params["arguments"]["tool_path"] = "one:tool2" if "_meta" not in params else "one:tool1"
            made = (await at.rpc("tools/call", **params))["result"]
            assert made["content"][0]["text"] == "0"
            assert "uri:" not in made["content"][1]["text"]


async def test_a_wrong_path_calls_nothing(tmp_path: Path, data: DataDir) -> None:
    async with generous(tmp_path, data) as at:
        before = calls(at)
        made = (await at.rpc("tools/call", **picking("$..id")))["result"]
        assert made["isError"] is True
        assert "not understood" in made["content"][0]["text"]
        assert calls(at) == before
