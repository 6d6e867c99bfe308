"""What clients of each revision are told of a tool, at doors that list tools, and that its results are like that."""

from __future__ import annotations

from typing import Any

import pytest

from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS, Era
from supervisor.service.client import Client
from tests.fakes.published import served, validator
from tests.fakes.whole_server import WholeServer

CLIENTS = [
    *(Client(version=version) for version in LEGACY_VERSIONS),
    *(Client(era="modern", version=version) for version in MODERN_VERSIONS),
]
TREE = {
    "$defs": {"leaf": {"type": "number"}},
    "type": "array",
    "items": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#"}]},
}
TOOL: dict[str, Any] = {
    "name": "tree",
    "inputSchema": {"type": "object", "properties": {"any": True}},
    "outputSchema": TREE,
    "execution": {"taskSupport": "forbidden"},
    "x-own": [1.0],
}
NAMES = {"servers/whole": "tree", "all": "whole__tree"}


class Grower(WholeServer):
    """Answers each call with a tree."""

    def _result(self, method: str, params: Any) -> Any:
        if method == "tools/call":
            kind = {"resultType": "complete"} if self.era == "modern" else {}
            return {**kind, "content": [], "structuredContent": [1, [2, []]]}
        return super()._result(method, params)


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("door", NAMES)
async def test_a_client_is_told_what_its_revision_knows(era: Era, door: str, *, asleep: bool) -> None:
    async with served({"whole": Grower(era, tools=[TOOL])}, era=era) as running:
        for client in CLIENTS:
            if asleep:
                await running.sleep("whole")
            (told,) = (await running.result("tools/list", client, door))["tools"]
            assert (told["name"], told["x-own"]) == (NAMES[door], [1.0])
            assert ("execution" in told) == (client.version == "2025-11-25")
            anything: Any = True if client.era == "modern" else {}
            assert told["inputSchema"] == {"type": "object", "properties": {"any": anything}}
            got = await running.result("tools/call", client, door, name=NAMES[door])
            if client.version < "2025-06-18":
                assert "outputSchema" not in told
                assert got == {"content": [{"type": "text", "text": "[1, [2, []]]"}]}
                continue
            assert told["outputSchema"].get("type") == ("array" if client.era == "modern" else "object")
            checked = validator(told["outputSchema"])
            assert checked.is_valid(got["structuredContent"])
            wrong = ["x"] if client.era == "modern" else {"result": [["x"]]}
            assert not checked.is_valid(wrong)
