"""`python -m benchmarks.soak --minutes 60`: mixed load on a daemon, with kills of servers and clients that come back.

Clients of both eras over HTTP, and over WebSocket, search, call, read resources, list, and send what is wrong; each of
them leaves after a while, sometimes in the middle of a call, and comes again. Servers of every mood (`soak_server.py`)
run behind, and one of their processes is killed every few seconds. Every answer must be a result, or an error with a
type of its own: what is neither is counted as untyped, and the exit code says so. Memory, descriptors and threads of
the daemon are sampled.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import trio
import trio_websocket

from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN
from benchmarks.client import ACCEPT, call, initialize
from benchmarks.machine import descendants, memory
from benchmarks.running import Place, daemon, entry

MOODS = ("steady", "slow", "large", "failing", "mortal", "restless", "babbling", "looping", "mute")
SERVER = Path(__file__).parent / "soak_server.py"
CALL_S = 90.0
"""Longer than the daemon lets a call wait by default: it must be the one that says so."""
SAMPLE_S = 10.0
LARGEST = 32 * 1024 * 1024
"""What a client takes: an answer has up to 16 MiB and what is around it."""


class Told(msgspec.Struct, kw_only=True):
    """What was answered so far. `untyped` has examples of what is no result and no typed error."""

    requests: int = 0
    results: int = 0
    tool_errors: int = 0
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    untyped: list[str] = msgspec.field(default_factory=list)
    left: int = 0

    def note(self, what: str, answer: Any) -> None:
        """Count one answer to `what`."""
        self.requests += 1
        result = answer.get("result") if isinstance(answer, dict) else None
        ours = (result.get("structuredContent") or {}).get("error") if isinstance(result, dict) else None
        if isinstance(result, dict) and isinstance(ours, dict) and result.get("isError"):
            self.errors[f"{ours['code']} {ours.get('type') or 'of the server'}"] += 1
        elif isinstance(result, dict):
            self.results += 1
            self.tool_errors += bool(result.get("isError"))
        elif isinstance(answer, dict) and _typed(answer.get("error")):
            data = answer["error"].get("data")
            kind = data.get("type") if isinstance(data, dict) else None
            self.errors[f"{answer['error']['code']} {kind or 'of the server'}"] += 1
        else:
            self.wrong(what, repr(answer)[:300])

    def wrong(self, what: str, how: str) -> None:
        """Count what is neither a result nor a typed error."""
        self.untyped.append(f"{what}: {how}")


def _typed(error: Any) -> bool:
    """Return whether an error says what it is: ours have a type, those of the failing server its own code."""
    if not isinstance(error, dict) or not isinstance(error.get("code"), int) or not error.get("message"):
        return False
    data = error.get("data")
    return error["code"] in (-32050, -32601, -32700, -32600) or (isinstance(data, dict) and bool(data.get("type")))


class Sample(msgspec.Struct, frozen=True):
    """The daemon at one moment."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int


Ask = Callable[[dict[str, Any]], Awaitable[Any]]


def messages(luck: random.Random, era: str) -> tuple[str, dict[str, Any]]:
    """Return what is asked next, and its name."""
    mood = luck.choice(MOODS)
    number = luck.randrange(1_000_000)
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "execute": ("execute_mcp_tool", {"tool_path": f"{mood}:echo", "arguments": {"text": f"text {number}" * 10}}),
        "direct": (f"{mood}-repeat", {"text": str(number)}),
        "discover": (
            "discover_mcp_tools",
            {"query": luck.choice(("echo a text", "*", "the slow one", "zzz qq", "extra"))},
        ),
        "list resources": ("list_mcp_resources", {}),
        "read resource": ("read_mcp_resource", {"uri": f"{mood}|soak://state"}),
        "missing argument": ("execute_mcp_tool", {"tool_path": f"{mood}:echo", "arguments": {}}),
        "unknown tool": ("execute_mcp_tool", {"tool_path": f"{mood}:nothing", "arguments": {}}),
        "unknown server": ("execute_mcp_tool", {"tool_path": "nobody:echo", "arguments": {"text": "x"}}),
        "no query": ("discover_mcp_tools", {}),
        "large": (
            "execute_mcp_tool",
            {"tool_path": f"{mood}:echo", "arguments": {"text": "x" * luck.randrange(200_000)}},
        ),
    }
    weights = (30, 10, 20, 3, 8, 4, 3, 3, 2, 2)
    name = luck.choices(list(tools), weights)[0]
    if luck.random() < 0.05:
        method = luck.choice(("tools/list", "resources/list", "prompts/list", "no/such"))
        message = call(("x", {}), number, "modern" if era == "modern" else "legacy")
        params = {key: value for key, value in message["params"].items() if key == "_meta"}
        return method, {**message, "method": method, "params": params}
    return f"{name} ({mood})", call(tools[name], number, "modern" if era == "modern" else "legacy")


