"""`mcpvisor stdio` and the daemon that it starts: many clients, one daemon, and `kill -9` of any of the three."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import trio

from benchmarks.machine import free_port
from tests.actors.transport.stdio.children import Monitor, monitor
from tests.e2e import environments
from tests.e2e.daemons import ROOT, restarted, running, stand_in
from tests.e2e.fork_server import forking
from tests.scenario.client import PATIENCE_S, message

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
IDLE_S = 1.0
BRIDGE = [sys.executable, "-m", "supervisor", "stdio", "--url"]
SERVER = str(Path(__file__).with_name("servers") / "python_2.py")
FEED = str(Path(__file__).with_name("servers") / "feed.py")
CLIENT = """
import json, subprocess, sys
bridge = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
bridge.stdin.write(sys.stdin.buffer.readline())
bridge.stdin.flush()
print(json.dumps({"bridge": bridge.pid, "answer": json.loads(bridge.stdout.readline())}), flush=True)
bridge.wait()
"""
"""A client that starts what its arguments say, writes it the line that it reads, and prints its number and answer."""


class Bridge:
    """A bridge, as its client sees it."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.heard: list[Json] = []
        self._rest = b""
        self._number = 0

    async def say(self, *messages: Json | bytes) -> None:
        assert self.process.stdin is not None
        for each in messages:
            text = each if isinstance(each, bytes) else json.dumps(each).encode()
            await self.process.stdin.send_all(text + b"\n")

    async def hear(self) -> Json:
        """Wait for one message."""
        assert self.process.stdout is not None
        with trio.fail_after(PATIENCE_S):
            while b"\n" not in self._rest:
                data = await self.process.stdout.receive_some(65536)
                assert data, "it has ended"
                self._rest += bytes(data)
        line, _, self._rest = self._rest.partition(b"\n")
        said: Json = json.loads(line)
        self.heard.append(said)
        return said

    async def answer(self, id_: Any) -> Json:
        """Wait for the answer to a request."""
        while (said := await self.hear()).get("id") != id_ or "method" in said:
            pass
        return said

    async def ask(self, method: str, params: Json | None = None) -> Json:
        self._number += 1
        await self.say(message(method, params, self._number))
        return await self.answer(self._number)

    async def call(self, tool_path: str, **arguments: Any) -> Json:
        given = {"tool_path": tool_path, "arguments": arguments}
        return await self.ask("tools/call", {"name": "execute_mcp_tool", "arguments": given})

    async def greet(self) -> Json:
        answer = await self.ask("initialize", HELLO)
        await self.say(INITIALIZED)
        return answer

    async def end(self) -> int:
        """Leave as a client does, and wait for its end."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        with trio.fail_after(PATIENCE_S):
            return await self.process.wait()


class Home:
    """The home of a user who has no daemon."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.environ = {"HOME": str(directory), "PATH": os.environ["PATH"]}
        self.data = directory / ".local" / "state" / "mcpvisor"
        self.config = directory / ".config" / "mcpvisor" / "mcp.json"
        self.said = directory / "bridges.log"

    def configure(self, servers: Json, **settings: Any) -> None:
        self.config.parent.mkdir(parents=True)
        settings = {"idle_exit_s": IDLE_S, "listen": f"127.0.0.1:{self.port}", **settings}
        self.config.write_text(json.dumps({"mcpServers": servers, "supervisor": settings}))

    @property
    def daemon(self) -> int:
        """The process of the daemon."""
        return int((self.data / "daemon.lock").read_text())

    @property
    def log(self) -> str:
        return (self.data / f"daemon-{self.port}.log").read_text()

    @asynccontextmanager
    async def bridge(self, *options: str, is_forked: bool = True) -> AsyncIterator[Bridge]:
        """Start a bridge for the block, by its command if it is not forked."""
        command = [*forking(), *BRIDGE[1:-1]] if is_forked else BRIDGE[:-1]
        async with started([*command, *options], self.environ, self.said) as bridge:
            yield bridge


