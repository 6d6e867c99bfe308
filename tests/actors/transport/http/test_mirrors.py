"""A server actor before a remote server that wants arguments in headers, too (MCP 2026-07-28, `x-mcp-header`)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from actors.errors import CallTimedOut, CallTooLarge, ServerError
from actors.life.states import State
from actors.messages import ServerListed
from actors.protocol.wire.jsonrpc import RemoteError
from actors.protocol.wire.weight import LARGE_BYTES
from tests.actors.server.rig import running_server
from tests.actors.transport.http.test_remote import remote
from tests.fakes.http_faults import right
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import Fault, RemoteServer, Request

REGION = {"type": "string", "x-mcp-header": "Region"}


def echo(**properties: Any) -> dict[str, Any]:
    return {**tool("echo"), "inputSchema": {"type": "object", "properties": properties}}


def modern(*tools: dict[str, Any]) -> FakeServer:
    return FakeServer(tools=list(tools), probe="modern")


def mirrored(server: RemoteServer) -> list[dict[str, str]]:
    """The `Mcp-Param-*` of each call that arrived."""
    calls = [request for request in server.requests if request.method == "tools/call"]
    return [{k: v for k, v in call.headers.items() if k.startswith("mcp-param-")} for call in calls]


@pytest.mark.case("H22")
async def test_annotated_arguments_are_repeated_in_the_head_of_a_call() -> None:
    fake = modern(
        echo(region=REGION, deep={"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}})
    )
    server = RemoteServer(fake.serve, modern=True)
    async with remote(server, fake) as rig:
        await rig.call("echo", region="us-west1", deep={"on": True}, other="x")
        await rig.call("echo", region="a\r\nX-Evil: 1")
        await rig.call("echo", region=None)
        with pytest.raises(CallTooLarge):  # its answer is, as it repeats the arguments
            await rig.call("echo", region="far", filler="x" * LARGE_BYTES)
    assert mirrored(server) == [
        {"mcp-param-region": "us-west1", "mcp-param-on": "true"},
        {"mcp-param-region": "=?base64?YQ0KWC1FdmlsOiAx?="},
        {},
        {"mcp-param-region": "far"},
    ]
    assert not [request for request in server.requests if "x-evil" in request.headers]


async def test_arguments_too_long_for_a_head_are_not_sent() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True)
    async with remote(server, fake) as rig:
        with pytest.raises(ServerError, match="have over 8192 characters there: shorten them") as raised:
            await rig.call("echo", region="x" * 10_000)
        assert raised.value.outcome == "not_sent"
        assert await rig.call("echo", region="x") == {"region": "x"}
    assert mirrored(server) == [{"mcp-param-region": "x"}]


async def test_a_tool_whose_annotation_is_misplaced_is_left_out_and_said_so() -> None:
    fake = modern(echo(region=REGION), {**echo(rows={"type": "array", "items": REGION}), "name": "bad"})
    server = RemoteServer(fake.serve, modern=True)
    async with remote(server, fake) as rig:
        await rig.wake()
        await rig.until_listed(1)
        assert rig.listed == [["echo"]]
        offer = rig.of(ServerListed)[-1].offer
    assert offer.problems == ("tool 'bad' left out: x-mcp-header stands where no path of properties leads",)
    assert offer.barred == ("bad",)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_where_no_head_is_sent_annotations_are_ignored(era: str) -> None:
    probe = "modern" if era == "modern" else "error"
    fake = FakeServer(tools=[echo(a=REGION, b=REGION)], probe=probe)  # type: ignore[arg-type]
    async with running_server(fake, era=None) as rig:
        assert await rig.call("echo", a="x") == {"a": "x"}
        await rig.until_listed(1)
        assert rig.listed == [["echo"]]


async def test_a_legacy_server_over_http_is_sent_none() -> None:
    fake = FakeServer(tools=[echo(region=REGION), {**echo(a=REGION, b=REGION), "name": "twice"}])
    server = RemoteServer(fake.serve)
    async with remote(server, fake, "legacy") as rig:
        await rig.call("echo", region="us-west1")
        await rig.until_listed(1)
        assert rig.listed == [["echo", "twice"]]
    assert mirrored(server) == [{}]


def strict(field: str) -> Fault:
    """A server that wants a header which its list did not speak of at first."""

    async def fault(request: Request) -> None:
        if field in request.headers:
            await request.respond(200, right(request))
        else:
            error = {"code": -32020, "message": f"{field} is missing"}
            text = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": error})
            await request.respond(400, text.encode())

    return fault


async def test_a_call_refused_for_its_headers_is_sent_again_once_the_list_says_which() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True)
    async with remote(server, fake) as rig:
        await rig.wake()
        fake.tools[0] = echo(region=REGION | {"x-mcp-header": "Place"})
        server.faults["tools/call"] = strict("mcp-param-place")
        answers: list[Any] = []

        async def call(number: int) -> None:
            answers.append(await rig.call("echo", region=str(number)))

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(call, number)
    assert sorted(each["region"] for each in answers) == ["0", "1", "2"]
    assert len(mirrored(server)) == 6
    assert fake.count("tools/list") <= 3


async def test_a_call_is_not_sent_again_where_the_list_is_as_before() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True, faults={"tools/call": strict("mcp-param-place")})
    async with remote(server, fake) as rig:
        with pytest.raises(RemoteError) as raised:
            await rig.call("echo", region="a")
        assert raised.value.error.message == "mcp-param-place is missing"
        assert fake.count("tools/list") == 2
        assert (await rig.status()).in_flight == 0
    assert mirrored(server) == [{"mcp-param-region": "a"}]


async def test_a_call_is_sent_again_only_once() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True, faults={"tools/call": strict("mcp-param-other")})
    async with remote(server, fake) as rig:
        await rig.wake()
        fake.tools[0] = echo(region=REGION | {"x-mcp-header": "Place"})
        with pytest.raises(RemoteError):
            await rig.call("echo", region="a")
    assert mirrored(server) == [{"mcp-param-region": "a"}, {"mcp-param-place": "a"}]


async def test_a_call_refused_for_its_headers_keeps_its_deadline() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True, faults={"tools/call": strict("mcp-param-place")})
    async with remote(server, fake) as rig:
        await rig.wake()
        fake.silent_at.add("tools/list")
        with pytest.raises(CallTimedOut):
            await rig.call("echo", deadline_s=0.5, region="a")
        assert (await rig.status()).in_flight == 0


async def test_a_server_that_drains_is_not_asked_for_its_list() -> None:
    fake = modern(echo(region=REGION))
    server = RemoteServer(fake.serve, modern=True)
    refuse, asked = strict("mcp-param-place"), trio.Event()

    async def late(request: Request) -> None:
        asked.set()
        await draining.wait()
        await refuse(request)

    draining = trio.Event()
    server.faults["tools/call"] = late
    async with remote(server, fake) as rig:

        async def call() -> None:
            with pytest.raises(RemoteError):
                await rig.call("echo", region="a")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await asked.wait()
            nursery.start_soon(rig.sleep)
            await rig.reach(State.DRAINING)
            draining.set()
        assert fake.count("tools/list") == 1


async def test_a_legacy_server_that_uses_the_same_code_means_something_else() -> None:
    fake = FakeServer(errors_at={"tools/call": {"code": -32020, "message": "mine"}})
    async with running_server(fake) as rig:
        with pytest.raises(RemoteError):
            await rig.call("echo")
    assert fake.count("tools/list") == 1
