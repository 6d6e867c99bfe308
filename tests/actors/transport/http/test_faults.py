"""What a caller sees of a server behind HTTP that does something wrong: why, in time, and nothing of it afterwards."""

from __future__ import annotations

import re
import ssl
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec
import pytest
import trio
from httpcore2 import AsyncHTTP11Connection, AsyncMockStream, Origin

from actors.errors import (
    CallTimedOut,
    CallTooLarge,
    Outcome,
    ProtocolViolation,
    ServerError,
    ServerExited,
    SupervisorError,
    TooManyCalls,
)
from actors.kit import Starts
from actors.kit.fairness.share import LoopShare
from actors.life.policy import RestartPolicy
from actors.life.states import State
from actors.protocol.agreement.versions import Era
from actors.server import ServerSettings
from actors.server.calls.queue import MAX_STALE
from actors.transport.http.client.client import CHUNKS_AT_ONCE, MAX_HEAD_BYTES, MAX_INTERIM, READ_BYTES, way_to
from actors.transport.http.client.pieces import events
from actors.transport.http.remote import HttpLimits
from actors.transport.http.site import MAX_REDIRECTS
from supervisor.service.calls.failures import advice
from tests.actors.server.rig import Rig
from tests.actors.transport.behind import behind
from tests.fakes import http_faults as faults
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request

LIMITS = HttpLimits(max_line_bytes=100_000, max_event_bytes=50_000, connect_timeout_s=2)
DEADLINE_S = 1.0
"""Of a call whose answer does not come: its request arrives before, also where the machine is busy."""
PATIENCE_S = 60.0
"""For everything else: the machine may be busy."""
ERAS: tuple[Era, ...] = ("legacy", "modern")


@dataclass(frozen=True)
class Case:
    """One fault and how a call ends that meets it. `says`: what its message has to tell, a regular expression."""

    name: str
    fault: Fault
    error: type[SupervisorError]
    outcome: Outcome
    says: str
    eras: tuple[Era, ...] = ERAS


LOST = "; whether the tool ran is not known: look before you call it again"
ELSEWHERE = r"it sends us on to where nothing is sent \(HTTP 30[27]\); its address may have changed"
LATE = "did not answer tools/call within [0-9.]+ s"
BROKEN = "what it sends is not valid HTTP, or its head is too large"
CUT = "it closed the connection before its answer was whole"
OTHER = "what it answered is not the answer to this request"
NO_RESULT = "it ended its answer before the result"
CREDENTIAL = r"it wants a credential, or another one \(HTTP 40[13]\)"
AWAY = r"it is not available \(HTTP 50[0-9]\)"
LARGE = r"its answer is over 100000 bytes \(max_line_bytes\); ask for less at once"
EVENT = r"an event of its answer is over the limit \(max_event_bytes\); ask for less at once"
ODD = "text/event-stream; charset=zlib_codec"
METADATA = f'Bearer resource_metadata="{faults.ELSEWHERE}"'

