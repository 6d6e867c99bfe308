"""A yes for longer than one call: for one person and one tool as it was, until it is taken back."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import META
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Json
from tests.scenario.daemon import World, world
from tests.supervisor.commands.test_cli import ask as command

IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}, "ben": {}}}
ENTRY: dict[str, Any] = {"command": "x", "confirm": ["echo", "sleep"]}
SERVERS: dict[str, Any] = {"desk": ENTRY, "shelf": ENTRY}


def daemon(directory: Path, data: DataDir, tools: list[Json] | None = None) -> AbstractAsyncContextManager[World]:
    fakes = dict.fromkeys(SERVERS, FakeServer(tools=tools or [tool("echo"), tool("sleep")]))
    people = {"ana": {"role": "admin"}, "ben": {"role": "admin"}}
    return world(directory, data, SERVERS, fakes, people=people, auth="tokens", identity=IDENTITY)


async def call(
    at: World,
    who: str,
    remember: str | None = "once",
    *,
    client: str = "ide",
    name: str = "echo",
    server: str = "desk",
) -> bool:
    """Call a tool, and say yes if that is asked for; return whether it was."""
    meta = {f"{META}clientInfo": {"name": client, "version": "1"}}
    asked = {"tool_path": f"{server}:{name}", "arguments": {"s": 0}}

    async def post(**more: Any) -> Any:
        more |= {"name": "execute_mcp_tool", "arguments": asked, "_meta": meta}
        return (await at[who].send_modern("tools/call", able={"elicitation": {}}, **more)).json()["result"]

    told = await post()
    if "inputRequests" not in told:
        assert not told.get("isError"), told
        return False
    content = {"run": True} if remember is None else {"run": True, "remember": remember}
    answer = {"confirm": {"action": "accept", "content": content}}
    told = await post(inputResponses=answer, requestState=told["requestState"])
    assert not told.get("isError"), told
    return True


async def test_a_yes_lasts_as_long_as_was_said(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        for lasting in ("once", None, "nonsense"):
            assert await call(at, "ana", lasting)
        assert await call(at, "ana", "session")
        assert not await call(at, "ana"), "this client is not asked today"
        assert await call(at, "ana", client="other"), "another one is"
        assert await call(at, "ana", name="sleep"), "and for another tool"
        assert await call(at, "ana", server="shelf"), "and for the same one of another server"
        assert await call(at, "ben", "always"), "and another person"
        assert not await call(at, "ben", client="any")
        assert await call(at, "ana", client="other")


@pytest.mark.case("X06")
async def test_a_yes_for_good_is_kept_and_ends_with_the_definition_that_it_was_for(
    tmp_path: Path, data: DataDir
) -> None:
    tools = [tool("echo"), tool("sleep")]
    async with daemon(tmp_path, data, tools) as at:
        assert await call(at, "ben", "always")
        assert await call(at, "ben", "session", name="sleep")
    async with daemon(tmp_path, data, tools) as again:
        again.keys = at.keys
        assert not await call(again, "ben")
        assert await call(again, "ben", name="sleep"), "what was for a session is over"
        tools[0]["description"] = "Does something else now."
        await again.ordered("desk", "refresh")
        assert await call(again, "ben"), "it is another tool by now"


async def test_a_yes_is_taken_back_by_whose_it_is_or_an_admin(tmp_path: Path, data: DataDir) -> None:
    async with daemon(tmp_path, data) as at:
        assert await call(at, "ben", "always")
        assert await call(at, "ana", "always")
        listed = (await at["ben"].page("/api/consents"))["consents"]
        assert [(each["user"], each["server"], each["tool"], each["client"]) for each in listed] == [
            ("ben", "desk", "echo", "")
        ]
        every = (await at["ana"].page("/api/consents"))["consents"]
        assert [each["user"] for each in every] == ["ben", "ana"]
        of_ana = every[1]["id"]
        assert (await at["ben"].ask("DELETE", f"/api/consents/{of_ana}")).status_code == 404
        assert (await at["ben"].ask("DELETE", f"/api/consents/{listed[0]['id']}")).status_code == 200
        assert await call(at, "ben")
        assert not await call(at, "ana")
        shown = (await command(at.url, "consents")).stdout.splitlines()
        assert shown[0].split() == ["ID", "TOOL", "WHOSE", "FOR", "SINCE"]
        assert shown[1].split()[:4] == [of_ana, "desk:echo", "ana", "good"]
        refused = await command(at.url, "consents", of_ana, "none")
        assert (refused.exit_code, "by the ID none; nothing was taken back" in refused.stderr) == (1, True)
        assert (await command(at.url, "consents", of_ana)).stderr == "desk:echo asks again\n"
        assert await call(at, "ana")
        assert (await command(at.url, "consents")).stderr == "Every tool that has to ask asks each time.\n"
        assert (await command(at.url, "consents", "none")).exit_code == 1
