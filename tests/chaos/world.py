"""What a daemon in chaos has around it: its configuration, its servers, its users, and the processes of all of them."""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import trio

from tests.chaos.history import USERS, Budget
from tests.e2e.daemons import Daemon, start
from tests.e2e.invariants import Process, process_of
from tests.fakes import fault_server
from tests.fakes.fault_server import LOOPING, SECRET, Ledger, Player
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.remote_server import RemoteServer
from tests.fakes.socket_server import SocketServer
from tests.fakes.sse_server import SseServer

PROGRAM = fault_server.__file__
CALL_S = 4.0
"""The deadline of a call."""
QUESTION_S = 3.0
HEALTHY = "healthy"
ANNEX = "annex"
"""A server of one user alone, of which others never hear."""
LIVELY: dict[str, Any] = {"max_restarts": 1000, "backoff_initial_s": 0.2, "backoff_max_s": 1, "stable_s": 5}
"""What a server gets that is killed all the time, so that it is up at most times."""
CANARIES = {name: f"sk-canary-{name}-0123456789" for name in ("environment", "server", "header", "argument", *USERS)}
CLOCK = """
import mmap, os, struct, time
with open(os.environ["STEPPED_CLOCK"], "rb") as file:
    page = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
real = time.time
time.time = lambda: real() + struct.unpack_from("d", page)[0]
"""
"""Imported by the daemon's Python before everything else: its wall clock is ahead by what a file says, in seconds."""

Json = dict[str, Any]


def serving(path: str, name: str, variant: str = "") -> Callable[[MemoryPeer], Awaitable[int]]:
    """Return what plays a fault server behind one connection of a fake transport."""

    async def serve(peer: MemoryPeer) -> int:
        ledger = Ledger(path, name)
        player, lines = Player(ledger, variant), Lines(peer)
        try:
            while (arrived := await lines.read()) is not None:
                for line in arrived:
                    for step in player.take(line):
                        if isinstance(step, bytes):
                            await peer.write(step)
                        else:
                            await trio.sleep(step)
        except SystemExit:
            return 1
        finally:
            ledger.close()
        return 0

    return serve