ERRORS = [
    Case("401", faults.status(401, www_authenticate=METADATA), ServerError, "not_sent", CREDENTIAL),
    Case("403", faults.status(403), ServerError, "not_sent", CREDENTIAL),
    Case("404", faults.status(404), ServerError, "not_sent", "there is no MCP server at its address", ("modern",)),
    Case("405", faults.status(405), ServerError, "not_sent", "there is no MCP server at its address"),
    Case("429", faults.status(429, retry_after="3600"), TooManyCalls, "not_sent", "it is asked too often"),
    Case("500", faults.status(500), ServerError, "unknown", AWAY),
    Case("502", faults.status(502), ServerError, "unknown", AWAY),
    Case("503", faults.status(503, retry_after="3600"), ServerError, "unknown", AWAY),
    Case("301", faults.status(301, location="/mcp"), ProtocolViolation, "unknown", r"\(HTTP 301\)"),
    Case("302", faults.status(302, location="/mcp"), ProtocolViolation, "unknown", r"\(HTTP 302\)"),
    Case("206", faults.status(206), ProtocolViolation, "unknown", r"it gave no answer \(HTTP 206\)"),
    Case("redirect", faults.status(307, location=faults.ELSEWHERE), ProtocolViolation, "unknown", ELSEWHERE),
    Case("redirect-302", faults.status(302, location=faults.ELSEWHERE), ProtocolViolation, "unknown", ELSEWHERE),
    Case("redirect-loop", faults.redirect_loop, ProtocolViolation, "unknown", ELSEWHERE),
    Case("redirect-scheme", faults.status(307, location="file:///etc/passwd"), ProtocolViolation, "unknown", ELSEWHERE),
    Case("redirect-nowhere", faults.status(307), ProtocolViolation, "unknown", ELSEWHERE),
    Case("rst", faults.reset, ServerExited, "unknown", r"the connection to it was lost \(Connection reset by peer\)"),
    Case("closed", faults.close, ServerExited, "unknown", CUT),
    Case("hang", faults.hang, CallTimedOut, "unknown", LATE),
    Case("slow-headers", faults.slow_headers, CallTimedOut, "unknown", LATE, ("legacy",)),
    Case("slow-body", faults.slow_body, CallTimedOut, "unknown", LATE, ("legacy",)),
    Case("short-body", faults.short_body, ServerExited, "unknown", CUT),
    Case("huge", faults.huge, CallTooLarge, "unknown", LARGE),
    Case("huge-at-once", faults.huge_at_once, CallTooLarge, "unknown", LARGE),
    Case("gzip-bomb", faults.gzip_bomb, CallTooLarge, "unknown", LARGE),
    Case("gzip-broken", faults.gzip_broken, ProtocolViolation, "unknown", "its answer is not compressed as it says"),
    Case("html", faults.status(200), ProtocolViolation, "unknown", "it answered with text/html, which is not MCP"),
    Case(
        "wrong-type", faults.wrong_type, ProtocolViolation, "unknown", "it answered with text/plain, which is not MCP"
    ),
    Case("no-type", faults.no_type, ProtocolViolation, "unknown", "it answered with nothing that is named"),
    Case("empty", faults.raw(faults.plain(0)), ProtocolViolation, "unknown", "its answer is no JSON-RPC message"),
    Case("accepted", faults.status(202), ProtocolViolation, "unknown", r"it gave no answer \(HTTP 202\)"),
    Case("bad-json", faults.body(b'{"jsonrpc":"2.0","id":1,'), ProtocolViolation, "unknown", OTHER),
    Case("other-id", faults.other_id, ProtocolViolation, "unknown", OTHER),
    Case("header-flood", faults.header_flood, ProtocolViolation, "unknown", BROKEN),
    Case("header-lines", faults.header_lines(MAX_HEAD_BYTES + READ_BYTES), ProtocolViolation, "unknown", BROKEN),
    Case("one-hundreds", faults.one_hundreds(2000), ProtocolViolation, "unknown", "without end, and no answer"),
    Case("bad-chunk", faults.bad_chunk, ProtocolViolation, "unknown", BROKEN),
    Case("garbage", faults.raw(b"\x16\x03\x01nonsense\r\n\r\n"), ProtocolViolation, "unknown", BROKEN),
    Case("sse-cut", faults.events(b'event: message\ndata: {"jsonrpc":"2.0","id'), ServerExited, "unknown", NO_RESULT),
    Case("sse-cut-before", faults.events(b": hello\n\n"), ServerExited, "unknown", NO_RESULT),
    Case("sse-endless", faults.events_endless, CallTimedOut, "unknown", LATE),
    Case("sse-trickle", faults.events_trickle, CallTimedOut, "unknown", LATE, ("legacy",)),
    Case("sse-compressed", faults.events_compressed, CallTimedOut, "unknown", LATE, ("legacy",)),
    Case("sse-bigline", faults.events_big_line, CallTooLarge, "unknown", EVENT),
    Case("sse-compressed-charset", faults.events(b"x", kind=ODD), ServerExited, "unknown", NO_RESULT),
]
RIGHT: dict[str, Fault] = {
    "gzip-asked": faults.gzip_asked,
    "header-lines": faults.header_lines(MAX_HEAD_BYTES),
    "one-hundreds": faults.one_hundreds(MAX_INTERIM),
    "cookies": faults.cookies,
    "sse": faults.events(None),
    "sse-flood": faults.events_flood,
    "sse-forms": faults.events_forms,
    "sse-twice": faults.events(None, None),
    "sse-request": faults.asks,
    "sse-tiny-chunks": faults.tiny_chunks([b"\n"] * 5000),
    "sse-charset": faults.events(None, kind="text/event-stream; charset=utf-16"),
    "delay": faults.delay,
}
"""What is odd, and still an answer."""
PROBED = {"legacy": "error", "modern": "modern"}


