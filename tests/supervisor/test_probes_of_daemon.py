"""Forty ways to ask for what is somebody else's: each is answered as for what never was."""

from __future__ import annotations

import re
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from supervisor.host.datadir import DataDir
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.task_server import TaskServer
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import message
from tests.scenario.daemon import Fake, World, world

SERVERS: dict[str, Any] = {
    "vault": {"command": "x", "users": ["ana"]},
    "works": {"command": "x", "users": ["ana"]},
    "clock": {"command": "x", "result_token_budget": {"tell": 1000}, "confirm": ["wind"]},
}
SCHEMA = {"inputSchema": {"type": "object"}}
TOOLS = [{"name": name, **SCHEMA} for name in ("unlock", "deposit")]
WORDS = {"content": [{"type": "text", "text": "it is late " * 1000}]}
FOREIGN = {"server": "vault", "tool": "unlock", "uri": "file:///a", "prompt": "reckon"}
"""Things of ana."""
NOWHERE = {"server": "qwxyz", "tool": "gjmpqv", "uri": "file:///q", "prompt": "zwvxqj"}
"""Things of nobody, as long as those, and as unlike to anything that ben has."""


class Rpc(Struct, frozen=True):
    """A request of MCP; `{server}` and the like in it stand for what is asked for."""

    method: str
    params: dict[str, Any] = {}
    door: str = "/mcp"
    session: str = ""
    """In which session it is sent: `own`, or `{session}`."""
    modern: bool = False


class Page(Struct, frozen=True):
    """A request for a page."""

    method: str
    path: str
    body: Any = None


def meta_tool(name: str, **arguments: Any) -> Rpc:
    return Rpc("tools/call", {"name": name, "arguments": arguments})


DOOR = "/mcp/servers/{server}"
ASKED: dict[str, Any] = {"elicitation": {"form": {}}}
ASKS = Rpc("tools/call", {"name": "clock__wind", "arguments": {}}, "/mcp/all", modern=True)
YES = {"action": "accept", "content": {"run": True}}
PROBES: dict[str, Rpc | Page] = {
    "a call by path": meta_tool("execute_mcp_tool", tool_path="{server}:{tool}", arguments={}),
    "a call by a name with a dash": meta_tool("execute_mcp_tool", tool_path="{server}-{tool}", arguments={}),
    "a call by the tool alone": meta_tool("execute_mcp_tool", tool_path="{tool}", arguments={}),
    "a call of a tool that is not there": meta_tool("execute_mcp_tool", tool_path="{server}:none", arguments={}),
    "a direct call": Rpc("tools/call", {"name": "{server}__{tool}", "arguments": {}}),
    "a direct call of a tool alone": Rpc("tools/call", {"name": "{tool}", "arguments": {}}),
    "a call at the door of all": Rpc("tools/call", {"name": "{server}__{tool}", "arguments": {}}, "/mcp/all"),
    "a call as a task": Rpc(
        "tools/call", {"name": "{server}__{tool}", "arguments": {}, "task": {"ttl": 1000}}, "/mcp/all"
    ),
    "a search for the server": meta_tool("discover_mcp_tools", query="{server}"),
    "a search for the tool": meta_tool("discover_mcp_tools", query="{tool}"),
    "a search for the path": meta_tool("discover_mcp_tools", query="{server}:{tool}"),
    "a search for all of a server": meta_tool("discover_mcp_tools", query="{server}:*"),
    "a search with a filter": meta_tool("discover_mcp_tools", query="*", server="{server}"),
    "a list of resources": meta_tool("list_mcp_resources", server="{server}"),
    "a resource": meta_tool("read_mcp_resource", uri="{uri}"),
    "a resource of the server": meta_tool("read_mcp_resource", uri="{uri}", server="{server}"),
    "a resource by its own name": Rpc("resources/read", {"uri": "{uri}"}),
    "a resource by ours": Rpc("resources/read", {"uri": "mcp://{server}/{uri}"}),
    "a resource at the door of all": Rpc("resources/read", {"uri": "mcp://{server}/{uri}"}, "/mcp/all"),
    "a subscription": Rpc("resources/subscribe", {"uri": "mcp://{server}/{uri}"}, "/mcp/all", "own"),
    "the end of a subscription": Rpc("resources/unsubscribe", {"uri": "mcp://{server}/{uri}"}, "/mcp/all", "own"),
    "a prompt": Rpc("prompts/get", {"name": "{server}__{prompt}"}),
    "a prompt at the door of all": Rpc("prompts/get", {"name": "{server}__{prompt}"}, "/mcp/all"),
    "a completion of a prompt": Rpc(
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "{server}__{prompt}"}, "argument": {"name": "a", "value": ""}},
        "/mcp/all",
    ),
    "a completion of a resource": Rpc(
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "mcp://{server}/{uri}"}, "argument": {"name": "a", "value": ""}},
        "/mcp/all",
    ),
    "the door": Rpc("initialize", {"protocolVersion": "2025-11-25"}, DOOR),
    "the tools behind the door": Rpc("tools/list", door=DOOR),
    "a call through the door": Rpc("tools/call", {"name": "{tool}", "arguments": {}}, DOOR),
    "an unknown method at the door": Rpc("x-own/method", door=DOOR),
    "another's session": Rpc("tools/list", {}, "/mcp/all", "{session}"),
    "a kept result": meta_tool("read_mcp_resource", uri="{result}"),
    "a question": Rpc(
        "tools/call",
        {"name": "clock__wind", "arguments": {}, "inputResponses": {"confirm": YES}, "requestState": "{state}"},
        "/mcp/all",
        modern=True,
    ),
    "a task": Rpc("tasks/get", {"taskId": "{task}"}, "/mcp/all"),
    "the end of a task": Rpc("tasks/cancel", {"taskId": "{task}"}, "/mcp/all"),
    "the result of a task that has ended": Rpc("tasks/result", {"taskId": "{task}"}, "/mcp/all"),
    "the page of the server": Page("GET", "/api/servers/{server}"),
    "its log": Page("GET", "/api/servers/{server}/logs"),
    "its restart": Page("POST", "/api/servers/{server}/restart"),
    "its stop": Page("POST", "/api/servers/{server}/stop"),
    "its login": Page("POST", "/api/servers/{server}/login"),
    "its logout": Page("POST", "/api/servers/{server}/logout"),
    "its removal": Page("DELETE", "/api/servers/{server}"),
    "its change": Page("PATCH", "/api/servers/{server}", {"disabled": True}),
    "its tools": Page("GET", "/api/tools?server={server}"),
    "a look ahead at a call": Page("GET", "/api/preflight?tools={server}:{tool}"),
    "a token": Page("DELETE", "/api/access-tokens/{token}"),
}


