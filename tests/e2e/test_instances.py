"""Several processes of a server that does one call after the other, of a real daemon; and replicas that come and go."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.daemons import Daemon, running, text, write_config
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

CLIENTS = 4

SERVER = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        info = {"name": "slow", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "nap", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        began = time.monotonic()
        time.sleep(params["arguments"]["s"])
        told = {"pid": os.getpid(), "began": began, "ended": time.monotonic()}
        result = {"content": [{"type": "text", "text": json.dumps(told)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "?"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def slow(directory: Path, **settings: Any) -> dict[str, Any]:
    script = directory / "slow.py"
    script.write_text(SERVER)
    return {"command": sys.executable, "args": ["-I", "-S", str(script)], **settings}


async def nap(daemon: Daemon, server: str, seconds: float, told: list[dict[str, Any]]) -> None:
    answer = await daemon.execute(f"{server}:nap", s=seconds)
    told.append(json.loads(answer["result"]["content"][0]["text"]))


async def naps(daemon: Daemon, server: str, count: int, seconds: float = 0.2) -> list[dict[str, Any]]:
    """Make so many calls at once; return when each process did what."""
    told: list[dict[str, Any]] = []
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(nap, daemon, server, seconds, told)
    return told


def most_at_once(told: list[dict[str, Any]]) -> int:
    """Return how many calls were carried out at the same time."""
    return max(len([each for each in told if each["began"] <= at["began"] < each["ended"]]) for at in told)


async def pids(daemon: Daemon, server: str) -> list[int]:
    rows = (await daemon.rows())[server]["instances"]
    return [row["pid"] for row in rows if row["pid"] is not None]


async def test_processes_work_at_the_same_time_and_those_that_stay_are_left_alone(tmp_path: Path) -> None:
    servers = {"one": slow(tmp_path), "three": slow(tmp_path, instances=3)}
    with running(tmp_path, servers) as daemon:
        await daemon.settled()
        alone = await naps(daemon, "one", 6)
        assert (len({each["pid"] for each in alone}), most_at_once(alone)) == (1, 1)
        while len(await pids(daemon, "three")) < 3:
            await naps(daemon, "three", 6)
        together = await naps(daemon, "three", 6)
        assert len({each["pid"] for each in together}) == most_at_once(together) == 3
        row = (await daemon.rows())["three"]
        assert [each["state"] for each in row["instances"]] == ["ready"] * 3
        assert (row["memory_bytes"] or 0) == sum(each["memory_bytes"] or 0 for each in row["instances"])

        page = (await daemon.ask("GET", "/ui/servers/three")).text
        assert "3 of 3 up." in page
        figures = (await daemon.ask("GET", "/metrics")).text.splitlines()
        assert [line for line in figures if line.startswith("mcpvisor_server_instances{") and line.endswith(" 3.0")]

        (first,) = {each["pid"] for each in alone}
        for count in (3, 2):
            write_config(tmp_path, {"one": slow(tmp_path, instances=count), "three": servers["three"]})
            reloaded = await daemon.at("/api/reload").post({})
            assert reloaded.status_code == 200, reloaded.text
            while len(await pids(daemon, "one")) != count:
                await naps(daemon, "one", 4)
            kept = await pids(daemon, "one")
            assert kept[0] == first
        assert set(await pids(daemon, "three")) == {each["pid"] for each in together}


async def test_a_client_has_a_process_of_its_own_until_its_session_ends(tmp_path: Path) -> None:
    with running(tmp_path, {"own": slow(tmp_path, instances="per_client")}) as daemon:
        await daemon.settled()
        sessions = [await daemon.session() for _ in range(2)]
        told = []
        for session in sessions:
            params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "own:nap", "arguments": {"s": 0}}}
            answer = await daemon.within(session).post(message("tools/call", params))
            told.append(answer.json()["result"]["content"][0]["text"])
        first, second = (json.loads(each)["pid"] for each in told)
        assert len({first, second, *await pids(daemon, "own")}) == 3  # and the one whose lists are those of all
        async with daemon.events() as events:
            await daemon.delete(sessions[0])
            await events.until("mcp.server.instance_changed", state="stopped")
        assert first not in await pids(daemon, "own")
        assert second in await pids(daemon, "own")


REMOTE = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def say(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(405)

    do_DELETE = do_GET

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in asked:
            return self.say(202)
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "initialize":
            info = {"name": "remote", "version": "1"}
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        elif asked["method"] == "tools/list":
            answer["result"] = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
        elif asked["method"] == "tools/call":
            time.sleep(0.05)
            answer["result"] = {"content": [{"type": "text", "text": str(self.server.server_port)}]}
        else:
            answer["error"] = {"code": -32601, "message": "?"}
        self.say(200, json.dumps(answer).encode())

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def remote(directory: Path, port: int = 0) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a remote server; give its port and its process."""
    script = directory / "remote.py"
    script.write_text(REMOTE)
    with subprocess.Popen([sys.executable, str(script), str(port)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


async def call_until(daemon: Daemon, enough: trio.Event, answers: list[str]) -> None:
    while not enough.is_set():
        answers.append(text(await daemon.execute("r:who")))


async def test_of_two_replicas_one_may_die_and_come_back_and_only_what_it_had_fails(tmp_path: Path) -> None:
    with remote(tmp_path) as (one, dying), remote(tmp_path) as (two, _):
        address = "http://127.0.0.1:{}/mcp".format
        entry = {"url": address(one), "replicas": [address(two)], "backoff_initial_s": 0.2}
        answers: list[str] = []
        with running(tmp_path, {"r": entry}) as daemon:
            await daemon.settled()
            enough = trio.Event()
            async with trio.open_nursery() as load, daemon.events() as events:
                for _ in range(CLIENTS):
                    load.start_soon(call_until, daemon, enough, answers)
                await events.until("mcp.server.instance_changed", instance=2, state="ready")
                dying.kill()
                await events.until("mcp.server.instance_changed", instance=1, state="respawning")
                with remote(tmp_path, one):
                    await events.until("mcp.server.instance_changed", instance=1, state="ready")
                    await call_until_from(daemon, one)
                    enough.set()
        failed = [each for each in answers if each not in (str(one), str(two))]
        assert all("whether the tool ran is not known" in each for each in failed), failed
        assert len(failed) <= CLIENTS < len(answers)


async def call_until_from(daemon: Daemon, port: int) -> None:
    """Call until a replica answers."""
    while text(await daemon.execute("r:who")) != str(port):
        pass