@asynccontextmanager
async def reached(
    fake: FakeServer, era: Era | None, policy: RestartPolicy | None = None
) -> AsyncIterator[tuple[Rig, RemoteServer]]:
    server = RemoteServer(fake.serve, modern=fake.probe == "modern")
    settings, starts = ServerSettings(breaker=False), Starts(per_s=1000.0)
    async with behind(server, limits=LIMITS, era=era, policy=policy, starts=starts, settings=settings) as rig:
        yield rig, server
    assert fake.starts == fake.exits


def of_era(era: Era) -> FakeServer:
    return FakeServer(probe=PROBED[era])  # type: ignore[arg-type]


@pytest.mark.case("H04", "H05", "H06", "H10", "H11", "H12", "H13", "H14")
@pytest.mark.parametrize(
    ("case", "era"),
    [pytest.param(case, era, id=f"{case.name}-{era}") for case in ERRORS for era in case.eras],
)
async def test_a_fault_costs_its_call_says_why_and_costs_no_other(case: Case, era: Era) -> None:
    async with reached(of_era(era), era) as (rig, server):
        await rig.wake()
        server.faults["tools/call"] = case.fault
        with pytest.raises(case.error) as raised:
            await rig.call("echo", deadline_s=DEADLINE_S if case.error is CallTimedOut else PATIENCE_S)
        error = raised.value
        assert (error.server, error.outcome) == ("s", case.outcome)
        assert error.message.startswith("server 's'")
        assert re.search(case.says, error.message)
        assert faults.SECRET not in error.message
        if case.outcome == "unknown":
            assert advice(error) == LOST
        else:
            assert advice(error)
        if case.error is CallTimedOut and case.name != "sse-compressed":
            with trio.fail_after(PATIENCE_S):
                await next(each for each in server.requests if each.method == "tools/call").gone.wait()
        del server.faults["tools/call"]
        assert await rig.call("echo", n=2) == {"n": 2}
        assert rig.actor.life.state is State.READY
    hops = MAX_REDIRECTS if case.name == "redirect-loop" else 0
    refused = case.name in ("404", "405")  # whether the server still knows us is asked, and then the call again
    assert server.count("POST", "tools/call") == 2 + hops + MAX_STALE * refused
    assert server.count("POST", "initialize") == (era == "legacy")


@pytest.mark.case("H10")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", ["rst", "closed", "short-body", "sse-cut", "sse-cut-before"])
async def test_a_connection_that_breaks_costs_no_call_beside_it(name: str, era: Era) -> None:
    (case,) = [case for case in ERRORS if case.name == name]
    fake = FakeServer(tools=[tool("echo"), tool("wait")], probe=PROBED[era])  # type: ignore[arg-type]
    async with reached(fake, era) as (rig, server):
        await rig.wake()
        server.faults["tools/call"] = (hold := faults.Held()).fault
        beside = rig.submit("echo", n=1)
        await hold.begun.wait()
        server.faults["tools/call"] = case.fault
        for _ in range(3):
            with pytest.raises(case.error) as raised:
                await rig.call("echo", deadline_s=PATIENCE_S)
            assert raised.value.outcome == "unknown"
        hold.go_on.set()
        assert msgspec.json.decode((await beside.wait()).body)["structuredContent"] == {"n": 1}
        assert rig.actor.life.incarnation == 1


