"""Clients of a fleet whose requests go to any node, as behind a balancer that knows nothing of sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
import trio

from tests.e2e.daemons import Daemon, client, running, stand_in, text
from tests.e2e.fork_server import forking
from tests.fakes.event_reader import EventReader, listening, reading
from tests.fleet.valkey import settle, valkey
from tests.scenario.client import PATIENCE_S, Json, message

pytestmark = pytest.mark.e2e
Way = Callable[..., AbstractAsyncContextManager[EventReader]]

SERVERS = {
    "talkative": stand_in("talkative"),
    "memo": stand_in("memo"),
    "growing": stand_in("growing", result_token_budget=1000),
    "wants": stand_in("memo", env={"COLOUR": "${user:COLOUR:-blue}"}, values={"COLOUR": {"secret": False}}),
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
EVENT_STREAM = {"accept": "application/json, text/event-stream"}


@contextmanager
def three(directory: Path, lease_s: float) -> Iterator[list[Daemon]]:
    """Run three nodes that know each other, and their engine. A file has the words of a tool."""
    (directory / "engine").mkdir()
    words = directory / "words"
    words.write_text("Looks.")
    servers = {**SERVERS, "worded": stand_in("worded", str(words), read_only=["look"])}
    with valkey(directory / "engine") as engine, ExitStack() as stack:
        trio.run(settle, engine)
        settings = {"engine": engine.url, "keys": ["the key of this fleet, which is long"], "lease_s": lease_s}
        nodes = [
            stack.enter_context(running(directory / name, servers, leaves_calls=True, fleet={**settings, "node": name}))
            for name in "abc"
        ]
        for node in nodes:
            trio.run(node.ready)
            trio.run(_knows, node, len(nodes))
        yield nodes


async def _knows(node: Daemon, number: int) -> None:
    await node.until("/api/nodes", lambda told: len(told["nodes"]) >= number)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Daemon]]:
    with three(tmp_path_factory.mktemp("fleet"), 60.0) as running_:
        yield running_


@pytest.fixture
def mortal_nodes(tmp_path: Path) -> Iterator[list[Daemon]]:
    """Three whose leases are short."""
    with three(tmp_path, 6.0) as running_:
        yield running_


async def post(node: Daemon, body: Json, session: str = "", path: str = "/mcp") -> httpx2.Response:
    named = {"mcp-session-id": session} if session else {}
    async with client() as http:
        return await http.post(node.url + path, json=body, headers={**EVENT_STREAM, **named})


async def open_session(node: Daemon, path: str = "/mcp", **capabilities: Json) -> str:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "x", "version": "1"},
    }
    answer = await post(node, message("initialize", params), path=path)
    session = str(answer.headers["mcp-session-id"])
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await post(node, initialized, session, path)).status_code == 202
    return session


def said(answer: httpx2.Response) -> Json:
    """Return the answer, which may be the last message of a stream."""
    if answer.headers["content-type"] == "application/json":
        told: Json = answer.json()
    else:
        told = json.loads([line[6:] for line in answer.text.splitlines() if line.startswith("data: {")][-1])
    return told


def call(tool: str, arguments: Json, id_: int = 7, **meta: object) -> Json:
    params: Json = {"name": "execute_mcp_tool", "arguments": {"tool_path": tool, "arguments": arguments}}
    return message("tools/call", {**params, **({"_meta": meta} if meta else {})}, id_)


async def test_a_session_is_the_same_at_every_node_until_it_is_ended_at_one(nodes: list[Daemon]) -> None:
    a, b, c = nodes
    session = await open_session(a)
    for node in (a, b, c):
        answer = await post(node, call("growing:echo", {"text": "x"}), session)
        assert text(said(answer)) == "x"
    assert await b.delete(session) == 204
    for node in (a, b, c):
        assert (await post(node, message("ping"), session)).status_code == 404
        assert await node.delete(session) == 404


async def test_a_question_that_is_asked_at_one_node_is_answered_at_another(nodes: list[Daemon]) -> None:
    a, b, c = nodes
    session = await open_session(a, elicitation={"form": {}})
    headers = {**EVENT_STREAM, "mcp-session-id": session}
    asking = call("talkative:ask", {"message": "who?"}, progressToken=1)
    async with client() as http, http.stream("POST", f"{b.url}/mcp", json=asking, headers=headers) as answer:
        told = []
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            told.append(json.loads(line[6:]))
            if told[-1].get("method") == "elicitation/create":
                result = {"action": "accept", "content": {"name": "ana"}}
                reply = {"jsonrpc": "2.0", "id": told[-1]["id"], "result": result}
                assert (await post(c, reply, session)).status_code == 202
    assert json.loads(text(told[-1]))["content"] == {"name": "ana"}


async def test_a_call_is_cancelled_from_another_node(nodes: list[Daemon]) -> None:
    a, b, c = nodes
    async with trio.open_nursery() as nursery:
        session = await open_session(a)
        answers: list[Json] = []

        async def hang() -> None:
            answer = await post(b, call("growing:hang", {}, 11), session)
            answers.append(said(answer))

        nursery.start_soon(hang)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 11}}
        with trio.fail_after(PATIENCE_S):
            while not answers:
                assert (await post(c, cancel, session)).status_code == 202
                await trio.sleep(0.1)
        assert answers[0]["error"]["message"] == "the request was cancelled"


async def test_whoever_is_subscribed_hears_of_a_change_wherever_the_server_runs(nodes: list[Daemon]) -> None:
    path = "/mcp/all"
    async with AsyncExitStack() as stack:
        streams = []
        for place, node in enumerate(nodes):  # of each session the stream is at another one, its request at a third
            session = await open_session(node, path)
            listed = said(await post(node, message("resources/list"), session, path))
            uri = next(each["uri"] for each in listed["result"]["resources"] if "memo" in each["uri"])
            streams.append(
                await stack.enter_async_context(reading(nodes[place - 2].url, path, {"mcp-session-id": session}))
            )
            assert "result" in said(
                await post(nodes[place - 1], message("resources/subscribe", {"uri": uri}), session, path)
            )
        for node in nodes:
            await post(node, call("memo:write", {"text": f"of {node.url}"}))
            for stream in streams:
                await stream.until_bytes(b'"notifications/resources/updated"')


async def test_a_session_of_a_node_that_is_gone_lives_on_and_one_that_was_ended_does_not(
    mortal_nodes: list[Daemon],
) -> None:
    a, b, c = mortal_nodes
    session, over = await open_session(a), await open_session(a)
    assert await c.delete(over) == 204
    await a.kill()
    with trio.fail_after(PATIENCE_S):
        while "error" in said(await post(b, message("ping"), session)):  # noqa: ASYNC110
            await trio.sleep(0.2)
    for node in (b, c):
        answer = await post(node, message("tools/list"), session)
        assert answer.status_code == 200
        gone = await post(node, message("ping"), over)
        assert gone.status_code == 404, gone.text
    assert await c.delete(session) == 204
    assert (await post(b, message("ping"), session)).status_code == 404


async def modern(node: Daemon, method: str, params: Json, path: str = "/mcp") -> Json:
    """Return the answer to a request that stands for itself."""
    named = {"mcp-name": params["name"]} if "name" in params else {}
    headers = {**EVENT_STREAM, "mcp-protocol-version": "2026-07-28", "mcp-method": method, **named}
    async with client() as http:
        return said(
            await http.post(node.url + path, json=message(method, {**params, "_meta": ENVELOPE}), headers=headers)
        )


async def test_a_call_that_waits_at_one_node_goes_on_with_the_answer_that_another_one_gets(nodes: list[Daemon]) -> None:
    for place, node in enumerate(nodes):
        params: Json = {
            "name": "execute_mcp_tool",
            "arguments": {"tool_path": "talkative:ask", "arguments": {"message": "who?"}},
        }
        asked = (await modern(node, "tools/call", params))["result"]
        assert asked["resultType"] == "input_required"
        ((id_, _),) = asked["inputRequests"].items()
        answer = {id_: {"action": "accept", "content": {"name": "ana"}}}
        again = {**params, "inputResponses": answer, "requestState": asked["requestState"]}
        told = await modern(nodes[place - 1], "tools/call", again)
        assert json.loads(text(told))["content"] == {"name": "ana"}
        twice = await modern(nodes[place - 2], "tools/call", again)
        assert "used already" in twice["error"]["message"]


async def test_a_long_result_that_one_node_keeps_is_read_at_another(nodes: list[Daemon]) -> None:
    a, b, c = nodes
    params = {"name": "execute_mcp_tool", "arguments": {"tool_path": "growing:big", "arguments": {"size": 900_000}}}
    cut = (await modern(a, "tools/call", params))["result"]
    uri = re.search(r"mcpvisor-result://[\w-]+", json.dumps(cut))
    assert uri is not None, json.dumps(cut)[-1000:]
    for node in (a, b, c):
        read = {"name": "read_mcp_resource", "arguments": {"uri": uri[0]}}
        told = await modern(node, "tools/call", read)
        assert "xxx" in json.dumps(told), told


async def test_what_only_reads_reaches_no_other_definition_whichever_node_is_asked(nodes: list[Daemon]) -> None:
    words = nodes[0].directory.parent / "words"
    for number, node in enumerate(nodes):
        with trio.fail_after(PATIENCE_S):
            while "error" in (told := await only_reads(node)):  # until it knows how the tool is worded now
                assert told["error"]["reason"] == "changed"
        words.write_text(f"Looks {number}.")
        assert (await node.at("/api/servers/worded/sleep").post(b"")).status_code == 200
        assert (await only_reads(node))["error"]["reason"] == "changed"


async def only_reads(node: Daemon) -> Json:
    """Call the tool of the server whose words change, where that is bound to what it was said to be."""
    arguments = {"tool_path": "worded:look", "arguments": {"text": "x"}}
    asked = message("tools/call", {"name": "execute_read_only_mcp_tool", "arguments": arguments})
    result: Json = said(await post(node, asked, path="/mcp?execute=by-effect"))["result"]
    structured: Json = result.get("structuredContent", {})
    return structured


async def told_calls(reader: EventReader, number: int) -> list[str]:
    """Return at which nodes the next calls were made. No event is missing."""
    found: list[str] = []
    while len(found) < number:
        _, kind, event = await reader.next()
        assert kind != "reset", event
        found += [event["node"]] if kind == "mcp.tool.executed" else []
    return found


@pytest.mark.parametrize("way", [reading, listening])
async def test_events_of_all_nodes_are_one_stream_which_goes_on_at_any(nodes: list[Daemon], way: Way) -> None:
    echo = call("growing:echo", {"text": "x"})
    async with way(nodes[0].url) as reader:
        _, kind, hello = await reader.next()
        assert (kind, hello["node"], hello["nodes"]) == ("hello", "a", ["a", "b", "c"])
        for node in nodes:
            await post(node, echo)
        assert sorted(await told_calls(reader, 3)) == ["a", "b", "c"]
        last = reader.last
    await post(nodes[2], echo)
    await post(nodes[0], echo)
    async with way(nodes[1].url, f"/api/events?after={quote(last)}") as reader:
        await post(nodes[1], echo)
        assert sorted(await told_calls(reader, 3)) == ["a", "b", "c"]
    async with way(nodes[1].url, "/api/events?here=true") as reader:
        await post(nodes[0], echo)
        await post(nodes[1], echo)
        _, kind, event = await reader.next()
        assert (kind, "nodes" in event) == ("hello", False)
        assert "node" not in await reader.until("mcp.tool.executed")


async def test_a_stream_of_events_says_where_a_node_has_gone_and_goes_on(mortal_nodes: list[Daemon]) -> None:
    a, b, c = mortal_nodes
    async with reading(b.url) as reader:
        assert (await reader.next())[2]["nodes"] == ["a", "b", "c"]
        last = reader.last
        await a.kill()
        while (await reader.next())[1] != "reset":
            pass
        await post(c, call("growing:echo", {"text": "x"}))
        assert await told_calls(reader, 1) == ["c"]
    async with reading(c.url, headers={"last-event-id": last}) as reader:
        assert (await reader.next())[2]["nodes"] == ["b", "c"]
        assert (await reader.next())[1] == "reset"  # nobody knows what the one that is gone had told
        assert await told_calls(reader, 1) == ["c"]


async def command(node: Daemon, *args: str, told: bytes = b"") -> str:
    """Give a command to a node, and return what it says."""
    asked = [*forking(), "-m", "supervisor", *args, "--url", node.url]
    done = await trio.run_process(asked, stdin=told, capture_stdout=True)
    return done.stdout.decode()


async def until_crimson(node: Daemon, *, is_crimson: bool) -> None:
    async with client() as http:
        with trio.fail_after(PATIENCE_S):
            while ("crimson" in (await http.get(node.url + "/api/values?user=ana")).text) != is_crimson:  # noqa: ASYNC110
                await trio.sleep(0.05)


async def test_a_value_that_is_given_at_one_node_holds_at_all(nodes: list[Daemon]) -> None:
    a, b, c = nodes
    place = ("wants", "COLOUR", "--user", "ana")
    await command(a, "config", "set", *place, "-", told=b"crimson")
    for node in nodes:
        await until_crimson(node, is_crimson=True)
    await command(c, "config", "unset", *place)
    for node in (a, b):
        await until_crimson(node, is_crimson=False)