async def over_http(port: int, era: str, told: Told, luck: random.Random) -> None:
    """Be one client for a while, and leave."""
    headers = {**ACCEPT, "MCP-Protocol-Version": LATEST_MODERN if era == "modern" else LATEST_LEGACY}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=CALL_S) as http:
        if era == "legacy":
            answer = await http.post("/mcp", content=msgspec.json.encode(initialize()), headers=ACCEPT)
            headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]

        async def ask(message: dict[str, Any]) -> Any:
            routing = {}
            if era == "modern":
                routing = {"Mcp-Method": message["method"]}
                if message["method"] == "tools/call":
                    routing["Mcp-Name"] = message["params"]["name"]
            answer = await http.post("/mcp", content=msgspec.json.encode(message), headers={**headers, **routing})
            text = answer.text
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                text = text.rpartition("data: ")[2]
            return msgspec.json.decode(text)

        await converse(ask, era, told, luck)
        if era == "legacy" and luck.random() < 0.7:
            await http.delete("/mcp", headers=headers)


async def over_websocket(port: int, told: Told, luck: random.Random) -> None:
    """Be one WebSocket client for a while, and leave."""
    url = f"ws://127.0.0.1:{port}/mcp"
    async with trio_websocket.open_websocket_url(url, subprotocols=["mcp"], max_message_size=LARGEST) as socket:

        async def ask(message: dict[str, Any]) -> Any:
            await socket.send_message(msgspec.json.encode(message).decode())
            while True:
                answer = msgspec.json.decode(await socket.get_message())
                if "id" in answer:
                    return answer

        await ask(initialize())
        await socket.send_message('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        await converse(ask, "legacy", told, luck)


async def converse(ask: Ask, era: str, told: Told, luck: random.Random) -> None:
    """Ask some things one after the other; sometimes leave in the middle."""
    for _ in range(luck.randrange(5, 60)):
        what, message = messages(luck, era)
        if luck.random() < 0.01:
            with trio.move_on_after(0.05):
                told.note(what, await ask(message))
                continue
            told.left += 1
            return
        with trio.move_on_after(CALL_S) as scope:
            told.note(what, await ask(message))
        if scope.cancelled_caught:
            told.wrong(what, f"no answer within {CALL_S:g} s")
            return
        await trio.sleep(luck.random() * 0.05)


async def client(port: int, kind: str, told: Told, seed: int) -> None:
    """Be one client after the other, for ever."""
    luck = random.Random(seed)
    while True:
        try:
            # A client's library may raise a cancellation again whose scope has ended long ago. It ends the nursery it
            # comes to, silently: that must not be the one of all clients.
            async with trio.open_nursery() as nursery:
                if kind == "websocket":
                    nursery.start_soon(over_websocket, port, told, luck)
                else:
                    nursery.start_soon(over_http, port, kind, told, luck)
        except* (httpx2.HTTPError, trio_websocket.ConnectionClosed, OSError, msgspec.MsgspecError, KeyError) as group:
            told.wrong(f"a {kind} client", repr(group.exceptions[0])[:300])
            await trio.sleep(0.2)


async def kill(pid: int, luck: random.Random, kills: list[int]) -> None:
    """Kill one process of a server every few seconds, for ever."""
    while True:
        await trio.sleep(luck.uniform(20, 60))
        victims = [child for child in descendants(pid) if b"soak_server" in _command(child)]
        if victims:
            victim = luck.choice(victims)
            try:
                os.kill(victim, luck.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)))
                kills.append(victim)
            except ProcessLookupError:
                continue


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def looked_at(pid: int, at_s: float) -> Sample:
    """Return how the daemon is now."""
    descriptors, threads = (len(list(Path(f"/proc/{pid}/{what}").iterdir())) for what in ("fd", "task"))
    return Sample(at_s, memory(pid).rss_mib, descriptors, threads)