BOMBS = {"gzip-bomb": faults.bomb(100_000_000), "huge": faults.huge, "sse-bigline": faults.events_big_line}


@pytest.mark.case("H12")
@pytest.mark.parametrize("name", BOMBS)
async def test_an_answer_without_measure_costs_little_memory_and_time(name: str) -> None:
    async with reached(of_era("legacy"), "legacy") as (rig, server):
        await rig.wake()
        server.faults["tools/call"] = BOMBS[name]
        tracemalloc.start()
        begun = time.thread_time()
        try:
            with pytest.raises(CallTooLarge):
                await rig.call("echo", deadline_s=PATIENCE_S)
            taken, peak = time.thread_time() - begun, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 4_000_000
    assert taken < 2.0


@pytest.mark.case("H19")
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_its_client_leaves_is_taken_back_in_the_way_of_its_era(era: Era) -> None:
    fake = FakeServer(tools=[tool("echo"), tool("hang")], probe=PROBED[era])  # type: ignore[arg-type]
    async with reached(fake, era) as (rig, server), trio.open_nursery() as nursery:
        await rig.wake()
        if era == "modern":
            server.faults["tools/call"] = faults.hang
        nursery.start_soon(rig.call, "hang")
        call = await server.until(lambda request: request.method == "tools/call")
        if era == "legacy":
            await fake.called.wait()
        nursery.cancel_scope.cancel()
        with trio.fail_after(PATIENCE_S, shield=True):
            if era == "modern":
                await call.gone.wait()
            else:
                told = await server.until(lambda request: request.method == "notifications/cancelled")
                assert told.message["params"]["requestId"] == call.message["id"]
            server.faults.clear()
            assert await rig.call("echo", n=1) == {"n": 1}
    assert server.count("POST", "notifications/cancelled") == (era == "legacy")


@pytest.mark.case("H05")
async def test_a_server_that_asks_too_much_of_us_is_left_alone_for_five_minutes_at_most() -> None:
    async with reached(of_era("legacy"), "legacy") as (rig, server):
        await rig.wake()
        server.faults["tools/call"] = faults.status(429, retry_after="3600")
        with pytest.raises(TooManyCalls) as raised:
            await rig.call("echo")
        assert raised.value.retry_after_s == 300.0
        assert advice(raised.value) == "; try again in 300 s"


@pytest.mark.case("H15", "H16", "H17")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", RIGHT)
async def test_what_is_odd_and_still_an_answer_is_one(name: str, era: Era) -> None:
    async with reached(of_era(era), era) as (rig, server):
        await rig.wake()
        server.faults["tools/call"] = RIGHT[name]
        assert await rig.call("echo", deadline_s=10, n=1) == {"n": 1}
        del server.faults["tools/call"]
        assert await rig.call("echo", n=2) == {"n": 2}
        assert rig.actor.life.state is State.READY
        if name == "sse-request" and era == "legacy":
            answer = await server.until(lambda request: request.message.get("id") == "srv-1")
            assert answer.message["error"]["code"] == -32601
    assert server.count("POST", "tools/call") == 2
    assert server.count("POST", "initialize") == (era == "legacy")
    assert not [each for each in server.requests if "cookie" in each.headers]
    sessions = {each.headers.get("mcp-session-id") for each in server.requests if each.method == "tools/call"}
    assert sessions == ({"session-1"} if era == "legacy" else {None})
    asked = [each for each in server.requests if each.message.get("id") == "srv-1"]
    assert len(asked) == (name == "sse-request" and era == "legacy")


