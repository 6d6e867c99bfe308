"""Two users with equal everything but their secrets: each gets what is theirs, through kills and questions.

CALLS says how many calls each of them makes; one process is killed for each 40 that have ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from actors.launch import server_of
from supervisor.host.datadir import DataDir
from tests.fakes.http_client import META, MODERN, modern_headers
from tests.fakes.ledger_server import Ledger
from tests.fakes.memory import MemoryPeer
from tests.fakes.remote_server import RemoteServer
from tests.scenario.daemon import World, world

CALLS: Final = int(os.environ.get("CALLS", "150"))
KILL_EVERY: Final = 40
AT_ONCE: Final = 8
USERS: Final = ("ana", "ben")
TARGETS: Final = ("forge", "forge", "remote", "clock")
"""`forge` and `remote` have a secret of each user, `clock` is configured alike for both."""
LOST: Final = {"crashed", "unavailable", "starting", "timeout", "overloaded", "lost"}
"""What a call may end as whose process was killed."""


def secret_of(user: str) -> str:
    return f"{user}-secret-{'0' * 12}"


async def serve(peer: MemoryPeer) -> int:
    ledger, buffer = Ledger("", f"session-{next(_SESSIONS)}"), b""
    while data := await peer.read():
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in filter(None, lines):
            if (said := ledger.take(json.loads(line))) is not None:
                await peer.write(json.dumps(said).encode() + b"\n")
    return 0


_SESSIONS = count()


class Caller:
    """One user, whose calls have the same ids as those of the other one."""

    def __init__(self, at: World, user: str) -> None:
        self._at = at
        self.user = user
        self.ended: Counter[str] = Counter()
        self.processes: dict[str, set[str]] = defaultdict(set)

    async def run(self, done: trio.Event) -> None:
        numbers = iter(range(CALLS))
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._call_for_ever, numbers)
        done.set()

    async def _call_for_ever(self, numbers: Any) -> None:
        for number in numbers:
            server, tool = TARGETS[number % len(TARGETS)], "ask" if number % 5 == 4 else "tell"
            await self._call(number, server, tool)

    async def _call(self, number: int, server: str, tool: str) -> None:
        note = f"{self.user} {number}"
        params: dict[str, Any] = {"name": f"{server}__{tool}", "arguments": {"note": note}}
        body = await self._post(number, params)
        result = body.get("result", {})
        if result.get("resultType") == "input_required":
            (name, asked), *more = result["inputRequests"].items()
            assert not more
            self._check_question(server, note, asked["params"]["message"])
            answers = {name: {"action": "accept", "content": {"who": self.user}}}
            again = {"inputResponses": answers, "requestState": result["requestState"]}
            body = await self._post(number, {**params, **again})
        self._check(server, note, tool, body)

    async def _post(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {"elicitation": {"form": {}}}}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {**params, "_meta": meta}}
        headers = modern_headers("tools/call", params["name"])
        answer = await self._at[self.user].ask("POST", "/mcp/all", json=request, headers=headers)
        assert answer.status_code == 200 or answer.json(), answer.text
        events = answer.headers["content-type"].startswith("text/event-stream")  # where it took a while
        lines = [line[len("data: ") :] for line in answer.text.splitlines() if line.startswith("data: ")]
        body: dict[str, Any] = json.loads(lines[-1] if events else answer.text)
        assert body["id"] in (number, None)
        return body

    def _check_question(self, server: str, note: str, text: str) -> None:
        assert note in text
        assert not any(secret_of(other) in text for other in USERS if other != self.user)

    def _check(self, server: str, note: str, tool: str, body: dict[str, Any]) -> None:
        entry = body.get("result", {}).get("structuredContent", {})
        if "secret" not in entry:
            error = entry["error"]["type"] if "error" in entry else body["error"]["data"]["type"]
            assert error in LOST, body
            self.ended[error] += 1
            return
        self.ended["well"] += 1
        assert entry["note"] == note
        assert entry["secret"] in ("", "***", secret_of(self.user))
        if server == "forge":
            assert entry["secret"], "as whom it was started, hidden or not"
        if tool == "ask":
            said = entry["said"]
            asked = "content" in said  # else it asked while others called, and nobody guesses about which call
            assert said["content"] == {"who": self.user} if asked else "who" not in said, said
            self.ended["asked" if asked else "not asked"] += 1
        self.processes[server].add(entry["process"])


async def kill_for_ever(at: World, callers: list[Caller], killed: Counter[str]) -> None:
    """Kill each process again and again, as calls end."""
    numbers, next_at = count(), KILL_EVERY
    while True:
        await trio.sleep(0.01)
        if sum(caller.ended.total() for caller in callers) < next_at:
            continue
        next_at += KILL_EVERY
        rows = (await at.operator.status())["servers"]
        alive = [row for row in rows if row["pid"] and row["state"] == "ready"]
        if alive:
            row = alive[next(numbers) % len(alive)]
            with suppress(ProcessLookupError):
                os.kill(row["pid"], signal.SIGKILL)
                killed[server_of(row["server"])] += 1


@pytest.mark.case("H18", "C11", "I07")
async def test_no_foreign_byte_reaches_anybody(tmp_path: Path, data: DataDir) -> None:
    async with RemoteServer(serve).running() as remote:
        servers: dict[str, Any] = {
            "forge": ledger(SECRET="${user:SECRET}"),
            "clock": ledger(),
            "remote": {"url": remote.url, "headers": {"Authorization": "Bearer ${user:SECRET}"}, "ask": "clients"},
        }
        for entry in servers.values():
            entry |= {"max_restarts": 100_000, "backoff_initial_s": 0.01, "backoff_max_s": 0.02}
        given = {user: {"forge": {"SECRET": secret_of(user)}, "remote": {"SECRET": secret_of(user)}} for user in USERS}
        identity = {"users": {user: {"values": values} for user, values in given.items()}}
        more: dict[str, Any] = {"patience_s": max(1800, CALLS), "daemon": {"connect": None}}
        killed: Counter[str] = Counter()
        async with world(tmp_path, data, servers, **more, auth="tokens", identity=identity) as at:
            callers = [Caller(at, user) for user in USERS]
            await begin(at, callers)
            async with trio.open_nursery() as nursery:
                dones = [trio.Event() for _ in callers]
                nursery.start_soon(kill_for_ever, at, callers, killed)
                for caller, done in zip(callers, dones, strict=True):
                    nursery.start_soon(caller.run, done)
                for done in dones:
                    await done.wait()
                nursery.cancel_scope.cancel()
    check_processes(callers, killed)
    check_sessions(remote)


def ledger(**env: str) -> dict[str, Any]:
    here = str(Path(__file__).parents[2])
    return {"command": sys.executable, "args": ["-m", "tests.fakes.ledger_server"], "cwd": here, "env": env}


async def begin(at: World, callers: list[Caller]) -> None:
    for caller in callers:
        await at.admit(caller.user)
        with trio.fail_after(60):
            while len(await at[caller.user].tools()) < 6:  # noqa: ASYNC110 - servers start
                await trio.sleep(0.02)


def check_processes(callers: list[Caller], killed: Counter[str]) -> None:
    one, other = callers
    print(*(dict(caller.ended) for caller in callers), dict(killed))
    for caller in callers:
        asked = caller.ended["asked"]
        assert caller.ended.total() - asked - caller.ended["not asked"] == CALLS
        assert asked
        assert caller.ended["well"] > CALLS // 2
    assert killed["forge"]
    assert killed["clock"]
    for server in ("forge", "remote"):
        assert not one.processes[server] & other.processes[server]
    assert one.processes["clock"] & other.processes["clock"]


def check_sessions(remote: RemoteServer) -> None:
    """Each session upstream has one credential, and both users have one."""
    credentials: dict[str, set[str]] = defaultdict(set)
    for request in remote.requests:
        if session := request.headers.get("mcp-session-id"):
            credentials[session].add(request.headers["authorization"])
    assert all(len(shown) == 1 for shown in credentials.values())
    assert set().union(*credentials.values()) == {f"Bearer {secret_of(user)}" for user in USERS}