CLOCK = [{"name": "tell", "annotations": {"readOnlyHint": True}, **SCHEMA}, {"name": "wind", **SCHEMA}]


class Clock(WholeServer):
    """A server whose tools answer at length, and which has no resources."""

    def _result(self, method: str, params: Any) -> Any:
        answers = {"tools/call": WORDS, "resources/list": {"resources": []}}
        return answers.get(method) or super()._result(method, params)


def doorway(directory: Path, data: DataDir, patience_s: float = 120) -> AbstractAsyncContextManager[World]:
    fakes: dict[str, Fake] = {
        "vault": WholeServer(tools=TOOLS, prompts=("reckon",)),
        "works": TaskServer(work_s=600),
        "clock": Clock(tools=CLOCK),
    }
    identity: dict[str, Any] = {"users": {"ana": {}, "ben": {}}}
    return world(directory, data, SERVERS, fakes, patience_s=patience_s, auth="tokens", identity=identity)


def filled(value: Any, things: dict[str, str]) -> Any:
    """A template with the names of things in it."""
    match value:
        case str():
            return re.sub(r"\{(\w+)\}", lambda found: things[found[1]], value)
        case dict():
            return {key: filled(member, things) for key, member in value.items()}
    return value


class Rig:
    """Ana, who has things, and ben. `benchmarks/probes.py` takes the time of what is asked here."""

    def __init__(self, at: World) -> None:
        self.at = at
        self.sessions: dict[str, str] = {}

    async def admit(self, user: str) -> str:
        """Make a token, and return its id, and a session."""
        token = await self.at.admit(user)
        self.sessions[user] = await self.at[user].at("/mcp/all").session()
        return token

    def request(self, who: str, probe: Rpc | Page, things: dict[str, str]) -> httpx2.Request:
        make, shown = self.at.http.build_request, self.at[who].headers
        if isinstance(probe, Page):
            return make(probe.method, filled(probe.path, things), json=probe.body, headers=shown)
        params, door = filled(probe.params, things), filled(probe.door, things)
        if probe.modern:
            content = modern(probe.method, params, clientCapabilities=ASKED)
            return make(
                "POST", door, content=content, headers={**modern_headers(probe.method, params["name"]), **shown}
            )
        session = {"own": self.sessions[who]}.get(probe.session) or filled(probe.session, things)
        headers = {"mcp-session-id": session} if session else {}
        return make("POST", door, json=message(probe.method, params), headers={**headers, **shown})

    async def ask(self, who: str, probe: Rpc | Page, things: dict[str, str]) -> httpx2.Response:
        return await self.at.http.send(self.request(who, probe, things))

    async def told(self, who: str, probe: Rpc | Page, things: dict[str, str]) -> tuple[int, str]:
        """Return the status of an answer, and its text without the names of things and what differs each time."""
        answer = await self.ask(who, probe, things)
        text = re.sub(r'(search_time_ms\\*":)[\d.]+|("requestState":)"[^"]+"', r"\1\2", answer.text)
        for thing, name in things.items():
            text = text.replace(name, f"<{thing}>")
        return answer.status_code, text

    async def things(self) -> dict[str, str]:
        """Return what ana has: the names of a server of hers, and of what she made."""
        made = await self.ask("ana", Rpc("tools/call", {"name": "clock__tell", "arguments": {}}), {})
        asked = await self.ask("ana", ASKS, {})
        task = {"name": "works__later", "arguments": {}, "task": {"ttl": 60_000}}
        begun = await self.ask("ana", Rpc("tools/call", task, "/mcp/all"), {})
        return {
            **FOREIGN,
            "token": await self.admit("ana"),
            "session": self.sessions["ana"],
            "result": made.json()["result"]["_meta"]["mcpvisor/result"]["uri"],
            "state": asked.json()["result"]["requestState"],
            "task": begun.json()["result"]["task"]["taskId"],
        }

    async def nothings(self, things: dict[str, str]) -> dict[str, str]:
        """Return the like of nobody: as long, and as unlike to anything that ben has.

        A state that was never given may be one of a server, and goes there; so there is one of ben's that is over.
        """
        state = (await self.ask("ben", ASKS, {})).json()["result"]["requestState"]
        await self.ask("ben", PROBES["a question"], {"state": state})
        forged = {thing: f"{text[:-12]}AAAAAA{text[-6:]}" for thing, text in things.items() if thing not in NOWHERE}
        return {**NOWHERE, **forged, "state": state}