@asynccontextmanager
async def started(command: Sequence[str], environ: dict[str, str], log: Path) -> AsyncIterator[Bridge]:
    with log.open("ab") as stderr:
        process = await trio.lowlevel.open_process(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, env=environ
        )
    async with trio.open_nursery() as nursery:
        try:
            yield Bridge(process)
        finally:
            with trio.CancelScope(shield=True):
                process.kill()
                await process.wait()
                for pipe in (process.stdin, process.stdout):
                    assert pipe is not None
                    await pipe.aclose()
            nursery.cancel_scope.cancel()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def ended(pid: int) -> None:
    """Wait for the end of a process that is nobody's child here."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with trio.fail_after(PATIENCE_S):
            await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)


async def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    await ended(pid)


# One daemon for all ---------------------------------------------------------------------------------------------------


async def test_bridges_that_come_at_once_start_one_daemon_which_ends_after_the_last(home: Home) -> None:
    home.configure({"growing": stand_in("growing")})
    names: list[str] = []

    async def use(number: int) -> None:
        async with home.bridge() as bridge:
            names.append((await bridge.greet())["result"]["serverInfo"]["name"])
            answer = await bridge.call("growing:echo", text=f"{number}")
            assert answer["result"]["content"][0]["text"] == f"{number}"
            assert await bridge.end() == 0

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(use, number)
    assert names == ["mcpvisor"] * 4
    await ended(home.daemon)
    assert home.log.count("listening on ") == 1
    assert "another daemon" not in home.log
    assert "no client has been connected for 1 s: the end" in home.log
    assert "Traceback" not in home.log + home.said.read_text()


async def test_a_daemon_that_was_started_reads_its_configuration_again(home: Home) -> None:
    home.configure({"growing": stand_in("growing")}, idle_exit_s=0)
    async with home.bridge() as bridge:
        await bridge.greet()
        changed = json.loads(home.config.read_text())
        changed["mcpServers"]["other"] = stand_in("growing")
        home.config.write_text(json.dumps(changed))
        reload = [*forking(), *BRIDGE[1:3], "reload", "--url", f"127.0.0.1:{home.port}"]
        done = await trio.run_process(reload, capture_stdout=True, cwd=ROOT, env=home.environ)
        assert b"started again" not in done.stdout
        assert (await bridge.call("other:echo", text="new"))["result"]["content"][0]["text"] == "new"
    os.kill(home.daemon, signal.SIGTERM)
    await ended(home.daemon)


async def test_a_bridge_joins_a_daemon_that_runs(tmp_path: Path, home: Home) -> None:
    with running(tmp_path / "daemon", {"growing": stand_in("growing")}) as daemon:
        await daemon.ready()
        async with home.bridge("--url", f"{daemon.url}/mcp/servers/growing") as bridge:
            assert (await bridge.greet())["result"]["serverInfo"]["name"] == "growing"
            assert await bridge.end() == 0
        assert not home.data.exists()


async def test_without_a_configuration_requests_and_stderr_say_what_to_do(home: Home) -> None:
    async with home.bridge("--url", f"127.0.0.1:{home.port}") as bridge:
        for method, params in (("initialize", HELLO), ("tools/list", {})):
            error = (await bridge.ask(method, params))["error"]
            assert error["code"] == -31503
            assert "there is no configuration; looked for" in error["message"]
            assert "name one with --config" in error["message"]
        assert "there is no configuration" in home.said.read_text()
        home.configure({"growing": stand_in("growing")})  # whoever mends that need not start anything again
        assert "result" in await bridge.ask("initialize", HELLO)
        assert await bridge.end() == 0
    await ended(home.daemon)


async def test_a_broken_configuration_is_told_as_the_daemon_says_it(home: Home) -> None:
    config = home.directory / "broken.json"
    config.write_text('{"mcpServers": {"x": {"command": "y", "env": {"KEY": "hidden"}},}\n')
    async with home.bridge("--url", f"127.0.0.1:{home.port}", "--config", str(config)) as bridge:
        text = (await bridge.ask("initialize", HELLO))["error"]["message"]
    assert "the daemon ended with exit code 78" in text
    assert f"{config}:2: the file ends before" in text
    assert "hidden" not in text + home.said.read_text()


async def test_what_is_no_message_is_answered_and_the_next_one_works(tmp_path: Path, home: Home) -> None:
    with running(tmp_path / "daemon", {}) as daemon:
        async with home.bridge("--url", daemon.url) as bridge:
            await bridge.greet()
            await bridge.say(b"{")
            assert (await bridge.hear())["error"]["code"] == -32700
            await bridge.say(message("tools/list", {"x": "x" * 2_000_000}, "large"))
            large = await bridge.hear()
            assert (large["id"], large["error"]["data"]["type"]) == ("large", "too_large")
            assert len((await bridge.ask("tools/list"))["result"]["tools"]) == 4


# kill -9 --------------------------------------------------------------------------------------------------------------


async def test_the_next_call_works_after_the_daemon_was_killed(home: Home) -> None:
    async with monitor() as lives:
        home.configure({"growing": stand_in("growing", lives.address)})
        async with home.bridge() as bridge:
            await bridge.greet()
            await bridge.say(message("tools/call", hanging(), "lost"))
            server = (await lives.pulses("hanging"))["hanging"]
            first = home.daemon
            await kill(first)
            lost = await bridge.answer("lost")
            assert (lost["error"]["data"]["type"], lost["error"]["data"]["outcome"]) == ("lost", "unknown")
            await server.stopped()
            answer = await bridge.call("growing:echo", text="again")
            assert answer["result"]["content"][0]["text"] == "again"
            told = {each.get("method") for each in bridge.heard}
            assert {"notifications/tools/list_changed", "notifications/resources/list_changed"} <= told
            assert home.daemon != first
            assert await bridge.end() == 0
        await ended(home.daemon)


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("mcp1_restart.py", ()),
        ("mcp2_restart.py", ("auto",)),
        ("typescript_restart.cjs", ("sdk",)),
        ("typescript_restart.cjs", ("auto",)),
    ],
)
async def test_the_next_call_of_an_official_client_works_after_the_daemon_was_killed(
    home: Home, script: str, how: tuple[str, ...]
) -> None:
    home.configure({"growing": stand_in("growing")})
    program = environments.python_1() if script.startswith("mcp1_") else environments.python_2()
    if script.endswith(".cjs"):
        program = [environments.node() or pytest.skip("not run: there is no Node.js 20 or later")]
    packages = [environments.typescript()] if script.endswith(".cjs") else []
    url = f"stdio+http://127.0.0.1:{home.port}"
    environ = {**home.environ, "BRIDGE": json.dumps([*forking(), *BRIDGE[1:]])}
    command = [*program, str(environments.CLIENTS / script), *packages, url, *how]
    async with started(command, environ, home.said) as client:
        assert await client.hear() == {"text": "hello"}
        first = home.daemon
        await kill(first)
        await client.say(b"go on")
        assert await client.hear() == {"text": "hello"}
        assert home.daemon != first
        with trio.fail_after(PATIENCE_S):
            assert await client.process.wait() == 0, home.said.read_text()[-4000:]
    await ended(home.daemon)


def hanging() -> Json:
    return {"name": "execute_mcp_tool", "arguments": {"tool_path": "growing:hang", "arguments": {}}}


async def test_a_daemon_that_is_restarted_in_order_is_not_noticed(tmp_path: Path, home: Home) -> None:
    with running(tmp_path / "daemon", {"growing": stand_in("growing")}) as daemon:
        await daemon.ready()
        async with home.bridge("--url", daemon.url) as bridge:
            await bridge.greet()
            await bridge.call("growing:echo", text="before")
            daemon.process.terminate()
            await daemon.ended()
            await bridge.say(message("tools/call", {"name": "list_mcp_resources", "arguments": {}}, "between"))
            with restarted(daemon):
                assert "result" in await bridge.answer("between")
                assert await bridge.end() == 0


async def test_a_stream_of_events_goes_on_over_the_end_of_its_daemon(tmp_path: Path, home: Home) -> None:
    file, told = tmp_path / "file", list[str]()

    async def hear(bridge: Bridge, until: str) -> None:
        while not told or told[-1] != until:
            said = await bridge.hear()
            assert said.get("id") != "stream", said
            if said["method"].startswith("notifications/events/") and not said["method"].endswith("heartbeat"):
                told.append(said["params"].get("eventId") or said["method"].rpartition("/")[2])

    file.touch()
    entry = {"command": sys.executable, "args": ["-I", FEED, str(file), "push"]}
    with running(tmp_path / "daemon", {"s": entry}, leaves_calls=True) as daemon:
        await daemon.ready()
        async with home.bridge("--url", daemon.url) as bridge:
            await bridge.greet()
            await bridge.say(message("events/stream", {"name": "s:line", "arguments": {}}, "stream"))
            await hear(bridge, "active")
            file.write_text("a\n")
            await hear(bridge, "a")
            daemon.process.terminate()
            await daemon.ended()
            file.write_text("a\nb\n")
            with restarted(daemon, leaves_calls=True):
                await hear(bridge, "b")
                assert await bridge.end() == 0
    assert told == ["active", "a", "b"]


@pytest.mark.parametrize("how", ["kill -9", "stdin closed", "SIGTERM"])
async def test_a_bridge_that_ends_takes_its_calls_along_and_leaves_the_daemon(home: Home, how: str) -> None:
    home.configure({"everything": environments.entry(environments.python_2(), SERVER, "stdio")}, idle_exit_s=600)
    async with home.bridge(is_forked=False) as bridge:
        await bridge.greet()
        call = {"tool_path": "everything:hang", "arguments": {"key": how}}
        params = {"name": "execute_mcp_tool", "arguments": call, "_meta": {"progressToken": "t"}}
        await bridge.say(message("tools/call", params, "hanging"))
        while (await bridge.hear()).get("method") != "notifications/progress":
            pass
        match how:
            case "kill -9":
                bridge.process.kill()
            case "stdin closed":
                assert await bridge.end() == 0
            case _:
                bridge.process.terminate()
        with trio.fail_after(PATIENCE_S):
            await bridge.process.wait()
    first = home.daemon
    async with home.bridge() as bridge:  # as a client does whose server has ended
        await bridge.greet()
        answer = await bridge.call("everything:was_abandoned", key=how)
        assert answer["result"]["content"][0]["text"] == "yes"
        assert home.daemon == first
    os.kill(first, signal.SIGTERM)
    await ended(first)


@pytest.mark.parametrize("order", [*permutations(("client", "bridge", "daemon"))], ids="-".join)
async def test_nothing_is_left_whatever_is_killed_in_whatever_order(home: Home, order: tuple[str, ...]) -> None:
    async with monitor() as lives:
        home.configure({"growing": stand_in("growing", lives.address)})
        command = [sys.executable, "-c", CLIENT, *BRIDGE[:-1]]
        async with started(command, home.environ, home.said) as client:
            await client.say(message("initialize", HELLO))
            seen = await client.hear()
            assert "result" in seen["answer"]
            server = await busy_server(home, lives)
            pids = {"client": client.process.pid, "bridge": seen["bridge"], "daemon": home.daemon}
            for name in order:
                with suppress(ProcessLookupError):  # each of them may have ended by itself
                    os.kill(pids[name], signal.SIGKILL)
                    await (client.process.wait() if name == "client" else ended(pids[name]))
            for pid in pids.values():
                await ended(pid)
            await server.stopped()


async def busy_server(home: Home, lives: Monitor) -> Any:
    """Have a call in flight of a client that is gone."""
    async with home.bridge() as other:
        await other.greet()
        await other.say(message("tools/call", hanging(), 1))
        return (await lives.pulses("hanging"))["hanging"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_a_bridge_in_order(tmp_path: Path, home: Home, number: signal.Signals) -> None:
    with running(tmp_path / "daemon", {}) as daemon:
        async with home.bridge("--url", daemon.url, is_forked=False) as bridge:
            await bridge.greet()
            bridge.process.send_signal(number)
            with trio.fail_after(PATIENCE_S):
                assert await bridge.process.wait() == 0
