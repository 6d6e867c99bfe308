"""The steps of `mcpvisor demo`: each does something, checks what came back, and says so with its numbers.

A step that does not get what it should raises `TourFailed`; the tour then ends with exit code 1. All numbers are
measured in this run; the tools that tokens are counted for are those of the demo's own servers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click
import trio
from rich.console import Console

from supervisor.commands.common import console, plain
from supervisor.commands.status import render_servers, savings_line
from supervisor.daemon_client.client import DaemonClient, DaemonUnreachable, RequestRefused, connect
from supervisor.daemon_client.sockets import Socket, open_socket
from supervisor.demo.setting import IDLE_S, LOG_NAME, DemoDaemon, TourFailed, configuration, last_lines, running_daemon
from supervisor.metatools.definitions import DISCOVER, EXECUTE
from supervisor.operations import STATUS

STEP_S = 60.0
POLL_S = 0.1
LIST_CHANGED = "notifications/tools/list_changed"

Status = dict[str, Any]


@click.command()
def demo() -> None:
    """Show the daemon at work with small servers that ship with it.

    Exit 0 if every step worked.
    """
    sys.exit(run_tour())


def run_tour(out: Console | None = None) -> int:
    """Run all steps, and tell of them on stdout or `out`; return 0, or 1 after saying which step failed and why."""
    out = out or console()
    try:
        with tempfile.TemporaryDirectory(prefix="mcpvisor-demo-") as directory:
            trio.run(_tour, Path(directory), out)
    except (TourFailed, DaemonUnreachable, RequestRefused) as error:
        console(stderr=True).print(f"The demo failed: {error}", markup=False)
        return 1
    return 0


async def _tour(directory: Path, out: Console) -> None:
    started = trio.current_time()
    out.print("A daemon, the MCP servers of this demo, and one client, all on this machine.", markup=False)
    async with running_daemon(directory, configuration()) as daemon, connect(daemon.url) as client:
        out.print(f"The daemon listens on {daemon.url} after {trio.current_time() - started:.2f} s.", markup=False)
        for title, step in Steps(daemon, client, out).all():
            try:
                await _perform(title, step, out)
            except TourFailed as error:
                log = last_lines(directory / LOG_NAME)
                raise TourFailed(f"{error}\nThe daemon's log ends with:\n{log}") from None
    out.print(f"\nAll steps worked, in {trio.current_time() - started:.1f} s.", markup=False)


async def _perform(title: str, step: Callable[[], Awaitable[None]], out: Console) -> None:
    out.print(f"\n{title}", style="bold", markup=False)
    with trio.move_on_after(STEP_S), out.status("working"):
        await step()
        return
    raise TourFailed(f'"{title}" was not done within {STEP_S:g} s')


class Steps:
    """The steps, in order; later ones use what earlier ones did."""

    def __init__(self, daemon: DemoDaemon, client: DaemonClient, out: Console) -> None:
        self._daemon = daemon
        self._client = client
        self._out = out

    def all(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        return [
            ("1. Servers come up: spawn, handshake, discover", self.come_up),
            ("2. A model searches by what it wants to do", self.discover),
            ("3. It runs what it found; servers of both protocol eras look the same", self.execute),
            ("4. A server gets a new tool while it runs, and the client hears of it", self.change),
            ("5. An idle server sleeps without a process, and a call wakes it", self.sleep_and_wake),
            ("6. What the four meta-tools save", self.save),
            ("7. The daemon ends, and nothing is left", self.end),
        ]

    async def come_up(self) -> None:
        """Wait until every server is discovered and its tokens are counted."""
        wanted = set(configuration()["mcpServers"])
        while True:
            status = await self._client.perform(STATUS)
            known = {row["server"] for row in status["servers"] if row.get("tools")}
            if known == wanted and status["tokens"]["counted"]:
                break
            failed = [row for row in status["servers"] if row["state"] == "failed"]
            if failed:
                raise TourFailed(f"{failed[0]['server']} failed: {failed[0]['last_error']}")
            await trio.sleep(POLL_S)
        now = status["started"] + status["uptime_s"]
        self._out.print(render_servers(status["servers"], now, self._out))

    async def discover(self) -> None:
        await self._find("write down something to remember", "notes:add_note")
        await self._find("roll out a new version to production", "engineering:create_deployment")
        await self._find("crate a suport tiket", "support:create_ticket")

    async def execute(self) -> None:
        note = {"title": "demo", "text": "it works"}
        self._say(f"notes:add_note answers: {await self._run('notes:add_note', note)}")
        self._say(f"calculator:calculate answers: {await self._run('calculator:calculate', {'expression': '6 * 7'})}")
        for row in (await self._client.perform(STATUS))["servers"]:
            if row["server"] in ("notes", "calculator"):
                self._say(f"{row['server']} speaks MCP {row['protocol_version']} ({row['era']} era)")

    async def change(self) -> None:
        """Open a weather station over WebSocket and wait for the notification on the same connection."""
        async with open_socket(self._daemon.url, "/mcp") as socket:
            await _handshake(socket)
            station = {"tool_path": "weather-desk:open_station", "arguments": {"place": "Lisbon"}}
            begun = trio.current_time()
            await socket.send(_request(2, "tools/call", {"name": EXECUTE, "arguments": station}))
            while (await socket.receive()).get("method") != LIST_CHANGED:
                continue
            milliseconds = (trio.current_time() - begun) * 1000
        self._say(f"{LIST_CHANGED} arrived over WebSocket {milliseconds:.0f} ms after the call")
        await self._find("what is the weather like in Lisbon", "weather-desk:observe_lisbon")
        self._say(f"it answers: {await self._run('weather-desk:observe_lisbon', {})}")

    async def sleep_and_wake(self) -> None:
        """Wait until the calculator sleeps, find its tool all the same, and call it."""
        before = await self._server("calculator")
        while before["state"] != "dormant":
            await trio.sleep(POLL_S)
            before = await self._server("calculator")
        self._say(f"calculator is dormant after {IDLE_S:g} s without a call: no process, {before['tools']} tools kept")
        await self._find("average of numbers", "calculator:describe_numbers")
        begun = trio.current_time()
        answer = await self._run("calculator:calculate", {"expression": "(2 + 3) * 4"})
        milliseconds = (trio.current_time() - begun) * 1000
        after = await self._server("calculator")
        if after["incarnation"] <= before["incarnation"]:
            raise TourFailed("the calculator was not started again")
        self._say(f"a call woke it: {answer} after {milliseconds:.0f} ms, process {after['pid']}")

    async def save(self) -> None:
        """Show the tokens, counted with a real tokenizer if there is one."""
        status = await self._client.perform(STATUS)
        self._say(savings_line(status["totals"], status["tokens"]))
        if status["tokens"]["saved_tokens"] <= 0:
            raise TourFailed("nothing was saved")
        how = "counted with tiktoken, cl100k_base" if status["tokens"]["exact"] else "estimated: no tokenizer is there"
        self._say(f"{how}: name, description and input schema of every tool")

    async def end(self) -> None:
        pids = [row["pid"] for row in (await self._client.perform(STATUS))["servers"] if row["pid"]]
        await self._daemon.end()
        left = [pid for pid in pids if _lives(pid)]
        if left:
            raise TourFailed(f"processes outlived the daemon: {left}")
        self._say(f"exit code 0; all {len(pids)} server processes are gone")

    async def _find(self, query: str, path: str) -> None:
        """Search until `path` is the first hit: the index follows a change within moments."""
        while True:
            answer = await self._client.call(DISCOVER, {"query": query, "limit": 5})
            page = answer["structuredContent"]
            first = page["tools"][0] if page["tools"] else {}
            if first.get("tool_path") == path:
                break
            await trio.sleep(POLL_S)
        self._say(
            f'"{query}" finds {path}, score {first["relevance_score"]:.3f} (0 is best), '
            f"in {page['search_time_ms']:.1f} ms"
        )

    async def _run(self, path: str, arguments: dict[str, Any]) -> str:
        result = await self._client.call(EXECUTE, {"tool_path": path, "arguments": arguments})
        text = str(result["content"][0]["text"])
        if result.get("isError"):
            raise TourFailed(f"{path} answered with an error: {text}")
        return text

    async def _server(self, name: str) -> Status:
        rows: list[Status] = (await self._client.perform(STATUS))["servers"]
        return next(row for row in rows if row["server"] == name)

    def _say(self, text: str) -> None:
        self._out.print("  ", plain(text), sep="")


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def _handshake(socket: Socket) -> None:
    about = {"name": "mcpvisor-demo", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    await socket.send(_request(1, "initialize", params))
    await socket.receive()
    await socket.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
