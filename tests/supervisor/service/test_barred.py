"""A tool that can only be run as a task: at no door is it listed, and at each a call says why it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.protocol.versions import Era
from supervisor.service.client import Client
from supervisor.service.doors.addresses import DoorTable
from supervisor.service.port import answer
from tests.fakes.exchanges import exchange
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

LEGACY = Client(version="2025-11-25")
MODERN = Client(era="modern", version="2026-07-28")
SCHEMA = {"type": "object"}
LATER = {"name": "later", "inputSchema": SCHEMA, "execution": {"taskSupport": "required"}}
EITHER = {"name": "either", "inputSchema": SCHEMA, "execution": {"taskSupport": "optional"}}
ODD = {"name": "odd", "inputSchema": SCHEMA, "execution": "taskSupport"}


async def ask(running: Served, door: str, client: Client, method: str, params: Any) -> Any:
    service = DoorTable(running.gateway, "1.0").find(door).service
    return json.loads((await answer(service, exchange(client, method, json.dumps(params).encode()))).body)["result"]


@pytest.mark.parametrize("client", [LEGACY, MODERN])
async def test_it_is_not_listed_and_a_call_is_refused_with_the_reason(client: Client) -> None:
    server = WholeServer(tools=[LATER, EITHER, ODD])
    async with served({"whole": server}) as running:
        offer = running.registry.catalogue.value.entries["whole"].offer
        assert offer.barred == ("later",)
        assert offer.problems == (
            "tool 'later' left out: it can only be run as a task, which this gateway does not do",
        )
        for door, before in (("servers/whole", ""), ("all", "whole__")):
            listed = (await ask(running, door, client, "tools/list", {}))["tools"]
            assert [tool["name"] for tool in listed] == [f"{before}either", f"{before}odd"]
            told = [tool.get("execution") for tool in listed]
            assert told == ([EITHER["execution"], "taskSupport"] if client is LEGACY else [None, None])
            failed = await ask(running, door, client, "tools/call", {"name": f"{before}later"})
            assert failed["isError"]
            assert "can only be run as a task" in failed["content"][0]["text"]
            unknown = await ask(running, door, client, "tools/call", {"name": f"{before}nothing"})
            assert "as a task" not in json.dumps(unknown)
        arguments = {"tool_path": "whole:later", "arguments": {}}
        failed = await ask(running, "", client, "tools/call", {"name": "execute_mcp_tool", "arguments": arguments})
        assert "can only be run as a task" in failed["content"][0]["text"]
        assert "tools/call" not in [method for method, params in server.asked if params.get("name") == "later"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_where_the_revision_has_no_such_word_it_means_nothing(era: Era) -> None:
    async with served({"whole": WholeServer(era, tools=[LATER, EITHER])}, era=era) as running:
        offer = running.registry.catalogue.value.entries["whole"].offer
        assert offer.barred == (("later",) if era == "legacy" else ())