class World:
    """One daemon with all that is around it, in a directory. `lives`: when each daemon began."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = directory / "ledger"
        self.web = RemoteServer(serving(str(self.ledger), "web"))
        self.modern = RemoteServer(serving(str(self.ledger), "modern", "modern"), modern=True)
        self.sse = SseServer(serving(str(self.ledger), "sse"))
        self.socket = SocketServer(serving(str(self.ledger), "socket"))
        self.servers: dict[str, Json] = {}
        self.users: dict[str, Json] = {
            user: {"values": {"own": {"OWNER": f"owner-{user}", "API_TOKEN": CANARIES[user]}}} for user in USERS
        }
        self.tokens: dict[str, str] = {}
        self.editing = trio.Lock()
        self.shaking = trio.Lock()
        self.lives: list[float] = []
        self.daemon: Daemon
        self._clock: mmap.mmap

    # Configuration --------------------------------------------------------------------------------------------------

    def stdio(self, name: str, variant: str = "", **settings: Any) -> Json:
        """Return the entry of a fault server."""
        arguments = ["-I", "-S", PROGRAM, name, str(self.ledger), *([variant] if variant else [])]
        given = {"env": {SECRET: CANARIES["server"]}, "call_timeout_s": CALL_S, "question_timeout_s": QUESTION_S}
        return {"command": sys.executable, "args": arguments, **given, **settings}

    def _entries(self) -> dict[str, Json]:
        remote = {"headers": {"X-Api-Key": CANARIES["header"]}, "backoff_initial_s": 0.2, "backoff_max_s": 1}
        own = {"OWNER": "${user:OWNER}", SECRET: "${user:API_TOKEN}"}
        return {
            HEALTHY: self.stdio(HEALTHY, idle_timeout_s=0),
            "wild": self.stdio("wild", max_line_bytes=1_000_000, unresponsive_s=1, **LIVELY),
            "mortal": self.stdio("mortal", **LIVELY),
            "sleepy": self.stdio("sleepy", idle_timeout_s=1, **LIVELY),
            "stormy": self.stdio("stormy", **LIVELY),
            "asking": self.stdio("asking", **LIVELY),
            "looping": self.stdio("looping", LOOPING),
            "edited": self.stdio("edited", "1", **LIVELY),
            "own": {**self.stdio("own", idle_timeout_s=5, **LIVELY), "env": own},
            ANNEX: {**self.stdio(ANNEX), "users": [USERS[0]]},
            "web": {"url": self.web.url, **remote},
            "modern": {"url": self.modern.url, **remote},
            "sse": {"url": self.sse.url, "type": "sse", **remote},
            "socket": {"url": self.socket.url, **remote},
        }

    def write(self, text: str = "") -> None:
        """Write the configuration as it should be now, or this in its place, at once."""
        own = {
            "auth": "tokens",
            "identity": {"users": self.users},
            "call_timeout_s": CALL_S,
            "log_level": "info",
            "starts_per_s": 100,
            "cold_starts": 8,
            "reload_drain_s": 5,
            "reload_poll_s": 0.5,
        }
        new = self.directory / "mcp.json.new"
        new.write_text(text or json.dumps({"mcpServers": self.servers, "supervisor": own}))
        new.replace(self.directory / "mcp.json")

    @property
    def budgets(self) -> dict[str, Budget]:
        return {"looping": Budget()}

    @property
    def ledgered(self) -> frozenset[str]:
        return frozenset({*self.servers, "extra"} - {"guarded"})

    def marks(self, user: str) -> tuple[str, ...]:
        """Return what a user may never see."""
        others = [f"owner-{other}" for other in USERS if other != user]
        secrets = [secret for name, secret in CANARIES.items() if name != "argument"]  # which they gave themselves
        return (*secrets, *others, *([] if user == USERS[0] else [f"{ANNEX}:", f"{ANNEX}__"]))

    # The daemon -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        """Run the remote servers and a daemon for the block; whoever leaves it has ended the daemon."""
        async with AsyncExitStack() as stack:
            for remote in (self.web, self.modern, self.sse, self.socket):
                await stack.enter_async_context(remote.running())
            self.servers |= self._entries()
            self.write()
            self._prepare_clock()
            stack.callback(self._clock.close)
            await self.start()
            try:
                for user in USERS:
                    made = await self.page("/api/access-tokens", body={"user": user})
                    self.tokens[user] = made["token"]
                yield self
            finally:
                with self.daemon.process as process:
                    process.kill()

    def _prepare_clock(self) -> None:
        place = self.directory / "clock"
        place.mkdir()
        (place / "sitecustomize.py").write_text(CLOCK)
        (place / "offset").write_bytes(bytes(8))
        with (place / "offset").open("r+b") as file:
            self._clock = mmap.mmap(file.fileno(), 8)

    def step_clock(self, seconds: float) -> None:
        """Set the wall clock of the daemon so far from that of the machine."""
        struct.pack_into("d", self._clock, 0, seconds)

    async def start(self, listen: str = "") -> None:
        """Start a daemon, and wait until it listens."""
        place = self.directory / "clock"
        environment = {
            "PYTHONPATH": str(place),
            "STEPPED_CLOCK": str(place / "offset"),
            "UNUSED_API_TOKEN": CANARIES["environment"],
        }
        self.lives.append(monotonic())
        self.daemon = await trio.to_thread.run_sync(partial(start, self.directory, listen, environment))

    @property
    def operator(self) -> str:
        """What the operator of the machine shows."""
        return (self.directory / "data" / "page.key").read_bytes().hex()

    async def page(self, path: str, *, body: Any = None, user: str = "") -> Any:
        """Return the JSON of a page; with a `body` it is sent. Raises `httpx2.HTTPError`."""
        return json.loads((await self.fetch(path, body=body, user=user)).content)

    async def fetch(self, path: str, *, body: Any = None, user: str = "") -> httpx2.Response:
        """Ask for a page as the operator, or as a user. Raises `httpx2.HTTPError`."""
        token = self.tokens[user] if user else self.operator
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        async with httpx2.AsyncClient(trust_env=False, timeout=30, headers=headers) as http:
            url = self.daemon.url + path
            return await (http.get(url) if body is None else http.post(url, json=body))

    async def listed(self, user: str) -> set[str]:
        """Return the names of all tools that a user sees. Raises `httpx2.HTTPError`."""
        names: set[str] = set()
        params: Json = {}
        while True:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
            result = (await self.page("/mcp/all", body=message, user=user))["result"]
            names |= {tool["name"] for tool in result["tools"]}
            if not (cursor := result.get("nextCursor")):
                return names
            params = {"cursor": cursor}

    async def log_in(self, server: str) -> None:
        """Log in at a server, as a person whose browser ends at an address that they type."""
        begun = await self.page(f"/api/servers/{server}/login", body={})
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            answer = (await http.get(begun["url"])).headers["location"]
        told = await self.page(f"/api/logins/{begun['login']}/answer", body={"answer": answer})
        assert told["state"] == "done", told

    # Processes ------------------------------------------------------------------------------------------------------

    def processes(self) -> dict[str, list[Process]]:
        """Return the processes of fault servers, whoever started them, by server, and for whom it is."""
        found: dict[str, list[Process]] = {}
        for entry in os.listdir("/proc"):  # noqa: PTH208 - done often
            with suppress(OSError):
                if entry.isdigit() and (name := self._name_of(entry)) and (process := process_of(int(entry))):
                    found.setdefault(name, []).append(process)
        return found

    def _name_of(self, entry: str) -> str:
        words = Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
        is_ours = words[1:4] == ["-I", "-S", PROGRAM] and len(words) > 5 and words[5] == str(self.ledger)
        if not is_ours or words[4] != "own":
            return words[4] if is_ours else ""
        environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        return next((f"own of {each[6:].decode()}" for each in environment if each.startswith(b"OWNER=")), "")
