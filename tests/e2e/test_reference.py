"""The reference server that doors are held against, by itself: in one era, asking what tools of the other one ask."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.conformance.stage import Role, Stage
from tests.e2e import environments
from tests.scenario.client import PATIENCE_S, message

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
CAPABILITIES: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
ANSWERS: Json = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"},
    "roots/list": {"roots": []},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
}


class Peer:
    """A client of the server, line by line."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._read = bytearray()

    async def say(self, said: Json) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(json.dumps(said).encode() + b"\n")

    async def hear(self) -> Json:
        assert self._process.stdout is not None
        with trio.fail_after(PATIENCE_S):
            while b"\n" not in self._read:
                part = await self._process.stdout.receive_some()
                assert part, "the server ended"
                self._read += part
        line, _, self._read[:] = self._read.partition(b"\n")
        heard: Json = json.loads(line)
        return heard

    async def ask(self, method: str, params: Json) -> Json:
        await self.say(message(method, params))
        return await self.hear()

    async def call(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}, **more})


@asynccontextmanager
async def reference(role: Role) -> AsyncIterator[Peer]:
    if environments.node() is None:
        pytest.skip("no Node.js 20 or later, and so no conformance suite")
    stage = Stage(environments.conformance())
    process = await trio.lowlevel.open_process(
        role.command("stdio"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=stage.environment
    )
    try:
        yield Peer(process)
    finally:
        process.kill()
        with trio.move_on_after(PATIENCE_S, shield=True):
            await process.wait()


async def test_a_legacy_server_asks_by_requests_what_modern_tools_ask_by_results() -> None:
    async with reference(Role("legacy", overlay=True)) as peer:
        assert (await peer.ask("server/discover", {"_meta": ENVELOPE}))["error"]["code"] == -32601
        info = {"name": "test", "version": "1"}
        opening = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "clientInfo": info}
        assert (await peer.ask("initialize", opening))["result"]["protocolVersion"] == "2025-11-25"
        await peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        first = await peer.call("test_input_required_result_multiple_inputs")
        questions = [first, await peer.hear(), await peer.hear()]
        assert {question["method"] for question in questions} == ANSWERS.keys()
        for question in questions:
            await peer.say({"jsonrpc": "2.0", "id": question["id"], "result": ANSWERS[question["method"]]})
        assert (await peer.hear())["result"]["content"][0]["text"] == "All inputs received."


async def test_a_modern_server_asks_by_results_what_legacy_tools_ask_by_requests() -> None:
    async with reference(Role("modern", overlay=True)) as peer:
        refused = await peer.ask("initialize", {"protocolVersion": "2025-11-25"})
        assert refused["error"]["code"] == -32022
        asked = (await peer.call("test_sampling", {"prompt": "Well?"}, _meta=ENVELOPE))["result"]
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["params"]["messages"][0]["content"]["text"] == "Well?"
        answers = {key: ANSWERS[question["method"]]}
        retry = {"inputResponses": answers, "_meta": ENVELOPE}
        result = (await peer.call("test_sampling", {"prompt": "Well?"}, **retry))["result"]
        assert result["content"][0]["text"] == "LLM response: Paris"
