"""What a daemon tells of what happens: to readers of its streams, each what is theirs, and to its sinks."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import WebSocketConnection

from supervisor.host.datadir import DataDir
from tests.fakes.event_reader import EventReader, listening, reading
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import message
from tests.scenario.daemon import World, world

SERVERS: dict[str, Any] = {
    "clock": {"command": "x"},
    "vault": {"command": "x", "users": ["ana"]},
    "forge": {"command": "x", "env": {"FORGE_KEY": "${user:FORGE_KEY}"}},
}
IDENTITY: dict[str, Any] = {
    "users": {
        "ana": {"values": {"forge": {"FORGE_KEY": "ana-secret-000000"}}},
        "ben": {"values": {"forge": {"FORGE_KEY": "ben-secret-000000"}}},
        "cem": {"role": "auditor"},
    }
}


CLOCK: dict[str, Any] = {"clock": SERVERS["clock"]}
STREAM = {"accept": "text/event-stream"}


def doorway(directory: Path, data: DataDir, servers: dict[str, Any] = SERVERS) -> AbstractAsyncContextManager[World]:
    fakes = {name: FakeServer(tools=[tool("echo"), tool("tell")]) for name in SERVERS}
    people = {user: {"role": "auditor"} for user in IDENTITY["users"]}
    return world(directory, data, servers, fakes, people=people, auth="tokens", identity=IDENTITY)


async def call(at: World) -> None:
    await at.executed("clock:echo", text="canary")


async def test_a_stream_begins_with_who_speaks_and_tells_what_happens(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK) as at, at.reading() as reader:
        id_, name, hello = await reader.next()
        assert (name, reader.retry) == ("hello", "2000")
        assert reader.headers["content-type"] == "text/event-stream"
        assert hello["start"] == id_.partition("-")[0]
        assert hello.keys() == {"id", "type", "version", "start", "timestamp", "revision"}
        await call(at)
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["data"].get("server_slug") != "clock" or seen[-1]["type"] != "mcp.tool.executed":
            id_, name, event = await reader.next()
            assert (event["id"], event["type"]) == (id_, name)
            seen.append(event)
        executed = seen[-1]["data"]
        assert (executed["tool_name"], executed["outcome"], executed["success"]) == ("echo", "ok", True)
        assert "canary" not in json.dumps(seen)
        numbers = [int(event["id"].partition("-")[2]) for event in seen]
        assert numbers == [*range(numbers[0], numbers[0] + len(seen))]


async def test_the_life_of_a_server_is_told(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK) as at, at.reading("/api/events?after=x-1") as reader:
        assert [(await reader.next())[1] for _ in range(2)] == ["hello", "reset"]
        await at.ordered("clock", "sleep")
        dormant = await reader.until("mcp.server.dormant")
        assert (dormant["server_id"], dormant["transport"], dormant["installation_id"]) == ("clock", "stdio", "clock")
        await at.ordered("clock", "wake")
        assert (await reader.until("mcp.server.respawned"))["dormant_duration_seconds"] >= 0
        await at.ordered("clock", "restart")
        assert (await reader.until("mcp.server.restarted"))["attempt_number"] == 1


@pytest.mark.parametrize("door", ["/mcp", "/mcp/all"])
async def test_a_server_that_goes_away_and_comes_back_is_told_to_readers_and_to_clients(
    tmp_path: Path, data: DataDir, door: str
) -> None:
    """By an event each, and as clients lose and get its tools, by `list_changed`, once each."""
    fakes = {"clock": FakeServer(tools=[tool("echo"), tool("crash")])}
    servers = {"clock": {"command": "x", "max_restarts": 0}}
    async with (
        world(tmp_path, data, servers, fakes, list_changed_min_interval_s=0) as at,
        at.reading() as reader,
        at.websocket(door) as socket,
    ):

        async def ask(method: str, **params: Any) -> Any:
            await socket.send_message(json.dumps(message(method, params, 7)))
            return (await next_message(socket))["result"]

        await ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "x"})
        await socket.send_message(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        await ask("ping")
        assert await at.discover("*") == ["clock:crash", "clock:echo"]
        await at.executed("clock:crash")
        away = await reader.until("mcp.server.away")
        assert (away["server_slug"], away["tool_count"], "exit code" in away["reason"]) == ("clock", 2, True)
        assert (await next_message(socket))["method"] == "notifications/tools/list_changed"
        assert await at.discover("*") == []
        await at.ordered("clock", "restart")
        back = await reader.until("mcp.server.back")
        assert (back["tool_count"], back["away_duration_seconds"] >= 0) == (2, True)
        assert (await next_message(socket))["method"] == "notifications/tools/list_changed"
        assert await at.discover("*") == ["clock:crash", "clock:echo"]
        assert await ask("ping") == {}, "and no other notification came before"


async def next_message(socket: WebSocketConnection) -> Any:
    with trio.fail_after(20):
        return json.loads(await socket.get_message())


async def test_a_reader_that_comes_again_after_100_events_gets_each_once(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK) as at:
        seen: list[str] = []
        async with reading(at.url) as reader:
            await reader.next()
            for _ in range(3):
                await call(at)
            while len(seen) < 3:
                id_, name, _ = await reader.next()
                seen += [id_] if name == "mcp.tool.executed" else []
            last = reader.last
        for _ in range(100):
            await call(at)
        for headers, path in (({"last-event-id": last}, "/api/events"), ({}, f"/api/events?after={last}")):
            async with reading(at.url, path, headers) as reader:
                assert (await reader.next())[1:][0] == "hello"
                again: list[str] = []
                while len(again) < 100:
                    id_, name, event = await reader.next()
                    assert name != "reset"
                    again += [id_] if event["data"].get("server_slug") == "clock" else []
            assert len({*again}) == 100
            assert not {*again} & {*seen}


async def test_what_is_too_old_or_of_another_daemon_is_a_reset(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK, max_kept_events=20) as at:
        async with reading(at.url) as reader:
            old = (await reader.next())[0]
        for _ in range(30):
            await call(at)
        start = old.partition("-")[0]
        for after in (old, f"{start}-99999", "1-1", "x", f"{start}-"):
            async with reading(at.url, headers={"last-event-id": after}) as reader:
                names = [(await reader.next())[1] for _ in range(2)]
                assert names == ["hello", "reset"]
                await call(at)
                assert (await reader.until("mcp.tool.executed"))["tool_name"] == "echo"


async def test_there_are_so_many_streams_and_then_503(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK) as at, AsyncExitStack() as stack:
        for _ in range(32):
            reader = await stack.enter_async_context(reading(at.url))
            assert reader.status == 200
        async with reading(at.url) as reader:
            assert reader.status == 503
            assert int(reader.headers["retry-after"]) > 0
            assert json.loads(await reader.rest())["error"]["code"] == 503


async def test_a_stream_ends_with_the_daemon_and_gives_its_place_back(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK, max_event_streams=1) as at:
        for _ in range(3):
            async with reading(at.url) as reader:
                assert (await reader.next())[1] == "hello"
        stack = AsyncExitStack()
        last = await stack.enter_async_context(reading(at.url))
    async with stack:
        await last.rest()


async def test_it_is_a_stream_for_who_asks_for_one(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, CLOCK) as at:
        for accept, status in (("application/json", 406), ("*/*", 406), ("TEXT/event-stream", 200)):
            async with reading(at.url, accept=accept) as reader:
                assert reader.status == status, accept
        # nothing but GET, and no other parameter
        assert (await at.ask("POST", "/api/events")).status_code == 405
        wrong = await at.ask("GET", "/api/events?since=1", headers=STREAM)
        assert wrong.status_code == 400


# People -----------------------------------------------------------------------------------------------------------


async def settle(at: World, reader: EventReader, who: str) -> list[dict[str, Any]]:
    """Return all that a stream has told by the time that a call of a reader's own is told."""
    await at[who].executed("clock:tell")
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1]["data"].get("tool_name") != "tell":
        _, name, event = await reader.next()
        seen += [event] if name != "hello" else []
    return seen


