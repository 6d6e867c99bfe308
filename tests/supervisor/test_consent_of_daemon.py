"""What a person says yes to is what runs: at every door, in both eras, however the arguments are written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio_websocket import WebSocketConnection

from supervisor.host.datadir import open_data_dir
from tests.fakes.http_client import META, MODERN, modern_headers
from tests.fakes.json_texts import OBJECTS
from tests.fakes.mcp_server import FakeServer
from tests.fakes.memory import MemoryTransport
from tests.fakes.shown_calls import decoded_call
from tests.fakes.whole_server import WholeServer
from tests.scenario.client import message as request
from tests.scenario.daemon import World, world

YES = {"action": "accept", "content": {"run": True}}
MODERN_META = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {"elicitation": {}}}
DECOY = '"arguments": {"path": "/tmp/harmless"}'
DOORS = {"/mcp/servers/one": "tool1", "/mcp/all": "one__tool1", "/mcp": "one:tool1"}

Call = tuple[str, str, str]
"""A door, the name of the tool there, and its arguments as JSON text."""


def in_execute(arguments: str, shape: str) -> str:
    match shape:
        case "object":
            return f'{{"tool_path": "one:tool1", "arguments": {arguments}}}'
        case "text":
            return f'{{"tool_path": "one:tool1", "arguments": {json.dumps(arguments)}}}'
        case "escaped":
            return (
                f'{{{DECOY.replace("arguments", "x")}, "tool\\u005fpath": "one:tool1", "argu\\u006dents": {arguments}}}'
            )
        case _:
            return json.dumps(f'{{"tool_path": "one:tool1", "arguments": {arguments}}}')


SHAPES = st.sampled_from(["object", "text", "escaped", "all a text"])
CALLS: st.SearchStrategy[Call] = st.one_of(
    st.builds(lambda door, arguments: (door, DOORS[door], arguments), st.sampled_from(sorted(DOORS)), OBJECTS),
    st.builds(lambda arguments, shape: ("/mcp", "execute_mcp_tool", in_execute(arguments, shape)), OBJECTS, SHAPES),
)


def params_of(call: Call, **more: Any) -> str:
    _, name, arguments = call
    beside = "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in more.items())
    return f'{{"x": {{{DECOY}}}, "name": "{name}", "argu\\u006dents" : {arguments}{beside}}}'


def message(params: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'


@asynccontextmanager
async def daemon(directory: Path, server: WholeServer | FakeServer, *confirm: str, **more: Any) -> AsyncIterator[World]:
    """Run a daemon before a server, of whose tools these need a yes."""
    servers = {"one": {"command": "x", "confirm": [*confirm]}}
    connect = {"connect": lambda _: MemoryTransport(server.serve)}
    with open_data_dir(directory / "data", {}) as data:
        async with world(directory, data, servers, daemon=connect, **more) as at:
            yield at


async def post(at: World, call: Call, **more: Any) -> Any:
    headers = modern_headers("tools/call", call[1])
    content = message(params_of(call, _meta=MODERN_META, **more))
    return (await at.ask("POST", call[0], headers=headers, content=content)).json()


@asynccontextmanager
async def in_legacy_era(at: World, call: Call, **capabilities: Any) -> AsyncIterator[tuple[WebSocketConnection, Any]]:
    """Call over a WebSocket, and go on with what is answered."""
    async with at.websocket(call[0]) as socket:
        client = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "a"}}
        await socket.send_message(json.dumps(request("initialize", client, 0)))
        await socket.get_message()
        await socket.send_message(message(params_of(call)))
        yield socket, json.loads(await socket.get_message())


def is_too_much(result: Any) -> bool:
    """Whether a call was refused, as nobody can be shown its arguments."""
    return bool(result.get("isError")) and "send fewer at once" in result["content"][0]["text"]


async def confirmed_in_modern_era(at: World, call: Call) -> str | None:
    asked = (await post(at, call))["result"]
    if is_too_much(asked):
        return None
    again = await post(at, call, inputResponses={"confirm": YES}, requestState=asked["requestState"])
    assert "result" in again, again
    return str(asked["inputRequests"]["confirm"]["params"]["message"])


async def confirmed_in_legacy_era(at: World, call: Call) -> str | None:
    async with in_legacy_era(at, call, elicitation={}) as (socket, asked):
        if is_too_much(asked.get("result", {})):
            return None
        assert asked.get("method") == "elicitation/create", asked
        await socket.send_message(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": YES}))
        answer = json.loads(await socket.get_message())
        assert "result" in answer, answer
        return str(asked["params"]["message"])


def unlabelled(text: str) -> str:
    """The question without whose it is, and without what stands beside the arguments."""
    shown = text.removeprefix("[one] ")
    return shown.replace(', and beside the arguments {"x":{"arguments":{"path":"/tmp/harmless"}}}', "")


# Few, for each starts a daemon and makes ten calls.
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(CALLS, st.booleans()), min_size=8, max_size=12))
def test_what_was_shown_is_what_the_server_received(calls: list[tuple[Call, bool]]) -> None:
    async def scenario() -> None:
        server = WholeServer()
        with TemporaryDirectory() as path:
            async with daemon(Path(path), server, "*") as at:
                for call, is_modern in calls:
                    before = server.methods().count("tools/call")
                    confirmed = confirmed_in_modern_era if is_modern else confirmed_in_legacy_era
                    question = await confirmed(at, call)
                    assert server.methods().count("tools/call") == before + (question is not None)
                    if question is None:
                        continue
                    said = unlabelled(question)
                    received = server.last()[1].get("arguments", {})
                    if "(not all is shown" not in said:
                        assert decoded_call(said) == ("one:tool1", received)

    trio.run(scenario)


async def test_a_person_is_asked_about_the_path_that_is_deleted_and_not_about_one_that_stands_before_it(
    tmp_path: Path,
) -> None:
    server = WholeServer()
    async with daemon(tmp_path, server, "*") as at:
        for number, door in enumerate(("/mcp/servers/one", "/mcp/all"), 1):
            said = await confirmed_in_modern_era(at, (door, DOORS[door], '{"path":"/etc"}'))
            assert server.last()[1]["arguments"] == {"path": "/etc"}
            assert server.methods().count("tools/call") == number
            assert said is not None
            assert unlabelled(said) == 'Run one:tool1 with {"path":"/etc"}?', door


async def test_nobody_says_yes_to_a_path_whose_second_value_is_too_far_behind_to_be_shown(tmp_path: Path) -> None:
    server = WholeServer()
    twice = f'''{{"path": "/tmp/harmless"{" " * 1100}, "path": "/etc"}}'''
    async with daemon(tmp_path, server, "*") as at:
        for shape in ("object", "text"):
            answer = await post(at, ("/mcp", "execute_mcp_tool", in_execute(twice, shape)))
            assert "inputRequests" not in answer.get("result", {}), answer
            assert "there twice" in str(answer)
    assert "tools/call" not in server.methods()


TWICE = '{"path": "/tmp/harmless",%s "pa\\u0074h": "/etc"}' % (" " * 1100)
REFUSED: list[Call] = [
    *((door, name, TWICE) for door, name in DOORS.items()),
    *(("/mcp", "execute_mcp_tool", in_execute(TWICE, shape)) for shape in ("object", "text", "all a text")),
    ("/mcp", "execute_mcp_tool", in_execute("{'path': '/tmp/harmless', 'path': '/etc'}", "text")),
    ("/mcp/servers/one", "tool1", f'{{"a": [{{"b": {TWICE}}}]}}'),
]


async def test_arguments_with_a_key_twice_are_refused_at_every_door(tmp_path: Path) -> None:
    server = WholeServer()
    async with daemon(tmp_path, server) as at:
        for call in REFUSED:
            over_http = await at.at(call[0]).post(message(params_of(call)).encode())
            async with in_legacy_era(at, call) as (_, over_websocket):
                for answer in (await post(at, call), over_http.json(), over_websocket):
                    error = answer.get("error") or answer["result"]["structuredContent"]["error"]
                    assert (error["code"], error.get("data", error).get("key")) == (-32602, "path"), (call, answer)
    assert "tools/call" not in server.methods()


TWO_NAMES = (
    '"name": "%stool1", "Name": "tool2", "arguments": {}',
    '"name": "%stool1", "n\\u0061me": "%stool2", "arguments": {}',
    '"name": "%stool2", "name": "%stool1", "arguments": {}',
    '"name": "%stool1", "arguments": {}, "Arguments": {"path": "/etc"}',
)


@pytest.mark.case("C04")
async def test_of_two_names_of_a_tool_none_reaches_a_server_that_was_not_looked_at(tmp_path: Path) -> None:
    server = WholeServer()
    async with daemon(tmp_path, server, "tool2") as at:
        for door, name in DOORS.items():
            for params in TWO_NAMES:
                text = params.replace("%s", name.removesuffix("tool1"))
                await at.at(door).post(message(f"{{{text}}}").encode())
            await at.at(door).post(message(f'{{"name": "{name}"}}').encode())
    called = [params for method, params in server.asked if method == "tools/call"]
    assert len(called) >= len(DOORS)
    assert {params["name"] for params in called} == {"tool1"}
    assert {key for params in called for key in params} <= {"name", "arguments"}
    assert not any(params.get("arguments") for params in called)


async def test_a_model_is_told_that_the_daemon_asks_for_a_yes_and_not_the_server(tmp_path: Path) -> None:
    server = FakeServer(tools=[{"name": "echo", "inputSchema": {}, "annotations": {"destructiveHint": True}}])
    async with daemon(tmp_path, server, confirm="dangerous") as at:
        told = (await at.executed("one:echo"))["content"][0]["text"]
        assert "'one' wants to know" not in told
        assert told.startswith("The tool has not run: its user has to agree first")
