"""A tour of all behaviours of real servers: one daemon before them, and clients of both eras at its doors."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import trio

from supervisor.host.datadir import open_data_dir
from supervisor.service.doors.everything import NAME_KEY, SERVER_KEY
from tests.fakes.behaving_remote import MANNERS, OTHERS, BehavingRemote
from tests.fakes.behaviours import BEHAVIOURS
from tests.fakes.era_clients import EraClient, NoResult
from tests.scenario.client import Client
from tests.scenario.daemon import configuration, running

ROOT = Path(__file__).parents[2]
AT_ONCE = 8
"""Servers that are looked at: of more connections than that, the pool of the clients would keep none."""
ERAS = ("legacy", "modern")
SILENT = ("probe-kills-the-reader", "pinned-slow", "websocket-deaf-to-the-probe")
"""What would take long to show with the usual `probe_timeout_s`."""
FAILED = {
    "wants-2099": "the server wants protocol version '2099-01-01', which we do not speak",
    "only-2099": "the server speaks 2099-01-01; we speak 2026-07-28",
}
"""What ends as failed, and what is said of it."""
NAMES = {name: [tool["name"] for tool in each.tools] for name, each in BEHAVIOURS.items()}
"""The tools of each."""
NAMES |= {name: ["echo", "heard"] for name in ("same-name-twice", *MANNERS, *OTHERS)}
LISTS = {"resources": ("resources/list", "resources/templates/list"), "prompts": ("prompts/list",)}
USABLE = [name for name in NAMES if name not in FAILED]


@dataclass
class Seen:
    """What was seen of one server: its rows in the status, and by door and era what a client got."""

    row: dict[str, Any] = field(default_factory=dict)
    asleep: dict[str, Any] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)


def entry(name: str, url: str = "") -> dict[str, Any]:
    quick = {"probe_timeout_s": 0.7} if name in SILENT else {}
    if url:
        return {"url": url, **quick}
    arguments = ["-S", "-m", "tests.fakes.behaving_server", name]
    return {"command": sys.executable, "args": arguments, "cwd": str(ROOT), **quick}


async def look_at(http: httpx2.AsyncClient, name: str, seen: Seen) -> None:
    """Be a client of each era, at the door of this server and at those that it shares."""
    for era in ERAS:
        client, meta, everything = (EraClient(http, path, era) for path in (f"/mcp/servers/{name}", "/mcp", "/mcp/all"))
        try:
            seen.answers[f"greeting {era}"] = await client.greet()
            listed = await client.tools()
            seen.names[era] = [tool["name"] for tool in listed]
            found = await meta.result("tools/call", name="discover_mcp_tools", arguments={"query": f"{name}:*"})
            paths = [tool["tool_path"] for tool in found["structuredContent"]["tools"]]
            seen.names[f"{era} at /mcp"] = [path.removeprefix(f"{name}:") for path in paths]
            if NAMES[name]:
                seen.texts[era] = await client.call("echo", text="hello")
                path = {"tool_path": f"{name}:echo", "arguments": {"text": "hello"}}
                seen.texts[f"{era} at /mcp"] = await meta.call("execute_mcp_tool", **path)
                seen.texts[f"{era} at /mcp/all"] = await everything.call(f"{name}__echo", text="hello")
                seen.answers[f"heard {era}"] = await client.call("heard", text="")
            for called in BEHAVIOURS[name].calls if name in BEHAVIOURS else ():
                seen.answers[f"{called} {era}"] = await client.ask("tools/call", name=called, arguments={"text": ""})
                path = {"tool_path": f"{name}:{called}", "arguments": {"text": ""}}
                seen.answers[f"{called} {era} at /mcp"] = await meta.ask(
                    "tools/call", name="execute_mcp_tool", arguments=path
                )
            seen.answers[f"tools {era}"] = listed
            capabilities = BEHAVIOURS[name].capabilities if name in BEHAVIOURS else {}
            for method in [method for kind in capabilities for method in LISTS.get(kind, ())]:
                for door, each in (("own", client), ("/mcp", meta), ("/mcp/all", everything)):
                    seen.answers[f"{method} {era} {door}"] = await each.ask(method)
            seen.answers[f"unknown tool {era}"] = await client.ask("tools/call", name="nothing", arguments={})
            seen.answers[f"no resource {era}"] = await client.ask("resources/read", uri="test://none")
        except NoResult as refusal:
            seen.wrong.append(str(refusal))
        seen.wrong += client.wrong + meta.wrong + everything.wrong


async def look_again(http: httpx2.AsyncClient, name: str, seen: Seen) -> None:
    """Look at what is told of it while it sleeps, and wake it by a call."""
    clients = [EraClient(http, f"/mcp/servers/{name}", era) for era in ERAS]
    try:
        for era, client in zip(ERAS, clients, strict=True):
            await client.greet()
            seen.names[f"{era} asleep"] = [tool["name"] for tool in await client.tools()]
        for era, client in zip(ERAS, clients, strict=True):
            if NAMES[name]:
                seen.texts[f"{era} asleep"] = await client.call("echo", text="hello")
    except NoResult as refusal:
        seen.wrong.append(str(refusal))
    seen.wrong += [wrong for client in clients for wrong in client.wrong]


async def rows(http: httpx2.AsyncClient) -> dict[str, Any]:
    return {row["server"]: row for row in (await http.get("/api/status")).json()["servers"]}


async def look(directory: Path) -> dict[str, Seen]:
    """Run all servers and a daemon before them, look at each, and put them to sleep."""
    async with AsyncExitStack() as stack:
        remotes = {name: BehavingRemote(manner) for name, manner in MANNERS.items()}
        entries = {name: entry(name) for name in BEHAVIOURS}
        for name, remote in remotes.items():
            entries[name] = entry(name, (await stack.enter_async_context(remote.server().running())).url)
        for name, make in OTHERS.items():
            server = make()
            await stack.enter_async_context(server.running())
            entries[name] = entry(name, server.url)
        seen = await look_before(entries, directory)
        for name, remote in remotes.items():
            seen[name].wrong += [*remote.wrong, *(f"{session} was not ended" for session in remote.minted)]
    return seen


async def look_before(entries: dict[str, Any], directory: Path) -> dict[str, Seen]:
    seen = {name: Seen() for name in entries}
    # The clients are in the loop of the daemon: on a busy machine they read later than a client may.
    patient = {"tcp_user_timeout_s": 60, "send_timeout_s": 60}
    config = configuration(directory, entries, starts_per_s=100, cold_starts=8, **patient)
    with open_data_dir(directory / "data", {}) as data:
        async with running(config, data, patience_s=600) as http:
            await Client(http).ready()
            for name, row in (await rows(http)).items():
                seen[name].row = row
            for era in ERAS:
                client = EraClient(http, "/mcp/all", era)
                for meta in [tool["_meta"] for tool in await client.tools()]:
                    seen[meta[SERVER_KEY]].names.setdefault(f"{era} at /mcp/all", []).append(meta[NAME_KEY])
                seen["plain"].wrong += client.wrong
            await for_each(lambda name: look_at(http, name, seen[name]))
            await for_each(lambda name: http.post(f"/api/servers/{name}/sleep"))
            for name, row in (await rows(http)).items():
                seen[name].asleep = row
            await for_each(lambda name: look_again(http, name, seen[name]))
    return seen


async def for_each(visit: Callable[[str], Awaitable[object]]) -> None:
    """Visit all that are usable, `AT_ONCE` at a time."""
    left = iter(USABLE)

    async def visit_those_left() -> None:
        for name in left:
            await visit(name)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(visit_those_left)