@pytest.mark.case("C08", "I02", "I03", "I04")
async def test_what_is_somebody_elses_answers_as_what_never_was(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        rig = Rig(at)
        for user in ("ana", "ben"):
            await rig.admit(user)
        foreign = await rig.things()
        nowhere = await rig.nothings(foreign)
        assert len(PROBES) >= 40
        differing: dict[str, set[str]] = {"ben": set(), "ana": set()}
        for who, found in differing.items():
            for name, probe in PROBES.items():
                told = [await rig.told(who, probe, things) for things in (nowhere, foreign)]
                assert told[0][0] not in (401, 403), name
                if told[0] != told[1]:
                    found.add(name)
        assert differing["ben"] == set()
        members = {"its login", "its logout", "a look ahead at a call"}
        pages = {name for name, probe in PROBES.items() if isinstance(probe, Page)} - members
        assert PROBES.keys() - differing["ana"] == pages | {"the end of a subscription"}, (
            "whoever has a thing is told another thing"
        )


TIMES = 100
ALIKE = (0.75, 1.33)
"""How much longer one of two answers may take that shall not differ: the noise of 100 is a few per cent."""


@pytest.mark.case("I02")
async def test_what_is_somebody_elses_takes_as_long_as_what_never_was(tmp_path: Path, data: DataDir) -> None:
    """In processor time of this thread, which does not depend on what else the machine does."""
    async with doorway(tmp_path, data) as at:
        rig = Rig(at)
        await rig.admit("ben")
        for name in ("a call by path", "a resource of the server", "the page of the server"):
            took: tuple[list[float], list[float]] = ([], [])
            for turn in range(TIMES + 20):
                for times, things in zip(took, (NOWHERE, FOREIGN), strict=True):
                    request = rig.request("ben", PROBES[name], things)
                    begun = time.thread_time()
                    await at.http.send(request)
                    if turn >= 20:
                        times.append(time.thread_time() - begun)
            nowhere, foreign = map(median, took)
            assert ALIKE[0] < foreign / nowhere < ALIKE[1], name
