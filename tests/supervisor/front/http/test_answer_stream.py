"""A call is a conversation, over HTTP: what a client is told and asked before its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.codes import REQUEST_CANCELLED
from actors.errors import CannotAsk
from actors.messages import Note, Question
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.front.http.streams import MAX_SAID
from supervisor.service.asking.exchange import MAX_OPEN, Exchange
from supervisor.service.client import Client
from tests.fakes.front_server import running
from tests.fakes.http_client import JSON_HEADERS, fetch, legacy, modern, modern_headers, opened
from tests.fakes.service import FakeService
from tests.supervisor.front.http.test_legacy import Front, keeping_alive

PROGRESS = Note("notifications/progress", b'{"progressToken":7,"progress":1}')
QUESTION = Question("elicitation/create", msgspec.Raw(b'{"message":"Sure?","requestedSchema":{"type":"object"}}'))
ASKABLE: dict[str, Any] = {"elicitation": {}}


def front_that(work: Callable[[Exchange], Awaitable[bytes]]) -> Front:
    """A front whose method `work` does that with its exchange."""
    service = FakeService()

    async def behave(client: Client, params: msgspec.Raw) -> bytes:
        return await work(service.exchanges[-1])

    service.behaviours["work"] = behave
    return Front(service)


async def session_of(front: Front, capabilities: dict[str, Any]) -> str:
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
    return (await front.post(legacy("initialize", params, id_=0))).headers["mcp-session-id"]


async def tells(exchange: Exchange, times: int = 2) -> bytes:
    for _ in range(times):
        exchange.note(PROGRESS)
        await trio.lowlevel.checkpoint()
    return b'{"done":true}'


async def asks(exchange: Exchange) -> bytes:
    try:
        return bytes(await exchange.ask(QUESTION).wait())
    except RemoteError as remote:
        return msgspec.json.encode({"refused": remote.error.code})
    except CannotAsk as error:
        return msgspec.json.encode({"cannot": error.message})


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("slow", [False, True])
async def test_what_is_told_comes_before_the_answer(autojump_clock: MockClock, era: str, slow: bool) -> None:
    async def work(exchange: Exchange) -> bytes:
        if slow:
            exchange.note(PROGRESS)
            await trio.sleep(20)
        return await tells(exchange)

    front = front_that(work)
    headers = JSON_HEADERS if era == "legacy" else modern_headers("work")
    body = legacy("work") if era == "legacy" else modern("work")
    async with keeping_alive(front), opened(front.app, "POST", headers, body) as call:
        for _ in range(3 if slow else 2):
            told = await call.event()
            assert (told["method"], told["params"]) == ("notifications/progress", {"progressToken": 7, "progress": 1})
        assert (await call.event())["result"] == {"done": True}
        await call.end()
    assert call.headers["content-type"] == "text/event-stream"
    assert call.comments == 1 + slow  # one that opens the stream, one that keeps it alive


async def test_what_is_told_is_heard_when_it_is_told(autojump_clock: MockClock) -> None:
    go_on = trio.Event()

    async def work(exchange: Exchange) -> bytes:
        exchange.note(PROGRESS)
        await go_on.wait()
        exchange.note(PROGRESS)
        await trio.sleep_forever()
        raise AssertionError

    front = front_that(work)
    async with keeping_alive(front), opened(front.app, "POST", JSON_HEADERS, legacy("work")) as call:
        await call.event()
        go_on.set()
        await call.event()
        assert trio.current_time() < 1
        front.drain.end()


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
async def test_a_client_that_only_takes_json_gets_only_the_result(accept: str) -> None:
    front = front_that(tells)
    async with keeping_alive(front):
        answer = await front.post(legacy("work"), accept=accept)
    assert answer.json["result"] == {"done": True}
    assert not front.service.exchanges[0].note(PROGRESS)


async def test_a_question_is_answered_by_a_post_of_the_same_session(autojump_clock: MockClock) -> None:
    front = front_that(asks)
    token, other = [await session_of(front, ASKABLE) for _ in range(2)]
    headers = {**JSON_HEADERS, "mcp-session-id": token}
    async with keeping_alive(front), opened(front.app, "POST", headers, legacy("work", id_="w")) as call:
        asked = await call.event()
        assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", "Sure?")
        answer = msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert (await front.post(answer, other)).status == 202  # not its question
        await wait_all_tasks_blocked()
        assert not call.ended
        assert (await front.post(answer, token)).status == 202
        assert (await call.event()) == {"jsonrpc": "2.0", "id": "w", "result": {"action": "accept"}}
        await call.end()
        assert (await front.post(answer, token)).status == 202  # once is enough


async def test_a_client_may_answer_with_an_error(autojump_clock: MockClock) -> None:
    front = front_that(asks)
    token = await session_of(front, ASKABLE)
    headers = {**JSON_HEADERS, "mcp-session-id": token}
    async with keeping_alive(front), opened(front.app, "POST", headers, legacy("work")) as call:
        id_ = (await call.event())["id"]
        error = {"code": -1, "message": "the user went away"}
        await front.post(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": error}), token)
        assert (await call.event())["result"] == {"refused": -1}


@pytest.mark.parametrize("own", [False, True])
async def test_a_client_that_cancels_a_question_has_refused_it(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setattr("secrets.choice", lambda among: 731)
    front = front_that(asks)
    token, other = [await session_of(front, ASKABLE) for _ in range(2)]
    headers = {**JSON_HEADERS, "mcp-session-id": token}
    id_ = 731 if own else "work"  # its own request of that id comes first
    async with keeping_alive(front), opened(front.app, "POST", headers, legacy("work", id_=id_)) as call:
        asked = await call.event()
        cancelled = legacy("notifications/cancelled", {"requestId": asked["id"]}, id_=None)
        await front.post(cancelled, other)
        await wait_all_tasks_blocked()
        assert not call.ended
        await front.post(cancelled, token)
        if own:
            assert (await call.event())["method"] == "notifications/cancelled"
            assert (await call.event())["error"]["code"] == REQUEST_CANCELLED
        else:
            assert (await call.event())["result"] == {"refused": -1}


@pytest.mark.parametrize("who", ["undeclared", "without a session", "json only", "modern"])
async def test_who_cannot_be_asked_is_not_asked(who: str) -> None:
    front = front_that(asks)
    token = await session_of(front, {} if who == "undeclared" else ASKABLE)
    async with keeping_alive(front):
        if who == "modern":
            async with opened(
                front.app, "POST", modern_headers("work"), modern("work", clientCapabilities=ASKABLE)
            ) as call:
                await call.end()
            answer = call
        elif who == "json only":
            answer = await front.post(legacy("work"), token, accept="application/json")
        else:
            answer = await front.post(legacy("work"), None if who == "without a session" else token)
    assert "cannot" in answer.json["result"]


async def test_a_question_that_is_taken_back_is_cancelled_at_the_client(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        with trio.move_on_after(5):
            await exchange.ask(QUESTION).wait()
        return b"{}"

    front = front_that(work)
    token = await session_of(front, ASKABLE)
    headers = {**JSON_HEADERS, "mcp-session-id": token}
    async with keeping_alive(front), opened(front.app, "POST", headers, legacy("work")) as call:
        asked = await call.event()
        cancelled = await call.event()
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", asked["id"])
        assert (await call.event())["result"] == {}


async def test_questions_end_with_their_request_and_are_bounded(autojump_clock: MockClock) -> None:
    ends: list[str] = []

    async def wait(exchange: Exchange) -> None:
        try:
            await exchange.ask(QUESTION).wait()
        except CannotAsk as error:
            ends.append(error.message)

    async with trio.open_nursery() as nursery:

        async def work(exchange: Exchange) -> bytes:
            for _ in range(MAX_OPEN + 1):
                nursery.start_soon(wait, exchange)
            await wait_all_tasks_blocked()
            return b"{}"

        front = front_that(work)
        token = await session_of(front, ASKABLE)
        async with keeping_alive(front):
            await front.post(legacy("work"), token)
    assert len(ends) == MAX_OPEN + 1
    assert ends[0] == f"the client has {MAX_OPEN} questions that it has not answered"
    assert set(ends[1:]) == {"the request that this was about is over"}


async def test_the_end_of_a_session_ends_its_questions(autojump_clock: MockClock) -> None:
    front = front_that(asks)
    token = await session_of(front, ASKABLE)
    headers = {**JSON_HEADERS, "mcp-session-id": token}
    async with keeping_alive(front), opened(front.app, "POST", headers, legacy("work")) as call:
        await call.event()
        await fetch(front.app, "DELETE", {"mcp-session-id": token})
        assert (await call.event())["result"] == {"cannot": "the client has gone"}


async def test_what_waits_for_a_client_is_bounded(
    autojump_clock: MockClock,
) -> None:
    async def work(exchange: Exchange) -> bytes:
        return b"%d" % sum(exchange.note(PROGRESS) for _ in range(10_000))

    front = front_that(work)
    async with keeping_alive(front), opened(front.app, "POST", JSON_HEADERS, legacy("work")) as call:
        heard = 0
        while "method" in (told := await call.event()):
            heard += 1
    assert heard == told["result"] == MAX_SAID


async def test_conversations_side_by_side_reach_each_its_own_client(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        for number in range(20):
            exchange.note(Note("notifications/progress", b'{"progressToken":%b,"progress":%d}' % (exchange.id, number)))
            await trio.sleep(0.1)
        return exchange.id

    front = front_that(work)

    async def one(id_: int) -> None:
        async with opened(front.app, "POST", JSON_HEADERS, legacy("work", id_=id_)) as call:
            for number in range(20):
                assert (await call.event())["params"] == {"progressToken": id_, "progress": number}
            assert (await call.event())["result"] == id_

    async with keeping_alive(front), trio.open_nursery() as nursery:
        for id_ in range(10):
            nursery.start_soon(partial(one, id_))


@pytest.mark.case("W02")
async def test_a_client_that_reads_nothing_over_a_real_socket_holds_up_nobody_else() -> None:
    flooding = trio.Event()

    async def work(exchange: Exchange) -> bytes:
        if exchange.id != b'"deaf"':
            return await tells(exchange)
        note = Note("notifications/message", b'{"level":"info","data":"' + b"x" * 60_000 + b'"}')
        dropped = 0
        while dropped < 100:  # its socket is full, and so is what may wait for it
            dropped += not exchange.note(note)
            await trio.lowlevel.checkpoint()
        flooding.set()
        await trio.sleep_forever()
        raise AssertionError

    front = front_that(work)
    async with running(partial(front.app.serve, "")) as server, trio.open_nursery() as nursery:
        nursery.start_soon(front.app.run)
        body = legacy("work", id_="deaf")
        head = "".join(f"{name}: {value}\r\n" for name, value in JSON_HEADERS.items()).encode()
        async with await server.connect() as deaf:
            length = b"Content-Length: %d\r\n\r\n" % len(body)
            await deaf.send_all(b"POST /mcp HTTP/1.1\r\n" + server.host + head + length + body)
            with trio.fail_after(20):
                await flooding.wait()
                url = f"http://127.0.0.1:{server.port}/mcp"
                async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
                    answer = await client.post(url, headers=JSON_HEADERS, content=legacy("work", id_="other"))
        assert answer.text.count("notifications/progress") == 2
        assert '"id":"other"' in answer.text
        assert len(front.service.exchanges) == 2
        nursery.cancel_scope.cancel()


async def test_a_flood_is_written_together_and_loses_nothing(autojump_clock: MockClock) -> None:
    async def work(exchange: Exchange) -> bytes:
        for number in range(300):
            assert exchange.note(Note("notifications/progress", b'{"progressToken":7,\n"progress":%d}' % number))
            await trio.sleep(0.001)
        return b"{}"

    front = front_that(work)
    async with keeping_alive(front), opened(front.app, "POST", JSON_HEADERS, legacy("work")) as call:
        told = [(await call.event())["params"]["progress"] for _ in range(300)]
        assert told == list(range(300))
        assert (await call.event())["result"] == {}
        await call.end()
    assert call.writes < 100