async def sample(pid: int, samples: list[Sample], told: Told) -> None:
    """Look at the daemon now and then, for ever."""
    begin = time.monotonic()
    while True:
        await trio.sleep(SAMPLE_S)
        looked = looked_at(pid, time.monotonic() - begin)
        samples.append(looked)
        print(
            f"{looked.at_s:6.0f} s: {told.requests} answers, {len(told.untyped)} untyped, {looked.rss_mib:.0f} MiB, "
            f"{looked.descriptors} descriptors, {looked.threads} threads",
            file=sys.stderr,
            flush=True,
        )


async def run(port: int, pid: int, minutes: float, clients: int, seed: int) -> tuple[Told, list[Sample], int]:
    """Load the daemon for so long; return what was answered, the samples and the number of kills."""
    told, samples, kills = Told(), list[Sample](), list[int]()
    kinds = ("legacy", "modern", "websocket")
    with trio.move_on_after(minutes * 60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sample, pid, samples, told)
            nursery.start_soon(kill, pid, random.Random(seed), kills)
            for number in range(clients):
                nursery.start_soon(client, port, kinds[number % 3], told, seed + number)
    return told, samples, len(kills)


def compare(samples: list[Sample]) -> list[str]:
    """Return a table of how the daemon was early and late."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples, samples[-quarter:]

    def mean(part: list[Sample], name: str) -> float:
        return float(sum(getattr(one, name) for one in part)) / max(1, len(part))

    return [
        "| of the daemon | second quarter | last quarter |",
        "| --- | --- | --- |",
        *(
            f"| {words} | {mean(early, name):.0f} | {mean(late, name):.0f} |"
            for words, name in (("RSS, MiB", "rss_mib"), ("descriptors", "descriptors"), ("threads", "threads"))
        ),
    ]


def report(told: Told, samples: list[Sample], kills: int, log: Path) -> str:
    """Return what was found in words and tables."""
    lines = [
        f"{told.requests} answers: {told.results} results ({told.tool_errors} of them errors of tools), "
        f"{sum(told.errors.values())} typed errors, {len(told.untyped)} untyped; {kills} kills of servers, "
        f"{told.left} clients left in the middle of a call.",
        "",
        "| error | times |",
        "| --- | --- |",
        *(f"| {kind} | {count} |" for kind, count in told.errors.most_common()),
        "",
        *compare(samples),
        "",
        f"The log has {len(log.read_text(errors='replace').splitlines())} lines.",
        *told.untyped[:20],
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the soak; return 1 if anything was answered that is no result and no typed error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="keep the daemon's log there")
    arguments = parser.parse_args()
    moods = {mood: entry((sys.executable, str(SERVER), mood), idle_timeout_s=20) for mood in MOODS}
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        place = Place(Path(directory))
        log = Path(directory) / "daemon.log"
        with daemon(place, moods, log_level="info") as running:
            told, samples, kills = trio.run(
                run, running.port, running.process.pid, arguments.minutes, arguments.clients, arguments.seed
            )
            ended = running.process.poll()
        print(report(told, samples, kills, log))
        if arguments.log is not None:
            arguments.log.write_bytes(log.read_bytes())
    if ended is not None:
        print(f"The daemon ended by itself with {ended}.")
    return 1 if told.untyped or ended is not None else 0


if __name__ == "__main__":
    sys.exit(main())
