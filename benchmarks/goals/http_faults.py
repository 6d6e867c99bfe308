"""G6: remote servers that answer with what is no answer: each fault costs one call at most, and nobody else notices.

The remote servers run in this process. One of them redirects to a place that nobody may be led to, which counts who
comes; another one forgets its session again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio
from msgspec import Struct, field

from benchmarks.goals.calls import Calls
from benchmarks.goals.faulty import GROWTH, HEALTHY, LIVELY, UNHARMED, faulty, ledger, unharmed, until_up
from benchmarks.goals.figure import Figure, count
from benchmarks.goals.wire_faults import NEXT
from benchmarks.machine import memory
from benchmarks.running import Place, Running, daemon
from tests.chaos.history import Request
from tests.chaos.remote_faults import FAULTS
from tests.chaos.world import serving
from tests.fakes import http_faults
from tests.fakes.remote_server import Fault, RemoteServer

CALL_S: Final = 2.5
PER_S: Final = 20.0
FORGETFUL: Final = "forgetful"
MORE: Final[dict[str, Fault]] = {
    "403": http_faults.status(403),
    "redirect loop": http_faults.redirect_loop,
    "slow headers": http_faults.slow_headers,
    "slow body": http_faults.slow_body,
    "huge": http_faults.huge,
    "huge at once": http_faults.huge_at_once,
    "gzip bomb": http_faults.gzip_bomb,
    "no JSON": http_faults.body(b"{"),
    "nothing": http_faults.body(b""),
    "a page": http_faults.body(b"<html>", "text/html"),
    "no HTTP": http_faults.raw(b"\0\xff no HTTP\r\n\r\n"),
    "many lines": http_faults.header_lines(200_000),
    "many interim answers": http_faults.one_hundreds(1000),
    "cookies": http_faults.cookies,
    "endless events": http_faults.events_endless,
    "events that trickle": http_faults.events_trickle,
    "a big line": http_faults.events_big_line,
    "compressed events": http_faults.events_compressed,
    "tiny chunks": http_faults.tiny_chunks([b"\n"] * 2000),
}
"""Beside those of the runs of chaos."""
REDIRECTED: Final = "redirected elsewhere"


class Seen(Struct, kw_only=True):
    """Of each fault: the next call, and how long it took; of the place of redirects, who came; and of sessions."""

    after: list[tuple[Request, float]] = field(default_factory=list)
    led_astray: int = 0
    forgotten: int = 0
    opened: int = 0
    grown_mib: float = 0.0
    unharmed: list[Figure] = field(default_factory=list)


def measure(directory: Path, full: bool) -> Iterator[Figure]:
    """Play each fault ten times in both eras; each eighth one once in the small form."""
    seen = Seen()
    calls = trio.run(_run, directory, full, seen)
    yield from seen.unharmed
    failed = [request for request, _ in seen.after if request.how != "result"]
    yield count(f"calls without an answer, of {len(calls.requests)} during {len(seen.after)} faults", calls.lost())
    yield count("answers to somebody else's request", calls.misdelivered())
    yield count("next calls of the same server that failed", len(failed))
    yield Figure("the longest from a fault to the answer of the next call", NEXT, max(s for _, s in seen.after))
    yield count("requests at the place of redirects", seen.led_astray)
    yield count(
        f"calls that failed, while a session was forgotten {seen.forgotten} times", len(calls.failed(FORGETFUL))
    )
    yield count("sessions that were opened beside the first one and one for each", seen.opened - seen.forgotten - 1)
    yield count("calls of the healthy server that failed", len(calls.failed(HEALTHY)))
    yield Figure("p99 of the healthy server meanwhile", UNHARMED, calls.p99_ms(HEALTHY))
    yield Figure("growth of memory", GROWTH, seen.grown_mib)


async def _run(directory: Path, full: bool, seen: Seen) -> Calls:
    kinds: dict[str, dict[str, Any]] = {"legacy": {}, "modern": {"modern": True}, FORGETFUL: {"session_calls": 1}}
    path = str(ledger(directory))
    remotes = {
        name: RemoteServer(serving(path, name, "modern" if "modern" in more else ""), **more)
        for name, more in kinds.items()
    }
    elsewhere = RemoteServer(serving(path, "elsewhere"))
    async with AsyncExitStack() as stack:
        for remote in (*remotes.values(), elsewhere):
            await stack.enter_async_context(remote.running())
        lively = {**LIVELY, "backoff_initial_s": 0.1, "call_timeout_s": CALL_S}
        servers: dict[str, Any] = {name: {"url": remote.url, **lively} for name, remote in remotes.items()}
        servers[HEALTHY] = faulty(directory, HEALTHY)
        with ExitStack() as running:
            at = await trio.to_thread.run_sync(running.enter_context, daemon(Place(directory), servers))
            await trio.to_thread.run_sync(until_up, at)
            calls = await _play(at, full, seen, remotes, elsewhere)
            seen.unharmed = [*unharmed(at, directory)]
            await trio.to_thread.run_sync(running.close)
    return calls


async def _play(
    at: Running, full: bool, seen: Seen, remotes: dict[str, RemoteServer], elsewhere: RemoteServer
) -> Calls:
    calls = Calls(at.port, [HEALTHY], PER_S)
    faults = {name: fault for name, (_, fault) in FAULTS.items()} | MORE
    faults[REDIRECTED] = http_faults.status(307, location=elsewhere.url)
    names = sorted(faults) * 10 if full else [*sorted(faults)[::8], REDIRECTED]
    before = memory(at.process.pid).rss_mib

    async def play_some(server: str) -> None:
        for name in names:
            remotes[server].faults["tools/call"] = faults[name]
            await calls.one(server)
            del remotes[server].faults["tools/call"]
            ended_s = monotonic()
            seen.after.append((await calls.one(server), monotonic() - ended_s))

    async with calls.running(), trio.open_nursery() as nursery:
        nursery.start_soon(play_some, "legacy")
        nursery.start_soon(play_some, "modern")
        for _ in range(20 if full else 4):
            await calls.one(FORGETFUL)
    seen.grown_mib = memory(at.process.pid).rss_mib - before
    seen.led_astray = len(elsewhere.requests)
    seen.forgotten, seen.opened = remotes[FORGETFUL].forgotten, remotes[FORGETFUL].count("POST", "initialize")
    return calls