IN_NO_TIME = RestartPolicy(max_restarts=1000, backoff_initial_s=0.02, backoff_max_s=0.02)


@pytest.mark.case("H13")
@pytest.mark.parametrize(
    ("case", "era"),
    [
        *(pytest.param(case, "legacy", id=case.name) for case in ERRORS if case.error is not CallTimedOut),
        pytest.param(ERRORS[0], "modern", id="modern"),
    ],
)
async def test_a_fault_of_the_handshake_is_told_and_what_comes_after_it_works(case: Case, era: Era) -> None:
    fake = of_era(era)
    async with reached(fake, None, IN_NO_TIME) as (rig, server):
        for method in ("server/discover", "initialize"):
            server.faults[method] = case.fault
        with pytest.raises(SupervisorError) as raised:
            await rig.call("echo", deadline_s=0.05)
        assert raised.value.outcome == "not_sent"
        while not (last := (await rig.status()).last_error or ""):
            await rig.told.wait()  # it is tried again and again
        assert faults.SECRET not in last + "".join(rig.story)
        server.faults.clear()
        await rig.restart()
        assert await rig.call("echo", n=1) == {"n": 1}
        assert rig.actor.life.state is State.READY
    assert server.count("POST", "tools/call") == 1


@pytest.mark.case("H07")
async def test_no_request_of_a_server_goes_where_it_points() -> None:
    """A second server stands for what must not be asked: neither it nor a credential for it is ever seen there."""
    fake, other = of_era("legacy"), RemoteServer(FakeServer().serve)
    async with other.running(), reached(fake, "legacy") as (rig, server):
        await rig.wake()
        for number in (301, 302, 303, 307, 308):
            server.faults["tools/call"] = faults.status(number, location=other.url)
            with pytest.raises(ProtocolViolation):
                await rig.call("echo")
    assert other.requests == []


async def test_a_redirect_within_the_origin_is_followed_with_its_credential() -> None:
    async with reached(of_era("legacy"), "legacy") as (rig, server):
        await rig.wake()
        moved = faults.status(307, location="/moved")

        async def once(request: Request) -> None:
            del server.faults["tools/call"]
            await moved(request)

        server.faults["tools/call"] = once
        assert await rig.call("echo", n=1) == {"n": 1}
    first, second = [each for each in server.requests if each.method == "tools/call"]
    assert (first.path, second.path) == ("/mcp", "/moved")
    assert second.headers["authorization"] == "Bearer t"
    assert first.body == second.body


async def test_others_have_their_turn_between_interim_answers_that_came_in_one_read() -> None:
    way_to("http://far.example", ssl.create_default_context(), httpx2.Limits())
    answers = b"HTTP/1.1 100 \r\n\r\n" * MAX_INTERIM + b"HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n"
    turns = 0

    async def wait_often() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_often)
        async with AsyncHTTP11Connection(Origin(b"http", b"far.example", 80), AsyncMockStream([answers])) as connection:
            assert (await connection.request("GET", "http://far.example/")).status == 200
        assert turns >= MAX_INTERIM
        nursery.cancel_scope.cancel()


@pytest.mark.case("H12")
async def test_who_leaves_an_answer_takes_no_more_than_a_few_of_the_chunks_that_have_come() -> None:
    chunks = b"9\r\ndata: x\n\n\r\n" + b"1\r\n\n\r\n" * 5000
    answer = b"HTTP/1.1 200 \r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + chunks
    turns = 0

    async def flood(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await trio.sleep_forever()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(trio.serve_listeners, flood, [listener])
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        way = way_to(url, ssl.create_default_context(), httpx2.Limits())
        async with httpx2.AsyncClient(transport=way) as client, client.stream("GET", url) as response:
            async with events(response, 1000, LoopShare()) as told:
                assert (await anext(told)).data == b"x"
                nursery.start_soon(count_turns)
            assert turns < 2 * CHUNKS_AT_ONCE
        nursery.cancel_scope.cancel()
