"""`python -m benchmarks.starvation --runs 10`: a daemon that has hardly any descriptors, and what it does afterwards.

Each run starts a daemon under `ulimit -n 64` with 20 servers whose tools it does not know yet, and lets 100 clients at
it at once, over HTTP and WebSocket: far more than it can have open. Then comes relief: the clients leave and, where we
may do that (as root), the limit is raised. A run is good if the daemon ended only when it was asked, and if every
server answered a call, a WebSocket could be opened and nothing was degraded any more within 10 s of the relief.
`--no-raise` leaves the limit as it is: then servers have to sleep for each other.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx2
import msgspec
import trio
import trio_websocket

from benchmarks.client import ACCEPT, call, initialize
from benchmarks.machine import free_port, program
from benchmarks.running import ECHO, Place, entry

IN_TIME_S = 10.0
GIVE_UP_S = 60.0
ANSWER_S = 5.0
RAISED = 4096


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does. `pressed_s`: how long the clients stay."""

    descriptors: int = 64
    servers: int = 20
    clients: int = 100
    pressed_s: float = 8.0
    raises: bool = True


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one run went. `again_s` is None if not everything worked again; `code` is that of the end asked for."""

    ended_by_itself: bool
    answers: Counter[str]
    degraded: tuple[str, ...]
    again_s: float | None
    code: int | None
    log_lines: int

    @property
    def good(self) -> bool:
        """Whether it did all that is expected."""
        return not self.ended_by_itself and self.code == 0 and self.again_s is not None and self.again_s <= IN_TIME_S


def names(plan: Plan) -> list[str]:
    """Return the names of the servers."""
    return [f"echo{number:02}" for number in range(plan.servers)]


def client_of(port: int) -> httpx2.AsyncClient:
    """Return a client that loads no certificates: a hundred of them would take seconds."""
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=ANSWER_S, verify=False, trust_env=False)


async def ask(http: httpx2.AsyncClient, server: str) -> str:
    """Call a server once; return `result`, the type of the error, or how the connection failed."""
    message = call((f"{server}-echo", {"text": server}), 1, "legacy")
    try:
        with trio.fail_after(ANSWER_S):
            response = await http.post("/mcp", content=msgspec.json.encode(message), headers=ACCEPT)
        if response.status_code >= 500:
            return f"HTTP {response.status_code}"
        answer = response.json()
    except (httpx2.HTTPError, trio.TooSlowError, json.JSONDecodeError) as trouble:
        return type(trouble).__name__
    if answer.get("result", {}).get("isError"):
        return str(answer["result"]["structuredContent"]["error"]["type"])
    error = answer.get("error")
    return "result" if error is None else str((error.get("data") or {}).get("type", error["code"]))


async def http_client(port: int, number: int, plan: Plan, told: Counter[str]) -> None:
    """Call one server after the other, for ever."""
    async with client_of(port) as http:
        while True:
            for server in names(plan)[number % plan.servers :]:
                told[await ask(http, server)] += 1
                await trio.sleep(0.05)


async def websocket_client(port: int, number: int, plan: Plan, told: Counter[str]) -> None:
    """Open a WebSocket and call one server after the other over it; when it breaks, again, for ever."""
    while True:
        try:
            await websocket_calls(port, names(plan)[number % plan.servers :], told)
        except (OSError, trio.TooSlowError, trio_websocket.HandshakeError, trio_websocket.ConnectionClosed) as error:
            told[type(error).__name__] += 1
        await trio.sleep(0.1)


async def websocket_calls(port: int, servers: list[str], told: Counter[str]) -> None:
    """Open a WebSocket and call each of the servers. Raises what says that it broke."""
    with trio.fail_after(ANSWER_S):
        async with trio_websocket.open_websocket_url(f"ws://127.0.0.1:{port}/mcp") as socket:
            await socket.send_message(msgspec.json.encode(initialize()).decode())
            await socket.get_message()
            for number, server in enumerate(servers, 1):
                message = call((f"{server}-echo", {"text": server}), number, "legacy")
                await socket.send_message(msgspec.json.encode(message).decode())
                answer = json.loads(await socket.get_message())
                good = "result" in answer and not answer["result"].get("isError")
                told["result" if good else "error"] += 1


async def press(port: int, plan: Plan) -> Counter[str]:
    """Let all clients at it at once; return what they were told."""
    told: Counter[str] = Counter()
    with trio.move_on_after(plan.pressed_s):
        async with trio.open_nursery() as nursery:
            for number in range(plan.clients):
                client = websocket_client if number % 5 < 2 else http_client
                nursery.start_soon(client, port, number, plan, told)
    return told


async def degraded(http: httpx2.AsyncClient) -> tuple[str, ...] | None:
    """Return what the status page says is degraded, None if there is no page to be had."""
    try:
        return tuple(row["what"] for row in (await http.get("/api/status")).json()["degraded"])
    except (httpx2.HTTPError, json.JSONDecodeError, KeyError):
        return None


async def again(port: int, plan: Plan) -> float | None:
    """Return the seconds until everything works again."""
    begun = time.monotonic()
    owed = set(names(plan))
    told: Counter[str] = Counter()
    while time.monotonic() < begun + GIVE_UP_S:
        async with client_of(port) as http:
            for server in sorted(owed):
                if await ask(http, server) == "result":
                    owed.discard(server)
            if not owed and await degraded(http) == ():
                try:
                    await websocket_calls(port, names(plan)[:1], told)
                except (OSError, trio.TooSlowError, trio_websocket.HandshakeError, trio_websocket.ConnectionClosed):
                    continue
                return time.monotonic() - begun
        await trio.sleep(0.1)
    return None


def raised(pid: int) -> bool:
    """Raise the limit of a process; False if we may not."""
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (RAISED, RAISED))
    except (PermissionError, ValueError):
        return False
    return True


def one_run(directory: Path, plan: Plan) -> Outcome:
    """Run once in an empty directory."""
    port = free_port()
    config = Place(directory).write({name: entry(ECHO) for name in names(plan)}, port, log_level="info")
    limited = ["sh", "-c", f'ulimit -n {plan.descriptors} && exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "supervisor", "run", "--config", str(config)]
    log = directory / "daemon.log"
    with program(command, port, log) as process:
        answers = trio.run(press, port, plan)
        alive = process.poll() is None
        degraded = trio.run(_status, port) if alive else ()
        if alive and plan.raises:
            raised(process.pid)
        seconds = trio.run(again, port, plan) if alive else None
        alive = process.poll() is None
        if alive:
            process.send_signal(signal.SIGTERM)
        code = process.wait(60) if alive else None
    return Outcome(
        ended_by_itself=not alive,
        answers=answers,
        degraded=degraded,
        again_s=seconds,
        code=code,
        log_lines=len(log.read_text(errors="replace").splitlines()),
    )


async def _status(port: int) -> tuple[str, ...]:
    async with client_of(port) as http:
        return await degraded(http) or ()


def row(number: int, outcome: Outcome) -> str:
    """Return one line of the table."""
    seconds = "never" if outcome.again_s is None else f"{outcome.again_s:.1f}"
    told = ", ".join(f"{what} {count:,}" for what, count in outcome.answers.most_common(6))
    return (
        f"| {number} | {'**yes**' if outcome.ended_by_itself else 'no'} | {seconds} | {outcome.code} | "
        f"{outcome.log_lines} | {', '.join(outcome.degraded) or '-'} | {told} |"
    )


def main() -> int:
    """Run what was asked for; the exit code says whether every run was good."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starvation", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--descriptors", type=int, default=64)
    parser.add_argument("--no-raise", action="store_true", help="relief is only that the clients leave")
    given = parser.parse_args()
    plan = Plan(descriptors=given.descriptors, servers=given.servers, clients=given.clients, raises=not given.no_raise)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    print("| run | ended by itself | works again after, s | exit code | log lines | degraded at the end | answers |")
    print("| --- " * 7 + "|", flush=True)
    good = True
    for number in range(1, given.runs + 1):
        with tempfile.TemporaryDirectory(prefix="starvation-") as directory:
            outcome = one_run(Path(directory), plan)
        good = good and outcome.good
        print(row(number, outcome), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
