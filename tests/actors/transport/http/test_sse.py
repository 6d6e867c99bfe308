"""A server actor before a server of HTTP+SSE, and before one that speaks another transport than was supposed."""

from __future__ import annotations

import re

import pytest
import trio

from actors.errors import ServerError, ServerExited, ServerGaveUp, SupervisorError
from actors.life.states import State
from actors.transport.http import sse
from actors.transport.http.remote import HttpKind
from tests.actors.transport.behind import behind
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request
from tests.fakes.sse_server import SseServer


def answer(status: int, body: bytes = b"<html>sk-secret</html>", kind: str = "text/html", **headers: str) -> Fault:
    async def fault(request: Request) -> None:
        await request.respond(status, body, kind, **headers)

    return fault


@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_a_server_of_http_sse_is_called_whatever_it_is_said_to_be(kind: HttpKind) -> None:
    fake = FakeServer()
    server = SseServer(fake.serve)
    async with behind(server, kind) as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).transport == "sse"
        assert rig.eras == ["legacy"]
        await rig.sleep()
        assert await rig.call("echo", n=2) == {"n": 2}
    assert fake.starts == fake.exits == 2
    assert "server/discover" not in fake.asked[0], "there is no such method in its only revision"
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer t"}
    assert server.count("POST", "initialize") == (3 if kind == "http" else 2), "what it speaks is remembered"


async def test_a_server_that_has_moved_to_streamable_http_is_found_there() -> None:
    fake = FakeServer()
    server = RemoteServer(fake.serve)
    async with behind(server, "sse") as rig:
        assert await rig.call("echo", n=1) == {"n": 1}
        assert (await rig.status()).transport == "http"
        await rig.sleep()
        await rig.wake()
    assert [request.verb for request in server.requests][:2] == ["GET", "POST"]
    assert server.count("POST", "initialize") == 2


async def test_a_server_that_moves_while_we_know_it_is_found_again() -> None:
    fake = FakeServer()
    server = SseServer(fake.serve)
    async with behind(server, "sse") as rig:
        await rig.wake()
        await rig.sleep()
        server.faults["GET"] = answer(405)
        moved = RemoteServer(fake.serve)
        async with moved.running():

            async def elsewhere(request: Request) -> None:
                moved.requests.append(request)
                await moved._answer(request)

            server.faults["POST"] = elsewhere
            assert await rig.call("echo", n=1) == {"n": 1}
            assert (await rig.status()).transport == "http"
            server.faults.clear()
            await rig.sleep()
            assert await rig.call("echo", n=2) == {"n": 2}
            assert (await rig.status()).transport == "sse"


async def test_it_tells_of_changes() -> None:
    fake = FakeServer()
    async with behind(SseServer(fake.serve), "sse") as rig:
        await rig.wake()
        fake.tools.append(tool("grown"))
        await fake.notify("notifications/tools/list_changed")
        await rig.until_listed(2)
        assert rig.listed[-1] == ["echo", "grown"]


async def test_a_stream_that_ends_is_opened_again_and_what_was_asked_on_it_is_lost() -> None:
    fake = FakeServer(tools=[tool("echo"), tool("hang")])
    server = SseServer(fake.serve)
    async with behind(server, "sse") as rig:
        await rig.wake()

        async def lose() -> None:
            with pytest.raises(ServerExited) as raised:
                await rig.call("hang")
            assert raised.value.outcome == "unknown"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            await fake.called.wait()
            server.cut()
        assert await rig.call("echo", n=2) == {"n": 2}
        assert (await rig.status()).last_error is None
    assert server.count("POST", "initialize") == 2


@pytest.mark.case("H20")
async def test_an_address_for_messages_at_another_origin_is_never_asked() -> None:
    canary = SseServer(FakeServer().serve)
    async with canary.running():
        server = SseServer(FakeServer().serve, endpoint=f"{canary.url}?session=")
        async with behind(server, "sse") as rig:
            with pytest.raises(SupervisorError, match="another origin"):
                await rig.call("echo")
    assert canary.requests == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (answer(401), "wants a credential"),
        (answer(500), r"not available \(HTTP 500\)"),
        (answer(404), r"no MCP server at its address \(Streamable HTTP: HTTP 404, HTTP\+SSE: HTTP 404\)"),
        (answer(200), "text/html, which is not MCP"),
    ],
)
@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_an_address_without_a_server_is_said_to_be_one(kind: HttpKind, fault: Fault, error: str) -> None:
    server = SseServer(FakeServer().serve, faults={"POST": fault, "GET": fault})
    async with behind(server, kind) as rig:
        with pytest.raises(SupervisorError):
            await rig.call("echo", deadline_s=0.3)
        while not (last := (await rig.status()).last_error):
            await rig.told.wait()
        assert "sk-secret" not in last
        if kind == "http":
            assert re.search(error, last)
    assert server.count("POST") <= 3


async def test_a_stream_that_does_not_say_where_messages_go_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "ENDPOINT_S", 0.1)

    async def silent(request: Request) -> None:
        await request.begin_events()
        await trio.sleep_forever()

    server = SseServer(FakeServer().serve, faults={"GET": silent})
    async with behind(server, "http", era="legacy") as rig:
        with pytest.raises(ServerError, match=r"gives no stream of HTTP\+SSE|HTTP\+SSE: no stream of that"):
            await rig.call("echo")


@pytest.mark.parametrize(
    ("status", "error", "outcome"), [(500, ServerError, "unknown"), (403, ServerError, "not_sent")]
)
async def test_a_message_that_is_refused_costs_its_call(
    status: int, error: type[SupervisorError], outcome: str
) -> None:
    fake = FakeServer()
    server = SseServer(fake.serve)
    async with behind(server, "sse") as rig:
        await rig.wake()
        server.faults["tools/call"] = answer(status)
        with pytest.raises(error) as raised:
            await rig.call("echo")
        assert raised.value.outcome == outcome
        server.faults.clear()
        assert await rig.call("echo", n=2) == {"n": 2}
        assert rig.actor.life.state is State.READY
    assert fake.starts == 1


@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_a_server_behind_a_prefix_that_it_does_not_know_is_told_which_address_is_wrong(kind: HttpKind) -> None:
    server = SseServer(FakeServer().serve, faults={"initialize": answer(404)})
    async with behind(server, kind) as rig:
        with pytest.raises(ServerGaveUp, match=r"its stream names /messages for messages, .* \(HTTP 404\)") as raised:
            await rig.call("echo")
        assert raised.value.outcome == "not_sent"
        assert "session" not in raised.value.message


async def test_a_session_that_is_forgotten_is_begun_anew_and_its_call_is_asked_once_more() -> None:
    fake = FakeServer()
    server = SseServer(fake.serve)

    async def forgotten(request: Request) -> None:
        server.faults.clear()
        await request.respond(404, b"no session", "text/plain")

    async with behind(server, "sse") as rig:
        await rig.wake()
        server.faults["tools/call"] = forgotten
        assert await rig.call("echo", n=1) == {"n": 1}
    assert server.count("POST", "initialize") == 2
    assert [each["params"]["arguments"] for each in fake.messages if each.get("method") == "tools/call"] == [{"n": 1}]