@pytest.mark.case("I06")
async def test_a_member_hears_of_what_is_theirs_alone(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at, at["ana"].reading() as ana, at["ben"].reading() as ben:
        for who, path in (("ana", "vault:echo"), ("ana", "forge:echo"), ("ben", "forge:echo"), ("ana", "clock:echo")):
            await at[who].executed(path)
        for order in ("sleep", "wake", "restart"):
            for server in ("clock", "vault"):
                await at.ordered(server, order)
        of_ana, of_ben = await settle(at, ana, "ana"), await settle(at, ben, "ben")
        for seen, user, servers in ((of_ana, "ana", {"vault", "forge", "clock"}), (of_ben, "ben", {"forge", "clock"})):
            told = [event["data"] for event in seen]
            assert {each.get("user_id", user) for each in told} == {user}
            assert {each["server_slug"] for each in told if "server_slug" in each} <= servers
            assert all("revision" not in event for event in seen)
            calls = [each for each in told if "outcome" in each]
            assert {each["server_slug"] for each in calls if "server_slug" in each} == servers
            about = [event for event in seen if event["type"].startswith("mcp.server.")]
            assert {event["data"]["server_slug"] for event in about} == {"forge"}, "only that is theirs alone"
            assert all(event["data"]["installation_id"] == "forge" for event in about)
        words = json.dumps(of_ben)
        assert not [word for word in ("vault", "ana", "~", "secret") if word in words]


async def test_everybody_hears_the_same_over_a_websocket(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        for who in ("ana", "ben", "cem"):
            async with at[who].reading() as stream:
                hello = (await stream.next())[2]
                async with listening(at.url, f"/api/events?after={hello['id']}", at[who].headers) as socket:
                    again = (await socket.next())[2]
                    assert {**hello, "timestamp": "", "revision": 0} == {**again, "timestamp": "", "revision": 0}
                    for caller, path in (("ana", "vault:echo"), ("ben", "forge:echo"), ("cem", "clock:echo")):
                        await at[caller].executed(path)
                    told = [await settle(at, reader, who) for reader in (stream, socket)]
                    assert told[0] == told[1], who


async def test_a_question_is_told_to_whom_it_is_asked(tmp_path: Path, data: DataDir) -> None:
    """With the tool and where it can be answered; what it says is nowhere."""
    servers = {**SERVERS, "clock": {"command": "x", "confirm": ["echo"]}}
    async with doorway(tmp_path, data, servers) as at, at["ben"].reading() as ben, at["cem"].reading() as cem:
        async with at["ana"].reading() as ana:
            await at["ben"].executed("clock:echo", text="canary")
            asked = await ben.until("mcp.elicitation.asked")
            assert {**asked, "question_id": ""} == {
                "server_slug": "clock", "tool_name": "echo", "kind": "form", "asked": "page", "question_id": "",
            }  # fmt: skip
            page = f"/api/questions/{asked['question_id']}"
            assert (await at["ana"].ask("GET", page)).status_code == 404
            assert (await at["ben"].ask("POST", page, json={"action": "decline"})).status_code == 200
            ended = await ben.until("mcp.elicitation.ended")
            assert ended == {**asked, "action": "decline"}
            assert await cem.until("mcp.elicitation.ended") == ended
            others = await settle(at, ana, "ana")
        assert not [event for event in others if "elicitation" in event["type"]]


async def test_ids_of_a_member_tell_nothing_of_what_others_do(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at, at["ben"].reading() as ben:
        first = await settle(at, ben, "ben")
        last = ben.last
        for _ in range(10):
            await at["ana"].executed("clock:echo")
        second = await settle(at, ben, "ben")
        assert [event["type"] for event in second if event["data"]["server_slug"] != "forge"] == ["mcp.tool.executed"]
        numbers = [int(event["id"].partition("-")[2]) for event in (*first[-2:], *second)]
        assert all(abs(one - other) > 1000 for one, other in pairwise(numbers))
        async with at["ben"].reading(f"/api/events?after={last}") as again:
            assert (await again.next())[1] == "hello"
            replayed = [(await again.next())[0] for _ in second]
            assert replayed == [event["id"] for event in second]
        async with at["ana"].reading(f"/api/events?after={last}") as other:
            assert [(await other.next())[1] for _ in range(2)] == ["hello", "reset"]


async def test_an_auditor_hears_everything_and_a_stranger_nothing(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at, at["cem"].reading() as cem:
        await at["ana"].executed("vault:echo")
        executed = await cem.until("mcp.tool.executed", server_slug="vault")
        assert executed["user_id"] == "ana"
        await at["ben"].executed("forge:echo")
        status = await cem.until("mcp.server.status_changed", server_slug="forge", user_id="ben")
        assert status["installation_id"].startswith("forge~")
        for shown in ({}, {"authorization": "Bearer mcpv_none"}):
            async with reading(at.url, headers=shown) as reader:
                assert reader.status == 401
        assert (await at["cem"].ask("GET", "/api/events?x=1", headers=STREAM)).status_code == 400


async def test_a_stream_ends_when_its_token_is_revoked(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        id_ = await at.admit("ben")
        async with at["ben"].reading() as reader:
            assert (await reader.next())[1] == "hello"
            await at.revoke(id_)
            await reader.rest()


# Sinks ------------------------------------------------------------------------------------------------------------


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_sinks_get_what_happens_until_the_end(tmp_path: Path, data: DataDir) -> None:
    sinks = [{"name": "lines", "type": "file", "path": "events.jsonl"}, {"name": "kept", "type": "store"}]
    async with world(tmp_path, data, CLOCK, event_sinks=sinks) as at:
        await call(at)
        told = (await at.status())["events"]
        assert [(each["name"], each["type"]) for each in told["sinks"]] == [("lines", "file"), ("kept", "store")]
        assert str(tmp_path) not in json.dumps(told)
    events = lines_of(tmp_path / "events.jsonl")
    ids = [int(event["id"].partition("-")[2]) for event in events]
    assert ids == [*range(1, len(ids) + 1)]
    kinds = [event["type"] for event in events]
    assert {"mcp.server.started", "mcp.tools.discovered", "mcp.tool.executed", "mcp.discovery.completed"} <= {*kinds}
    assert (events[-1]["data"]["state"], events[-1]["data"]["server_slug"]) == ("stopped", "clock")
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600
    async with world(tmp_path, data, CLOCK, event_sinks=sinks) as at:
        kept = await at.page("/api/events/kept", limit=500)
        assert [event["id"] for event in reversed(kept["events"])] == [event["id"] for event in events]
        page = await at.page("/api/events/kept", type="mcp.tool.*", limit=1)
        assert page["events"][0]["type"] == "mcp.tool.executed"


async def test_a_reload_changes_sinks_and_none_of_their_events_is_lost(tmp_path: Path, data: DataDir) -> None:
    kinds = ["mcp.tool.executed", "config.*"]
    first = {"name": "lines", "type": "file", "path": "one.jsonl", "events": kinds, "interval_s": 60}
    more = {"name": "more", "type": "file", "path": "more.jsonl"}
    async with world(tmp_path, data, CLOCK, event_sinks=[first]) as at:
        await call(at)
        at.write(CLOCK, event_sinks=[{**first, "path": "two.jsonl", "interval_s": 0.01}, more])
        assert (await at.reload())["outcome"] == "applied"
        await call(at)
        with trio.fail_after(10):
            while len(lines_of(tmp_path / "two.jsonl")) < 3:  # noqa: ASYNC110 - a thread writes it
                await trio.sleep(0.02)
        assert not (tmp_path / "one.jsonl").exists()
        told = [event["type"] for event in lines_of(tmp_path / "two.jsonl")]
        assert sorted(told) == ["config.refreshed", "mcp.tool.executed", "mcp.tool.executed"]
        at.write(CLOCK)
        assert (await at.reload())["outcome"] == "applied"
        assert (await at.status())["events"]["sinks"] == []
