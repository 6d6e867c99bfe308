"""A server actor before a remote server that wants arguments in headers, too (MCP 2026-07-28, `x-mcp-header`)."""

from __future__ import annotations

from typing import Any

import pytest

from actors.errors import CallTooLarge, ServerError
from actors.messages import ServerListed
from actors.protocol.weight import LARGE_BYTES
from tests.actors.server.rig import running_server
from tests.actors.transport.http.test_remote import remote
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.remote_server import RemoteServer

REGION = {"type": "string", "x-mcp-header": "Region"}


def echo(**properties: Any) -> dict[str, Any]:
    return {**tool("echo"), "inputSchema": {"type": "object", "properties": properties}}


def modern(*tools: dict[str, Any]) -> FakeServer:
    return FakeServer(tools=list(tools), probe="modern")


def mirrored(server: RemoteServer) -> list[dict[str, str]]:
    """The `Mcp-Param-*` of each call that arrived."""
    calls = [request for request in server.requests if request.method == "tools/call"]
    return [{k: v for k, v in call.headers.items() if k.startswith("mcp-param-")} for call in calls]


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
